import { xchacha20poly1305 } from '@noble/ciphers/chacha.js'
import { fromBase64url, toBase64url } from '../../protocol/base64url.ts'
import type { ContentRef } from '../../protocol/execution/ids.ts'
import {
  ENVELOPE_ALGORITHM,
  ENVELOPE_NONCE_BYTES,
  type EncryptedPayload,
  envelopeProblem,
} from '../../protocol/execution/sealed.ts'
import { err, ok, type Result } from '../../protocol/result.ts'
import type { SessionKey } from './session-key.ts'

/** Seals and opens the content of one session (EC 17.1). */
export type Sealer = {
  readonly keyId: string
  /**
   * Seals a text for one place of the session, under a new random nonce each time.
   * Throws a `TypeError` for text that is no valid Unicode (half of a surrogate pair): UTF-8 cannot carry it, and what is
   * opened must be what was sealed.
   */
  seal(ref: ContentRef, text: string): EncryptedPayload
  /** The text of an envelope that lies at `ref`, or why there is none. Never throws. */
  open(ref: ContentRef, payload: EncryptedPayload): Result<string, SealProblem>
}

export type SealProblem =
  /** Sealed with another key, which is named: it is not damaged but locked (U35). */
  | { kind: 'other_key'; keyId: string }
  /**
   * `unknown_version`: a later client wrote it. `malformed`: no envelope of this session, whatever the key says.
   * `damaged`: the key does not confirm it; it was changed, or (version 2) moved here from elsewhere.
   */
  | { kind: 'unknown_version' | 'malformed' | 'damaged'; message: string }

/** A sentence to show in the place of the text. A key id comes from outside: make it printable before it is shown. */
export const sealProblemText = (problem: SealProblem): string =>
  problem.kind === 'other_key' ? `locked: key ${problem.keyId} is needed` : problem.message

/**
 * The sealer of one session. The key decides the version of its envelopes, both ways (D48): a `kf2_` key never opens an
 * envelope of version 1, so nobody can pass one off that is bound to no place.
 * @param sessionId as the router writes it
 */
export function makeSealer(key: SessionKey, sessionId: string): Sealer {
  // The place is written line by line: an id with a line break could name another session's place.
  if (/[\r\n]/.test(sessionId)) throw new TypeError('a session id is one line')
  const cipherFor = (ref: ContentRef, nonce: Uint8Array) =>
    key.version === 1
      ? xchacha20poly1305(key.bytes, nonce)
      : xchacha20poly1305(key.bytes, nonce, placeBytes(sessionId, ref))

  return {
    keyId: key.keyId,
    seal(ref, text) {
      if (!text.isWellFormed()) throw new TypeError(`the text of ${ref} is no valid Unicode`)
      const nonce = crypto.getRandomValues(new Uint8Array(ENVELOPE_NONCE_BYTES))
      return {
        version: key.version,
        algorithm: ENVELOPE_ALGORITHM,
        key_id: key.keyId,
        nonce: toBase64url(nonce),
        ciphertext: toBase64url(cipherFor(ref, nonce).encrypt(UTF8.encode(text))),
      }
    },
    open(ref, payload) {
      const parts = readEnvelope(key, payload)
      if (!parts.ok) return parts
      const bytes = decrypted(cipherFor(ref, parts.value.nonce), parts.value.ciphertext)
      if (bytes === null) return err({ kind: 'damaged', message: DAMAGED[key.version] })
      const text = utf8Text(bytes)
      return text === null ? malformed('what was sealed is no text') : ok(text)
    },
  }
}

const DAMAGED = {
  1: 'damaged: it is not what was sealed with this key',
  2: 'damaged: it is not what was sealed with this key for this place',
} as const

type Parts = { nonce: Uint8Array; ciphertext: Uint8Array }

/** Everything that shows before the key is used. */
function readEnvelope(key: SessionKey, payload: EncryptedPayload): Result<Parts, SealProblem> {
  // First of all: whoever lacks the key is told which one, whatever else there is to say.
  if (payload.key_id !== key.keyId) return err({ kind: 'other_key', keyId: payload.key_id })
  if (payload.version !== 1 && payload.version !== 2)
    return err({
      kind: 'unknown_version',
      message: `sealed by a later version of this program: envelope version ${payload.version} is not known here`,
    })
  const problem = envelopeProblem(payload, key.keyId)
  if (problem !== null) return malformed(problem)
  const nonce = fromBase64url(payload.nonce)
  const ciphertext = fromBase64url(payload.ciphertext)
  if (nonce === null || ciphertext === null)
    throw new Error('invariant broken: a checked envelope is unreadable')
  return ok({ nonce, ciphertext })
}

const malformed = (what: string): { ok: false; error: SealProblem } =>
  err({ kind: 'malformed', message: `no valid envelope: ${what}` })

function decrypted(
  cipher: { decrypt(ciphertext: Uint8Array): Uint8Array },
  ciphertext: Uint8Array,
): Uint8Array | null {
  try {
    return cipher.decrypt(ciphertext)
  } catch {
    // The sizes are right: what is left to fail is the tag.
    return null
  }
}

const UTF8 = new TextEncoder()

/** A text may begin with U+FEFF: it belongs to it and is no byte order mark to drop. */
const UTF8_ONLY = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function utf8Text(bytes: Uint8Array): string | null {
  try {
    return UTF8_ONLY.decode(bytes)
  } catch {
    return null
  }
}

/** What version 2 binds a ciphertext to: one place of one session. */
const placeBytes = (sessionId: string, ref: ContentRef): Uint8Array =>
  UTF8.encode(`switchyard-envelope-v2\n${sessionId}\n${ref}`)
