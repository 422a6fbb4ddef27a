import { expect, test } from 'vitest'
import {
  callsRef,
  diffRef,
  factRef,
  inputRef,
  messageRef,
  planRef,
  refParts,
  resultRef,
  traceRef,
} from '../../../src/protocol/execution/content-refs.ts'
import { ContentRef } from '../../../src/protocol/execution/ids.ts'
import {
  type EncryptedPayload,
  envelopeProblem,
  envelopeVersion,
} from '../../../src/protocol/execution/sealed.ts'

const envelope = (
  keyId: string,
  version: number,
  rest: Partial<EncryptedPayload> = {},
): EncryptedPayload => ({
  version,
  algorithm: 'xchacha20poly1305',
  key_id: keyId,
  nonce: 'A'.repeat(32),
  ciphertext: 'A'.repeat(22),
  ...rest,
})

test.each([
  ['kf_x', 1],
  ['kf2_x', 2],
  ['kf2', 1],
  ['kf3_x', 1],
  ['KF2_x', 1],
  ['a key of some other client', 1],
])('[D48] %s goes with envelopes of version %i and no other', (keyId, version) => {
  expect(envelopeVersion(keyId)).toBe(version)
  expect(envelopeProblem(envelope(keyId, version), keyId)).toBeNull()
  for (const other of [0, 1, 2, 3].filter((other) => other !== version))
    expect(envelopeProblem(envelope(keyId, other), keyId)).toContain(`version ${version}`)
})

test.each<[string, Partial<EncryptedPayload>, string]>([
  ['another key', { key_id: 'kf_y' }, 'another key'],
  ['another cipher', { algorithm: 'XChaCha20Poly1305' }, 'algorithm'],
  ['a short nonce', { nonce: 'A'.repeat(31) }, 'nonce'],
  ['a long nonce', { nonce: 'A'.repeat(34) }, 'nonce'],
  ['a padded nonce', { nonce: `${'A'.repeat(31)}=` }, 'nonce'],
  ['a ciphertext without room for its tag', { ciphertext: 'A'.repeat(20) }, 'ciphertext'],
  ['a padded ciphertext', { ciphertext: `${'A'.repeat(22)}==` }, 'ciphertext'],
  ['a ciphertext with bits left over', { ciphertext: `${'A'.repeat(21)}B` }, 'ciphertext'],
])('[EC 17.1] an envelope with %s cannot be kept, and the reason names it', (_, change, word) => {
  expect(envelopeProblem(envelope('kf_x', 1, change), 'kf_x')).toContain(word)
})

test('[EC 17.2] the reference of each kind of content is one, and gives its kind and id back', () => {
  const id = 'a:b'
  const refs = [inputRef, messageRef, callsRef, resultRef, diffRef, planRef, factRef, traceRef].map((refOf) =>
    refOf(id),
  )
  expect(refs.map((ref) => ContentRef.parse(ref))).toEqual(refs)
  expect(refs.map(refParts)).toEqual(
    ['run_input', 'message', 'tool_call', 'tool_call', 'diff', 'plan', 'memory', 'trace'].map((kind) => ({
      kind,
      id,
    })),
  )
  expect(() => refParts('sealed:x')).toThrow('no known kind')
})
