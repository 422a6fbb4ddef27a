import { createHash } from 'node:crypto'
import {
  acknowledged,
  presentAccess,
  presentRefresh,
  rotated,
  type TokenFamily,
} from '../../../../src/core/gateway/rotation.ts'

export const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex')

/** What an accepted refresh token is answered with. */
export type Issued = {
  refreshToken: string
  accessToken: string
  accessExpiresAtMs: number
  rotationId: string
}

export type RefreshAnswer =
  | { k: 'rotated' | 'again'; issued: Issued }
  | { k: 'token_replayed' | 'unauthorized' }

/** Where retired digests are remembered. */
export type Retired = { has(digest: string): boolean; add(digests: readonly string[]): void }

const ACCESS_TTL_MS = 15 * 60_000

/** One device's pairing as a gateway keeps it: whatever it knows from one frame to the next is a family of digests. */
export class TokenServer {
  #family: TokenFamily | null
  #retired: Retired
  #secrets = 0

  constructor(pairing: { refreshToken: string; accessToken: string }, nowMs: number, retired: Retired) {
    this.#retired = retired
    this.#family = {
      current: digestOf(pairing.refreshToken),
      previous: null,
      access: { digest: digestOf(pairing.accessToken), expiresAtMs: nowMs + ACCESS_TTL_MS },
    }
  }

  get revoked(): boolean {
    return this.#family === null
  }

  refresh(token: string, nowMs: number): RefreshAnswer {
    if (this.#family === null) return { k: 'unauthorized' }
    const digest = digestOf(token)
    const verdict = presentRefresh(this.#family, digest, this.#retired.has(digest))
    if (verdict.k === 'unknown') return { k: 'unauthorized' }
    if (verdict.k === 'replay') {
      this.#family = null
      return { k: 'token_replayed' }
    }
    if (verdict.k === 'again')
      return { k: 'again', issued: this.#issued(token, verdict.secret, this.#family) }
    const secret = `secret ${this.#secrets++}`
    const next = successorOf(token, secret)
    const { family, retired } = rotated(this.#family, digest, {
      refreshDigest: digestOf(next.refreshToken),
      accessDigest: digestOf(next.accessToken),
      accessExpiresAtMs: nowMs + ACCESS_TTL_MS,
      rotationId: next.rotationId,
      secret,
    })
    this.#family = family
    this.#retired.add(retired)
    return { k: 'rotated', issued: this.#issued(token, secret, family) }
  }

  acknowledge(rotationId: string): boolean {
    const done = this.#family && acknowledged(this.#family, rotationId)
    if (!done) return false
    this.#family = done.family
    this.#retired.add(done.retired)
    return true
  }

  access(token: string, nowMs: number): ReturnType<typeof presentAccess> {
    return this.#family ? presentAccess(this.#family, digestOf(token), nowMs) : { ok: false }
  }

  /** The object is gone, and comes back with what was stored. */
  restart(): void {
    this.#family = JSON.parse(JSON.stringify(this.#family))
  }

  /** What is at rest. */
  get stored(): string {
    return JSON.stringify(this.#family)
  }

  #issued(presented: string, secret: string, family: TokenFamily): Issued {
    return { ...successorOf(presented, secret), accessExpiresAtMs: family.access?.expiresAtMs ?? Number.NaN }
  }
}

/** The tokens that follow one under a secret: the same for the same two, as a key derivation gives them (D40). */
function successorOf(presented: string, secret: string): Omit<Issued, 'accessExpiresAtMs'> {
  const derive = (purpose: string): string => digestOf(`${purpose} of ${presented} under ${secret}`)
  return {
    refreshToken: derive('refresh'),
    accessToken: derive('access'),
    rotationId: derive('rotation').slice(0, 16),
  }
}

export function rememberedInMemory(): Retired {
  const digests = new Set<string>()
  return {
    has: (digest) => digests.has(digest),
    add: (more) => {
      for (const digest of more) digests.add(digest)
    },
  }
}
