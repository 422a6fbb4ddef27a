import { describe, expect, test } from 'vitest'
import {
  acknowledged,
  presentAccess,
  presentRefresh,
  rotated,
  type TokenFamily,
} from '../../../../src/core/gateway/rotation.ts'
import { MAX_RETIRED_FINGERPRINTS } from '../../../../src/protocol/remote/limits.ts'
import { isRetired, retire } from '../../../../src/storage/gateway/devices.ts'
import { migrateGateway } from '../../../../src/storage/gateway/migrations.ts'
import { makeNodeSql } from '../../../support/node/node-sql.ts'
import { type Issued, TokenServer } from './token-server.ts'

const digest = (name: string): string => name.repeat(64).slice(0, 64)
const [R1, R2, R3, A1, A2] = ['1', '2', '3', 'a', 'b'].map(digest) as [string, string, string, string, string]

/** As `paired` leaves it. */
const paired: TokenFamily = { current: R1, previous: null, access: { digest: A1, expiresAtMs: 1_000 } }

const next = {
  refreshDigest: R2,
  accessDigest: A2,
  accessExpiresAtMs: 2_000,
  rotationId: 'rotation 1',
  secret: 'secret 1',
}
/** After the first rotation, before its acknowledgement. */
const unacknowledged: TokenFamily = {
  current: R2,
  previous: { digest: R1, rotationId: 'rotation 1', secret: 'secret 1' },
  access: { digest: A2, expiresAtMs: 2_000 },
}
const settled: TokenFamily = { ...unacknowledged, previous: null }

describe('[RF 6] a presented refresh token', () => {
  test('the current one rotates', () => {
    expect(presentRefresh(paired, R1, false)).toEqual({ k: 'rotate' })
    expect(presentRefresh(unacknowledged, R2, false)).toEqual({ k: 'rotate' })
  })

  test('[D40][U33] the one before, not acknowledged, gets the rotation that it had', () => {
    const again = { k: 'again', rotationId: 'rotation 1', secret: 'secret 1' }
    expect(presentRefresh(unacknowledged, R1, false)).toEqual(again)
    expect(presentRefresh(unacknowledged, R1, false)).toEqual(again)
  })

  test('[U33] a retired one is a replay', () => {
    expect(presentRefresh(settled, R1, true)).toEqual({ k: 'replay' })
    expect(presentRefresh(unacknowledged, R3, true)).toEqual({ k: 'replay' })
  })

  test('one that this family never had is unknown: a guess revokes nothing', () => {
    expect(presentRefresh(unacknowledged, R3, false)).toEqual({ k: 'unknown' })
    expect(presentRefresh(unacknowledged, '', false)).toEqual({ k: 'unknown' })
  })

  test('an access token is no refresh token', () => {
    expect(presentRefresh(unacknowledged, A2, false)).toEqual({ k: 'unknown' })
  })

  test('a retired fingerprint that an accepted token happens to share does not make it a replay', () => {
    expect(presentRefresh(unacknowledged, R2, true)).toEqual({ k: 'rotate' })
    expect(presentRefresh(unacknowledged, R1, true)).toMatchObject({ k: 'again' })
  })
})

describe('[RF 6] a rotation', () => {
  test('makes the presented token the previous one, and retires none while that is not acknowledged', () => {
    expect(rotated(paired, R1, next)).toEqual({ family: unacknowledged, retired: [] })
  })

  test('retires the previous one when the device shows its successor without an acknowledgement', () => {
    const second = { ...next, refreshDigest: R3, rotationId: 'rotation 2', secret: 'secret 2' }
    expect(rotated(unacknowledged, R2, second)).toEqual({
      family: {
        current: R3,
        previous: { digest: R2, rotationId: 'rotation 2', secret: 'secret 2' },
        access: { digest: A2, expiresAtMs: 2_000 },
      },
      retired: [R1],
    })
  })

  test('of any other token than the current one is a broken invariant', () => {
    expect(() => rotated(unacknowledged, R1, next)).toThrow('invariant broken')
  })
})

describe('[RF 6] an acknowledgement', () => {
  test('retires the previous token, and the secret that could repeat its answer is gone', () => {
    expect(acknowledged(unacknowledged, 'rotation 1')).toEqual({ family: settled, retired: [R1] })
  })

  test('of an older or unknown rotation, or a second time, is ignored', () => {
    expect(acknowledged(unacknowledged, 'rotation 0')).toBeNull()
    expect(acknowledged(settled, 'rotation 1')).toBeNull()
    expect(acknowledged(paired, 'rotation 1')).toBeNull()
  })
})

describe('[RF 6] an access token', () => {
  test('is accepted until the moment at which it expires', () => {
    expect(presentAccess(settled, A2, 1_999)).toEqual({ ok: true, expiresAtMs: 2_000 })
    expect(presentAccess(settled, A2, 2_000)).toEqual({ ok: false })
  })

  test('that a rotation replaced, that is none, or a refresh token, is not', () => {
    expect([A1, R2, R1, ''].map((token) => presentAccess(unacknowledged, token, 0))).toEqual(
      Array(4).fill({ ok: false }),
    )
    expect(presentAccess({ ...settled, access: null }, A2, 0)).toEqual({ ok: false })
  })
})

test('[D40] a retry long after the access token expired is told the original time, and the same tokens', () => {
  const server = new TokenServer({ refreshToken: 'r', accessToken: 'a' }, 0, {
    has: () => false,
    add: () => {},
  })
  const first = server.refresh('r', 5_000)
  server.restart()
  expect(server.refresh('r', 5_000_000)).toEqual({ ...first, k: 'again' })
  expect(first).toMatchObject({ k: 'rotated', issued: { accessExpiresAtMs: 905_000 } })
})

test('[D40] what is kept for a retry is neither token', () => {
  const server = new TokenServer({ refreshToken: 'r', accessToken: 'a' }, 0, {
    has: () => false,
    add: () => {},
  })
  const answer = server.refresh('r', 0)
  if (answer.k !== 'rotated') throw new Error(answer.k)
  const { refreshToken, accessToken, rotationId } = answer.issued
  expect(server.stored).toContain(rotationId)
  expect(server.stored).not.toContain(refreshToken)
  expect(server.stored).not.toContain(accessToken)
})

describe(`[RF 6] the ${MAX_RETIRED_FINGERPRINTS} tokens retired most recently are remembered`, () => {
  /** A pairing whose device rotated, and acknowledged, so often; with all tokens that it had, the oldest first. */
  function rotatedTimes(times: number): { server: TokenServer; tokens: string[] } {
    const sql = makeNodeSql()
    migrateGateway(sql)
    const server = new TokenServer({ refreshToken: 'first', accessToken: 'a' }, 0, {
      has: (digest) => isRetired(sql, 'device', digest),
      add: (digests) => retire(sql, 'device', digests),
    })
    const tokens = ['first']
    for (let n = 0; n < times; n++) {
      const answer = server.refresh(tokens.at(-1) ?? '', n)
      if (answer.k !== 'rotated') throw new Error(`rotation ${n} was ${answer.k}`)
      const issued: Issued = answer.issued
      if (!server.acknowledge(issued.rotationId)) throw new Error(`rotation ${n} was not acknowledged`)
      tokens.push(issued.refreshToken)
    }
    return { server, tokens }
  }

  test('one retired before them is only unknown, and the pairing lasts; the oldest of them revokes it', () => {
    const { server, tokens } = rotatedTimes(MAX_RETIRED_FINGERPRINTS + 1)
    expect(server.refresh(tokens[0] ?? '', 0)).toEqual({ k: 'unauthorized' })
    expect(server.refresh(tokens.at(-1) ?? '', 0)).toMatchObject({ k: 'rotated' })
    expect(server.refresh(tokens[1] ?? '', 0)).toEqual({ k: 'token_replayed' })
    expect(server.revoked).toBe(true)
  })
})
