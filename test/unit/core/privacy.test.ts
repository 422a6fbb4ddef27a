import { describe, expect, test } from 'vitest'
import { makePrivacyGuard } from '../../../src/core/privacy.ts'
import { makePrivacy, makeRule } from '../../support/core/builders.ts'

const guard = (restricted: string[], root = '/code') =>
  makePrivacyGuard(makePrivacy({ restricted_paths: restricted }), [], root)

describe('[EC 9] an item is constrained by its path', () => {
  test('when restricted, blocked for remote models, or named by a local-only rule', () => {
    const all = makePrivacyGuard(
      makePrivacy({ restricted_paths: ['a/**'], remote: { blocked_paths: ['b/**'] } }),
      [
        makeRule({ name: 'local', paths: ['c/**'], local_only: true }),
        makeRule({ name: 'free', paths: ['d/**'] }),
      ],
      '/code',
    )
    const constrained = ['a/x', 'b/x', 'c/x', 'd/x', 'e/x'].filter((path) => all.isConstrained(path))
    expect(constrained).toEqual(['a/x', 'b/x', 'c/x'])
  })

  test.each([
    // pattern, path, constrained
    ['.env', 'app/.env', true],
    ['*.pem', 'certs/a.pem', true],
    ['id_rsa', '/home/u/.ssh/id_rsa', true],
    ['app/.env', 'other/app/.env', false],
    ['.env', '.env.example', false],
    ['secrets/**', '/code/secrets/key', true],
    ['secrets/**', './secrets/../secrets/key', true],
    ['secrets/**', 'secrets\\key', true],
    ['secrets/**', '/elsewhere/secrets/key', false],
    ['/code/secrets/**', 'secrets/key', true],
    ['/code/secrets/**', '/code/secrets/key', true],
    ['/home/u/.ssh/**', '../home/u/.ssh/key', true],
    ['../common/**', '/common/key', true],
    ['../common/**', '../common/key', true],
    ['./secrets/**', 'secrets/key', true],
    ['secrets/', 'secrets/key', true],
    ['secrets/', 'secret/key', false],
    ['**/code/**', 'src/a.ts', false],
    ['geheim-u\u0308/**', 'geheim-\u00fc/x', true],
    ['C:/code/secrets/**', 'c:\\code\\secrets\\key', true],
    ['c:/code/secrets/**', 'C:\\code\\secrets\\key', true],
  ])('[EC 8.2] %j constrains %j: %s', (pattern, path, expected) => {
    expect(guard([pattern]).isConstrained(path)).toBe(expected)
  })

  test('[EC 8.2] an invalid pattern in any of the lists constrains every path', () => {
    const closed = [
      guard(['fine', '[a']),
      makePrivacyGuard(makePrivacy({ remote: { blocked_paths: ['{a'] } }), [], '/code'),
      makePrivacyGuard(makePrivacy({}), [makeRule({ name: 'r', paths: ['a\\'], local_only: true })], '/code'),
      guard(['*'.repeat(300)]),
    ]
    for (const one of closed) {
      expect(one.isConstrained('any/thing')).toBe(true)
      expect(one.constrainsSome).toBe(true)
    }
  })

  test('without patterns nothing is constrained', () => {
    expect(guard([]).isConstrained('.env')).toBe(false)
    expect(guard([]).constrainsSome).toBe(false)
    expect(guard(['x']).constrainsSome).toBe(true)
  })
})
