import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { makeSealer, sealProblemText } from '../../../../src/client/crypto/sealer.ts'
import { generateKey, sessionKey } from '../../../../src/client/crypto/session-key.ts'
import { fromBase64url } from '../../../../src/protocol/base64url.ts'
import type { ContentRef } from '../../../../src/protocol/execution/ids.ts'
import type { EncryptedPayload, EnvelopeVersion } from '../../../../src/protocol/execution/sealed.ts'
import { err, ok } from '../../../../src/protocol/result.ts'
import { openByHand } from '../../../support/node/xchacha-by-hand.ts'

const SESSION = '0197d0a2-6c1e-7c52-9a55-0c6a6f1d2b11'
const OTHER_SESSION = '0197d0a2-6c1e-7c52-9a55-0c6a6f1d2b12'
const REF: ContentRef = 'message:0197d0a2-7b00-7000-8000-000000000001'
const OTHER_REF: ContentRef = 'message:0197d0a2-7b00-7000-8000-000000000002'
const RUNS = { numRuns: 200, seed: 1 }
const VERSIONS: readonly EnvelopeVersion[] = [1, 2]

const sealerOf = async (version: EnvelopeVersion) => makeSealer(await generateKey(version), SESSION)
const bytesOf = (text: string) => fromBase64url(text) ?? new Uint8Array()

describe.each(VERSIONS)('an envelope of version %i', (version) => {
  test('[EC 17.1] has 24 bytes of nonce, the tag behind the ciphertext, and no padding', async () => {
    const sealer = await sealerOf(version)
    const payload = sealer.seal(REF, 'häß')
    expect(payload).toEqual({
      version,
      algorithm: 'xchacha20poly1305',
      key_id: sealer.keyId,
      nonce: expect.stringMatching(/^[A-Za-z0-9_-]{32}$/),
      ciphertext: expect.stringMatching(/^[A-Za-z0-9_-]+$/),
    })
    expect(bytesOf(payload.ciphertext)).toHaveLength(5 + 16)
  })

  test('[EC 17.1] opens to the very text, whatever it is', async () => {
    const sealer = await sealerOf(version)
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(sealer.open(REF, sealer.seal(REF, text))).toEqual(ok(text))
      }),
      RUNS,
    )
  })

  test('[EC 17.1] is what another implementation reads', async () => {
    const key = await generateKey(version)
    const payload = makeSealer(key, SESSION).seal(REF, 'Grüße')
    const bound = Buffer.from(version === 1 ? '' : `switchyard-envelope-v2\n${SESSION}\n${REF}`)
    const opened = openByHand(key.bytes, bytesOf(payload.nonce), bytesOf(payload.ciphertext), bound)
    expect(opened.toString()).toBe('Grüße')
  })

  test('[EC 17.1] has a nonce of its own, also for the same text in the same place', async () => {
    const sealer = await sealerOf(version)
    const payloads = Array.from({ length: 2_000 }, () => sealer.seal(REF, 'again'))
    expect(new Set(payloads.map(({ nonce }) => nonce)).size).toBe(payloads.length)
    expect(new Set(payloads.map(({ ciphertext }) => ciphertext)).size).toBe(payloads.length)
    // No byte of a nonce is fixed or counted: each takes many values.
    const nonces = payloads.map(({ nonce }) => bytesOf(nonce))
    for (let at = 0; at < 24; at++)
      expect(new Set(nonces.map((nonce) => nonce[at])).size).toBeGreaterThan(200)
  })

  test('[EC 17.1] any changed bit is noticed', async () => {
    const sealer = await sealerOf(version)
    const payload = sealer.seal(REF, 'ten bytes!')
    const flipped = (text: string, bit: number) => {
      const bytes = Buffer.from(text, 'base64url')
      bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      return bytes.toString('base64url')
    }
    const kinds = new Set<string>()
    const open = (changed: Partial<EncryptedPayload>) => {
      const opened = sealer.open(REF, { ...payload, ...changed })
      kinds.add(opened.ok ? 'opened' : opened.error.kind)
    }
    for (let bit = 0; bit < 26 * 8; bit++) open({ ciphertext: flipped(payload.ciphertext, bit) })
    for (let bit = 0; bit < 24 * 8; bit++) open({ nonce: flipped(payload.nonce, bit) })
    expect([...kinds]).toEqual(['damaged'])
  })

  test('[U35] of another key names the key that is needed', async () => {
    const [mine, theirs] = [await sealerOf(version), await sealerOf(version)]
    const opened = mine.open(REF, theirs.seal(REF, 'x'))
    expect(opened).toEqual(err({ kind: 'other_key', keyId: theirs.keyId }))
    expect(opened.ok ? '' : sealProblemText(opened.error)).toBe(`locked: key ${theirs.keyId} is needed`)
  })

  test('never throws when it is opened, whatever comes', async () => {
    const sealer = await sealerOf(version)
    const good = sealer.seal(REF, 'x')
    const text = fc.oneof(fc.string(), fc.base64String(), fc.constantFrom(good.nonce, good.ciphertext, ''))
    const payload = fc.record({
      version: fc.oneof(fc.constant(version), fc.nat()),
      algorithm: fc.oneof(fc.constant(good.algorithm), fc.string()),
      key_id: fc.oneof(fc.constant(good.key_id), fc.string()),
      nonce: text,
      ciphertext: text,
    })
    fc.assert(
      fc.property(payload, (tried) => {
        const opened = sealer.open(REF, tried)
        if (opened.ok) expect(tried).toEqual(good)
        else expect(sealProblemText(opened.error)).not.toBe('')
      }),
      RUNS,
    )
  })

  test('a text that UTF-8 cannot carry is refused, not changed', async () => {
    const sealer = await sealerOf(version)
    expect(() => sealer.seal(REF, 'half \ud83d of a pair')).toThrow(`the text of ${REF} is no valid Unicode`)
    expect(sealer.open(REF, sealer.seal(REF, 'the whole \u{1f600}'))).toEqual(ok('the whole \u{1f600}'))
  })
})

describe('the place of an envelope', () => {
  test('[D48] version 2 opens nowhere but where it was sealed', async () => {
    const key = await generateKey(2)
    const payload = makeSealer(key, SESSION).seal(REF, 'x')
    expect(makeSealer(key, SESSION).open(OTHER_REF, payload)).toMatchObject({ error: { kind: 'damaged' } })
    expect(makeSealer(key, OTHER_SESSION).open(REF, payload)).toMatchObject({ error: { kind: 'damaged' } })
    expect(makeSealer(key, SESSION).open(REF, payload)).toEqual(ok('x'))
  })

  test('[D48] version 1 is bound to no place, as other clients write it', async () => {
    const key = await generateKey(1)
    const payload = makeSealer(key, SESSION).seal(REF, 'x')
    expect(makeSealer(key, OTHER_SESSION).open(OTHER_REF, payload)).toEqual(ok('x'))
  })

  test('[D48] a session id cannot reach into the name of the content', async () => {
    const key = await generateKey(2)
    expect(() => makeSealer(key, `${SESSION}\nmessage:1`)).toThrow('one line')
  })

  test('[D48] a key of version 2 does not open version 1, even of the same bytes', async () => {
    const bytes = (await generateKey(1)).bytes
    const old = makeSealer(await sessionKey(bytes, 1), SESSION).seal(REF, 'x')
    const sealer = makeSealer(await sessionKey(bytes, 2), SESSION)
    const relabelled = { ...old, key_id: sealer.keyId }
    expect(sealer.open(REF, relabelled)).toMatchObject({ error: { kind: 'malformed' } })
    expect(sealer.open(REF, { ...relabelled, version: 2 })).toMatchObject({ error: { kind: 'damaged' } })
  })
})
