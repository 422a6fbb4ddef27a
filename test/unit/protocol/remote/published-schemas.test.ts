import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { REMOTE_SCHEMAS, remoteSchemaFiles } from '../../../../scripts/lib/schema-files.ts'
import { DOCUMENT_NAMES, documents, goldens } from './support/documents.ts'

const folder = path.join(import.meta.dirname, '../../../..', REMOTE_SCHEMAS)
const generated = remoteSchemaFiles()
const checkedIn = readdirSync(folder).sort()

describe('schemas/remote-v1', () => {
  test('holds the generated files and no other', () => {
    expect(checkedIn).toEqual([...generated.keys()].sort())
  })

  test.each(checkedIn)('%s is what `npm run generate` writes', (name) => {
    expect(readFileSync(path.join(folder, name), 'utf8')).toBe(generated.get(name))
  })

  test.each([...generated])(
    '%s refers only to what it defines, and defines only what is referred to',
    (_, text) => {
      const references = [...text.matchAll(/"\$ref": "([^"]+)"/g)].map(([, ref]) => ref ?? '')
      const defs = z
        .object({ $defs: z.record(z.string(), z.unknown()).default({}) })
        .parse(JSON.parse(text)).$defs
      expect([...new Set(references)].sort()).toEqual(
        Object.keys(defs)
          .map((name) => `#/$defs/${name}`)
          .sort(),
      )
    },
  )
})

describe('a published schema', () => {
  const validators = new Map(DOCUMENT_NAMES.map((name) => [name, z.fromJSONSchema(documents[name] as never)]))

  test.each(goldens)('accepts $path', ({ document, wire }) => {
    expect(validators.get(document)?.safeParse(wire).error?.issues).toBeUndefined()
  })

  test('refuses what the types refuse', () => {
    const accepts = (name: (typeof DOCUMENT_NAMES)[number], wire: unknown) =>
      validators.get(name)?.safeParse(wire).success
    expect(accepts('token-ack', { type: 'token_ack' })).toBe(false)
    expect(accepts('flow-ack', { type: 'flow_ack', bytes: -1 })).toBe(false)
    expect(
      accepts('request', { protocol_version: 1, request_id: 'r', operation: { type: 'teleport' } }),
    ).toBe(false)
    expect(accepts('handshake-request', { type: 'pair', protocol_version: 1 })).toBe(false)
    expect(accepts('handshake-response', { type: 'error', code: 'gone', message: '' })).toBe(false)
    expect(accepts('frame', { kind: 'sessions', protocol_version: 2, gateway_id: 'g', sessions: [] })).toBe(
      false,
    )
    expect(accepts('pairing-qr', { protocol_version: 1, address: 'a' })).toBe(false)
  })
})
