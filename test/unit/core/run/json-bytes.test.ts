import { expect, test } from 'vitest'
import { jsonBytes } from '../../../../src/core/run/json-bytes.ts'

const encoder = new TextEncoder()

test('[D27] a text weighs what it takes inside a JSON document', () => {
  const every = Array.from({ length: 0x2ff }, (_, code) => String.fromCharCode(code)).join('')
  for (const text of ['', 'plain', every, 'ü€😀', '\ud800 alone', '\udc00', 'a\ud83d', '\u2028"\\\n\t'])
    expect(jsonBytes(text)).toBe(encoder.encode(JSON.stringify(text)).byteLength - 2)
})
