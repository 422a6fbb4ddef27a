import path from 'node:path'
import { z } from 'zod'
import { SchemaNode } from '../../../../../scripts/lib/json-schema-node.ts'
import { loadRemoteGolden, REMOTE_GOLDEN } from '../../../../../scripts/lib/remote-golden.ts'
import {
  REMOTE_DOCUMENTS,
  type RemoteDocument,
  remoteRequestSchemas,
  remoteResponseSchemas,
} from '../../../../../src/protocol/remote/json-schemas.ts'

/** The published documents of the remote protocol as plain JSON. */
export const documents = { ...remoteRequestSchemas(), ...remoteResponseSchemas() }

export const DOCUMENT_NAMES = Object.keys(REMOTE_DOCUMENTS) as RemoteDocument[]

const Defs = z.object({ $defs: z.record(z.string(), SchemaNode).default({}) })

/** A document as its root and what the root's references name. */
export const documentOf = (name: RemoteDocument) => ({
  root: SchemaNode.parse(documents[name]),
  defs: Defs.parse(documents[name]).$defs,
})

export const goldens = loadRemoteGolden(path.join(import.meta.dirname, '../../../../..', REMOTE_GOLDEN))

export const goldensOf = (document: RemoteDocument) => goldens.filter((file) => file.document === document)
