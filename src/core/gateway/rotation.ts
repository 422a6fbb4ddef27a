import { assert } from '../../protocol/assert.ts'
import { sameDigest } from './codes.ts'

/**
 * The tokens of one device that rotates them, as digests (remote protocol, "Rotating tokens"; RF 6). Of the refresh
 * tokens at most two are accepted: the newest, and the one before it until the device has acknowledged the newest.
 */
export type TokenFamily = {
  current: string
  previous: {
    digest: string
    /** Of the rotation that replaced it. */
    rotationId: string
    /** With the token itself, and never without, it yields the tokens of that rotation again (D40). */
    secret: string
  } | null
  /** Of the newest rotation, or of the pairing. Kept when it has expired: a retry is told the same time again. */
  access: { digest: string; expiresAtMs: number } | null
}

export type RefreshVerdict =
  /** Issue new tokens. */
  | { k: 'rotate' }
  /** The answer to it was lost, or another route was faster: derive the same tokens again, and change nothing. */
  | { k: 'again'; rotationId: string; secret: string }
  /** Retired for good, so two hold this family: it is revoked. */
  | { k: 'replay' }
  /** Never issued, or retired too long ago to know: refused, and the family stays. */
  | { k: 'unknown' }

/** What a presented refresh token is to a family. `isRetired`: its fingerprint is among the retired ones. */
export function presentRefresh(family: TokenFamily, digest: string, isRetired: boolean): RefreshVerdict {
  const { current, previous } = family
  if (sameDigest(digest, current)) return { k: 'rotate' }
  if (previous !== null && sameDigest(digest, previous.digest))
    return { k: 'again', rotationId: previous.rotationId, secret: previous.secret }
  return isRetired ? { k: 'replay' } : { k: 'unknown' }
}

/**
 * The family after a rotation, and the digests that are retired by it: the one before the presented token, if that was
 * not acknowledged, since only one predecessor is ever accepted. Where something was awaited since the verdict, ask for
 * it again before: a rotation of any other token than the current one is a broken invariant.
 */
export function rotated(
  family: TokenFamily,
  presented: string,
  next: {
    refreshDigest: string
    accessDigest: string
    accessExpiresAtMs: number
    rotationId: string
    secret: string
  },
): { family: TokenFamily; retired: string[] } {
  assert(sameDigest(presented, family.current), 'only the current refresh token rotates')
  return {
    family: {
      current: next.refreshDigest,
      previous: { digest: presented, rotationId: next.rotationId, secret: next.secret },
      access: { digest: next.accessDigest, expiresAtMs: next.accessExpiresAtMs },
    },
    retired: retiredWith(family),
  }
}

/** The family once the device holds the tokens of this rotation; null for an older or unknown one, which is ignored. */
export function acknowledged(
  family: TokenFamily,
  rotationId: string,
): { family: TokenFamily; retired: string[] } | null {
  if (family.previous?.rotationId !== rotationId) return null
  return { family: { ...family, previous: null }, retired: retiredWith(family) }
}

/** Whether an access token is the newest one and has not expired; at the very moment of its expiry it has. */
export function presentAccess(
  family: TokenFamily,
  digest: string,
  nowMs: number,
): { ok: true; expiresAtMs: number } | { ok: false } {
  const { access } = family
  if (access === null || !sameDigest(digest, access.digest) || nowMs >= access.expiresAtMs)
    return { ok: false }
  return { ok: true, expiresAtMs: access.expiresAtMs }
}

const retiredWith = (family: TokenFamily): string[] =>
  family.previous === null ? [] : [family.previous.digest]
