/** Reads the reference of the remote protocol that lies in a folder, and says how our types stand to it. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  REMOTE_REQUESTS,
  remoteRequestSchemas,
  remoteResponseSchemas,
} from '../../../src/protocol/remote/json-schemas.ts'
import { loadRemoteGolden } from '../remote-golden.ts'
import { compareRemote, frameProblems } from './compare-remote.ts'
import type { Difference } from './difference.ts'

/** The documents of the reference; what acknowledges a rotation is younger than it. */
const DOCUMENTS = ['handshake-request', 'handshake-response', 'pairing-qr', 'request', 'frame'] as const

export type RemoteFindings = { frames: number; problems: string[]; differences: Difference[] }

/** A folder with `golden/` and `schemas/`. What is missing in it, or is no JSON, throws. */
export function checkRemoteReference(folder: string): RemoteFindings {
  const files = loadRemoteGolden(join(folder, 'golden'))
  const ours = { ...remoteRequestSchemas(), ...remoteResponseSchemas() }
  const differences = DOCUMENTS.flatMap((name) => {
    const theirs: unknown = JSON.parse(readFileSync(join(folder, 'schemas', `${name}.schema.json`), 'utf8'))
    return compareRemote(name, name in REMOTE_REQUESTS ? 'request' : 'answer', theirs, ours[name])
  })
  return { frames: files.length, problems: files.flatMap(frameProblems), differences }
}
