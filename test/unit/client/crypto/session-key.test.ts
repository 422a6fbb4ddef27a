import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { keyLine, parseKeyLine } from '../../../../src/client/crypto/key-line.ts'
import {
  generateKey,
  keyText,
  parseKeyText,
  sessionKey,
  versionOfKeyId,
} from '../../../../src/client/crypto/session-key.ts'
import { ok } from '../../../../src/protocol/result.ts'

describe('a session key', () => {
  test('[EC 17.1][D48] is 32 random bytes, named by their SHA-256 and by the version of its envelopes', async () => {
    const [old, bound] = [await generateKey(1), await generateKey(2)]
    for (const { key, prefix } of [
      { key: old, prefix: 'kf_' },
      { key: bound, prefix: 'kf2_' },
    ]) {
      const digest = createHash('sha256').update(key.bytes).digest('base64url')
      expect(key.keyId).toBe(`${prefix}${digest}`)
      expect(key.bytes).toHaveLength(32)
    }
    const many = await Promise.all(Array.from({ length: 100 }, () => generateKey(2)))
    expect(new Set(many.map(({ keyId }) => keyId)).size).toBe(100)
  })

  test.each([
    ['kf_Yw3NKWbEM2aRElRIu7JbT_QSpJxzLbLIq8G4WBvXEN0', 1],
    ['kf2_Yw3NKWbEM2aRElRIu7JbT_QSpJxzLbLIq8G4WBvXEN0', 2],
    ['kf3_Yw3NKWbEM2aRElRIu7JbT_QSpJxzLbLIq8G4WBvXEN0', null],
    ['kf_Yw3N', null],
    ['kf_../../../../../../../../../../etc/switchyard/key', null],
    ['kf_Yw3NKWbEM2aRElRIu7JbT_QSpJxzLbLIq8G4WBvXEN0\n', null],
    ['', null],
  ])('[D48] the id %j says version %j', (keyId, version) => {
    expect(versionOfKeyId(keyId)).toBe(version)
  })

  test('[EC 17.1] is written down and read again, and a wrong fingerprint shows', async () => {
    const key = await generateKey(1)
    expect(await parseKeyText(key.keyId, keyText(key))).toEqual(key)
    expect(await parseKeyText((await generateKey(1)).keyId, keyText(key))).toBeNull()
    expect(await parseKeyText(key.keyId, `${keyText(key)}=`)).toBeNull()
    expect(await parseKeyText(key.keyId, keyText(key).slice(0, -4))).toBeNull()
  })

  test('of another size is a mistake of the caller', async () => {
    await expect(sessionKey(new Uint8Array(16), 1)).rejects.toThrow('32 bytes')
  })
})

describe('the line of a key', () => {
  test.each([1, 2] as const)('carries a key of version %i', async (version) => {
    const key = await generateKey(version)
    expect(keyLine(key)).toBe(`switchyard-key:${key.keyId}:${keyText(key)}`)
    expect(await parseKeyLine(`  ${keyLine(key)}\r\n`)).toEqual(ok(key))
  })

  test('that was cut, mistyped or made up is refused without repeating any of it', async () => {
    const [key, other] = [await generateKey(2), await generateKey(2)]
    const line = keyLine(key)
    const swapped = `switchyard-key:${other.keyId}:${keyText(key)}`
    for (const wrong of [line.slice(0, -1), swapped, `${line}:more`, keyText(key), line.slice(15), '']) {
      const parsed = await parseKeyLine(wrong)
      expect(parsed).toMatchObject({ ok: false })
      expect(JSON.stringify(parsed)).not.toContain(keyText(key).slice(0, 20))
    }
  })
})
