/**
 * The golden files of the remote protocol: each holds one frame as it goes over the wire, in the names of version 1.
 * Where a file lies says which document it follows. It reads and derives; it writes nothing.
 */

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { REMOTE_DOCUMENTS, type RemoteDocument } from '../../src/protocol/remote/json-schemas.ts'
import { jsonText } from './json-text.ts'

export const REMOTE_GOLDEN = 'golden/remote-v1'

/** Folders of frames, and single files, by their path from the root of the golden folder. */
const DOCUMENT_AT: Readonly<Record<string, RemoteDocument>> = {
  'handshake/requests': 'handshake-request',
  'handshake/responses': 'handshake-response',
  'handshake/token_ack.json': 'token-ack',
  'handshake/flow_ack.json': 'flow-ack',
  'handshake/pairing_qr.json': 'pairing-qr',
  requests: 'request',
  frames: 'frame',
}

export type RemoteGoldenFile = {
  /** From the root of the golden folder, with forward slashes. */
  path: string
  document: RemoteDocument
  text: string
  wire: unknown
}

/** Every golden file under a folder, in the order of its names. A file in a place of its own throws. */
export function loadRemoteGolden(folder: string): RemoteGoldenFile[] {
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => path.endsWith('.json'))
    .sort()
  return paths.map((path) => {
    const document = DOCUMENT_AT[path] ?? DOCUMENT_AT[path.slice(0, path.lastIndexOf('/'))]
    if (document === undefined) throw new Error(`${path}: no frame of the remote protocol belongs here`)
    const text = readFileSync(join(folder, path), 'utf8')
    return { path, document, text, wire: JSON.parse(text) }
  })
}

/** What our types make of a frame, as JSON, or why they refuse it. */
export function reread({
  document,
  wire,
}: Pick<RemoteGoldenFile, 'document' | 'wire'>): { ok: true; wire: unknown } | { ok: false; at: string } {
  const result = REMOTE_DOCUMENTS[document].safeParse(wire)
  if (result.success) return { ok: true, wire: JSON.parse(JSON.stringify(result.data)) }
  return { ok: false, at: result.error.issues.map((issue) => `/${issue.path.join('/')}`).join(', ') }
}

/**
 * The text that a golden file should have: its frame with the fields in the order of our types. A frame that they
 * refuse or change throws: only a person can say which of the two is wrong.
 */
export function remoteGoldenText(file: RemoteGoldenFile): string {
  const read = reread(file)
  if (!read.ok) throw new Error(`${file.path}: refused at ${read.at}`)
  if (!isDeepStrictEqual(read.wire, file.wire)) throw new Error(`${file.path}: read as something else`)
  return jsonText(read.wire)
}
