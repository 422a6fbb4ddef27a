import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { makeSealer } from '../../../../src/client/crypto/sealer.ts'
import { parseKeyText, type SessionKey } from '../../../../src/client/crypto/session-key.ts'
import { ContentRef } from '../../../../src/protocol/execution/ids.ts'
import { EncryptedPayload } from '../../../../src/protocol/execution/sealed.ts'
import { ok } from '../../../../src/protocol/result.ts'
import { openByHand, sealByHand } from '../../../support/node/xchacha-by-hand.ts'

const FOLDER = path.join(import.meta.dirname, '../../../../golden/crypto')

const Head = z.strictObject({
  why: z.string().min(1),
  key: z.string(),
  key_id: z.string(),
  session_id: z.string(),
  ref: ContentRef,
})
/** What a client opens. */
const Opened = Head.extend({ envelope: EncryptedPayload.strict(), plaintext: z.string() })
/** The same, with texts too long to write down. */
const OpenedLong = Head.extend({
  envelope: EncryptedPayload.strict().omit({ ciphertext: true }),
  ciphertext_sha256: z.string(),
  plaintext: z.strictObject({ repeat: z.string(), times: z.int().positive() }),
})
/** What it must not open, and what kind of problem it is. */
const Refused = Head.extend({
  envelope: EncryptedPayload.strict(),
  refused: z.enum(['other_key', 'unknown_version', 'malformed', 'damaged']),
})
const Golden = z.union([Opened, OpenedLong, Refused])
type Golden = z.infer<typeof Golden>

const files = readdirSync(FOLDER)
  .sort()
  .map((name) => ({ name, golden: Golden.parse(JSON.parse(readFileSync(path.join(FOLDER, name), 'utf8'))) }))

async function keyOf({ key, key_id }: Golden): Promise<SessionKey> {
  const parsed = await parseKeyText(key_id, key)
  if (parsed === null) throw new Error(`the key is not ${key_id}`)
  return parsed
}

/** What the envelope of a place is bound to, spelled out once more. */
const boundTo = ({ session_id, ref }: Golden, version: number): Buffer =>
  Buffer.from(version === 2 ? ['switchyard-envelope-v2', session_id, ref].join('\n') : '')

const bytesOf = (text: string): Buffer => Buffer.from(text, 'base64url')
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('base64url')

describe('golden/crypto', () => {
  for (const { name, golden } of files) {
    test(`[EC 17.1][D48] ${name}: ${golden.why}`, async () => {
      const key = await keyOf(golden)
      const sealer = makeSealer(key, golden.session_id)
      if ('refused' in golden) {
        expect(sealer.open(golden.ref, golden.envelope)).toMatchObject({
          ok: false,
          error: { kind: golden.refused },
        })
        return
      }
      const { plaintext: given, envelope } = golden
      const plaintext = typeof given === 'string' ? given : given.repeat.repeat(given.times)
      const nonce = bytesOf(envelope.nonce)
      const sealed = sealByHand(key.bytes, nonce, Buffer.from(plaintext), boundTo(golden, envelope.version))
      if ('ciphertext_sha256' in golden) expect(sha256(sealed)).toBe(golden.ciphertext_sha256)
      else expect(sealed.toString('base64url')).toBe(golden.envelope.ciphertext)
      const ciphertext =
        'ciphertext_sha256' in golden ? sealed.toString('base64url') : golden.envelope.ciphertext
      expect(sealer.open(golden.ref, { ...envelope, ciphertext })).toEqual(ok(plaintext))
    })
  }

  test('[D48] there is a vector of each version, and one of each kind of refusal', () => {
    const opened = files.flatMap(({ golden }) => ('refused' in golden ? [] : [golden.envelope.version]))
    const refused = files.flatMap(({ golden }) => ('refused' in golden ? [golden.refused] : []))
    expect(new Set(opened)).toEqual(new Set([1, 2]))
    expect(new Set(refused)).toEqual(new Set(['other_key', 'unknown_version', 'malformed', 'damaged']))
  })

  test.each(['refused-downgrade.json', 'refused-upgrade.json'])(
    '[D48] %s is refused for its version alone: its tag is right',
    async (name) => {
      const golden = Refused.parse(files.find((file) => file.name === name)?.golden)
      const { envelope } = golden
      const key = await keyOf(golden)
      const [nonce, sealed] = [bytesOf(envelope.nonce), bytesOf(envelope.ciphertext)]
      const opened = openByHand(key.bytes, nonce, sealed, boundTo(golden, envelope.version))
      expect(opened.toString()).toBe('fix the login')
    },
  )
})
