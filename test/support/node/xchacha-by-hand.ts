import { createCipheriv, createDecipheriv } from 'node:crypto'

/**
 * XChaCha20-Poly1305 a second time, made of other parts than the product's: HChaCha20 written out after the draft
 * (draft-irtf-cfrg-xchacha, 2.2), the rest by OpenSSL. What both agree on is the algorithm and not one of its writers.
 */

const TAG_BYTES = 16
const CIPHER = 'chacha20-poly1305'

/** The ciphertext with its tag behind it. */
export function sealByHand(key: Uint8Array, nonce: Uint8Array, text: Uint8Array, bound: Uint8Array): Buffer {
  const { subkey, shortNonce } = derived(key, nonce)
  const cipher = createCipheriv(CIPHER, subkey, shortNonce, { authTagLength: TAG_BYTES })
  cipher.setAAD(bound, { plaintextLength: text.length })
  return Buffer.concat([cipher.update(text), cipher.final(), cipher.getAuthTag()])
}

/** What was sealed; throws when the tag does not fit. */
export function openByHand(
  key: Uint8Array,
  nonce: Uint8Array,
  sealed: Uint8Array,
  bound: Uint8Array,
): Buffer {
  const { subkey, shortNonce } = derived(key, nonce)
  const end = sealed.length - TAG_BYTES
  const decipher = createDecipheriv(CIPHER, subkey, shortNonce, { authTagLength: TAG_BYTES })
  decipher.setAAD(bound, { plaintextLength: end })
  decipher.setAuthTag(sealed.subarray(end))
  return Buffer.concat([decipher.update(sealed.subarray(0, end)), decipher.final()])
}

const derived = (key: Uint8Array, nonce: Uint8Array) => ({
  subkey: hChaCha20(key, nonce.subarray(0, 16)),
  shortNonce: Buffer.concat([Buffer.alloc(4), nonce.subarray(16)]),
})

/** 256 bits of a key and 128 of a nonce give 256 of a subkey. */
export function hChaCha20(key: Uint8Array, nonce: Uint8Array): Buffer {
  const words = [...Buffer.from('expand 32-byte k', 'latin1'), ...key, ...nonce]
  const start = new DataView(Uint8Array.from(words).buffer)
  const state = Uint32Array.from({ length: 16 }, (_, i) => start.getUint32(4 * i, true))
  for (let round = 0; round < 10; round++) {
    for (const i of [0, 1, 2, 3]) quarterRound(state, i, 4 + i, 8 + i, 12 + i)
    for (const i of [0, 1, 2, 3])
      quarterRound(state, i, 4 + ((i + 1) % 4), 8 + ((i + 2) % 4), 12 + ((i + 3) % 4))
  }
  const subkey = Buffer.alloc(32)
  for (const i of [0, 1, 2, 3]) {
    subkey.writeUInt32LE(state[i] ?? 0, 4 * i)
    subkey.writeUInt32LE(state[12 + i] ?? 0, 16 + 4 * i)
  }
  return subkey
}

function quarterRound(state: Uint32Array, a: number, b: number, c: number, d: number): void {
  const step = (to: number, from: number, mixed: number, bits: number) => {
    state[to] = (state[to] ?? 0) + (state[from] ?? 0)
    const word = (state[mixed] ?? 0) ^ (state[to] ?? 0)
    state[mixed] = (word << bits) | (word >>> (32 - bits))
  }
  step(a, b, d, 16)
  step(c, d, b, 12)
  step(a, b, d, 8)
  step(c, d, b, 7)
}
