import { xchacha20poly1305 } from '@noble/ciphers/chacha.js'
import { describe, expect, test } from 'vitest'
import { hChaCha20, openByHand, sealByHand } from '../../../support/node/xchacha-by-hand.ts'

const hex = (text: string) => new Uint8Array(Buffer.from(text.replace(/\s/g, ''), 'hex'))
const range = (from: number, length: number) => Uint8Array.from({ length }, (_, i) => from + i)

/** draft-irtf-cfrg-xchacha-03, A.3.1. */
const PUBLISHED = {
  key: range(0x80, 32),
  nonce: range(0x40, 24),
  bound: hex('50515253c0c1c2c3c4c5c6c7'),
  text: new TextEncoder().encode(
    "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it.",
  ),
  sealed: hex(`
    bd6d179d3e83d43b9576579493c0e939 572a1700252bfaccbed2902c21396cbb
    731c7f1b0b4aa6440bf3a82f4eda7e39 ae64c6708c54c216cb96b72e1213b452
    2f8c9ba40db5d945b11b69b982c1bb9e 3f3fac2bc369488f76b2383565d3fff9
    21f9664c97637da9768812f615c68b13 b52e
    c0875924c1c7987947deafd8780acf49`),
}

describe('[EC 17.1] XChaCha20-Poly1305', () => {
  const { key, nonce, bound, text, sealed } = PUBLISHED

  test('the product’s cipher gives the published ciphertext and takes it back', () => {
    const cipher = () => xchacha20poly1305(key, nonce, bound)
    expect(cipher().encrypt(text)).toEqual(sealed)
    expect(cipher().decrypt(sealed)).toEqual(text)
  })

  test('so does the one that the vectors are checked with', () => {
    expect(new Uint8Array(sealByHand(key, nonce, text, bound))).toEqual(sealed)
    expect(new Uint8Array(openByHand(key, nonce, sealed, bound))).toEqual(text)
    expect(() => openByHand(key, nonce, sealed, hex('00'))).toThrow()
    // The draft's own example of the subkey, 2.2.1.
    const subkey = hChaCha20(range(0, 32), hex('000000090000004a0000000031415927'))
    expect(subkey.toString('hex')).toBe('82413b4227b27bfed30e42508a877d73a0f9e4d58a74a853c12ec41326d3ecdc')
  })
})
