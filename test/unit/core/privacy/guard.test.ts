import { describe, expect, test } from 'vitest'
import { makePrivacyGuard, sayConstraint } from '../../../../src/core/privacy/guard.ts'
import { makeCall, makePrivacy, makeRule } from '../../../support/core/builders.ts'

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
    const constrained = ['a/x', 'b/x', 'c/x', 'd/x', 'e/x'].filter((path) => all.constraintOf(path) !== null)
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
    expect(guard([pattern]).constraintOf(path) !== null).toBe(expected)
  })

  test('[EC 8.2] an invalid pattern in any of the lists constrains every path', () => {
    const closed = [
      guard(['fine', '[a']),
      makePrivacyGuard(makePrivacy({ remote: { blocked_paths: ['{a'] } }), [], '/code'),
      makePrivacyGuard(makePrivacy({}), [makeRule({ name: 'r', paths: ['a\\'], local_only: true })], '/code'),
      guard(['*'.repeat(300)]),
    ]
    for (const one of closed) {
      expect(one.constraintOf('any/thing')?.how).toBe('invalid pattern')
      expect(one.constrainsSome).toBe(true)
    }
  })

  test('without patterns nothing is constrained', () => {
    expect(guard([]).constraintOf('.env')).toBeNull()
    expect(guard([]).constrainsSome).toBe(false)
    expect(guard(['x']).constrainsSome).toBe(true)
  })
})

describe('[EC 8.2] a privacy pattern is only ever read more tightly', () => {
  test.each([
    // root, pattern, path, how it is covered
    ['/code', '**/.env', 'app/.env', 'path'],
    ['/code', '.env', 'app/.env', 'base name'],
    ['/code', 'secrets', 'secrets/key', 'folder'],
    ['/code', 'secrets', 'a/secrets/deep/key', 'folder'],
    ['/code', 'secrets/', 'a/secrets/key', 'folder'],
    ['/code', 'a/b', 'a/b/c/d', 'folder'],
    ['/code', '**/.ssh', '/home/u/.ssh/id', 'folder'],
    ['/code', 'a/b', 'x/a/b/c', null],
    ['/code', 'secrets', 'secrets.md', null],
    ['/code', '/secrets/**', 'secrets/key', 'spelling'],
    ['/code', '/secrets/**', '/secrets/key', 'path'],
    ['/code', '/secrets/**', 'a/secrets/key', null],
    ['/code', 'secrets//**', 'secrets/key', 'spelling'],
    ['/code', 'x/../secrets/**', 'secrets/key', 'spelling'],
    ['/a/app', '../app/k', 'k', 'spelling'],
    ['/code', 'secrets\\key', 'secrets/key', 'spelling'],
    ['C:\\code', 'secrets\\deep\\**', 'secrets\\deep\\key', 'spelling'],
    ['/home/u/code', '~/.aws/**', '/home/u/.aws/credentials', 'path'],
    ['/home/u/code', '~/.aws/**', '/home/other/.aws/credentials', 'path'],
    ['/home/u/code', '~/.aws/**', '/root/.aws/credentials', 'path'],
    ['/home/u/code', '~/.aws/**', '~/.aws/credentials', 'path'],
    ['/home/u/code', '/home/u/.aws/**', '~/.aws/credentials', 'spelling'],
    ['/home/u/code', '/home/u/.aws/**', '~u/.aws/credentials', 'spelling'],
    ['/home/u/code', '/home/u/.aws/**', '$HOME/.aws/credentials', 'spelling'],
    ['/srv/code', '/home/u/.aws/**', '~/.aws/credentials', 'spelling'],
    ['/home/u/code', '/home/other/.aws/**', '~/.aws/credentials', null],
    ['/Users/u/code', 'secrets/**', 'Secrets/KEY', 'letter case'],
    ['/Users/u/code', 'secrets/**', '/USERS/U/CODE/SECRETS/KEY', 'letter case'],
    ['/Volumes/d/code', '[S]ecrets/**', 'seCRets/key', 'letter case'],
    ['/mnt/c/code', '.ENV', '.env', 'letter case'],
    ['\\\\server\\share\\code', 'secrets/**', 'SECRETS\\key', 'letter case'],
    ['/home/u/code', 'secrets/**', 'Secrets/key', null],
    ['/home/u/code', '/mnt/c/k/**', '/mnt/c/K/x', 'letter case'],
    ['C:\\code', 'secrets/**', 'secrets./key', 'spelling'],
    ['C:\\code', '.env', '.env::$DATA', 'spelling'],
    ['C:\\code', '.env', '.env . ', 'spelling'],
    ['C:\\code', '.env', '.env:stream', 'spelling'],
    ['C:\\code', 'secrets/**', '/c/code/secrets/key', 'spelling'],
    ['C:\\code', 'secrets/**', '/mnt/c/code/secrets/key', 'spelling'],
    ['C:\\code', 'secrets/**', '\\code\\secrets\\key', 'spelling'],
    ['C:\\code', 'secrets/**', '\\\\?\\C:\\code\\secrets\\key', 'spelling'],
    ['C:\\code', 'secrets/**', 'C:secrets\\key', 'spelling'],
    ['/mnt/c/code', 'secrets/**', 'C:\\code\\secrets\\key', 'spelling'],
    ['/code', 'secrets/**', 'file:///code/secrets/%6bey', 'spelling'],
    ['/code', 'secrets/**', '/proc/self/cwd/secrets/key', 'spelling'],
    ['/code', 'secrets/**', '$PWD/secrets/key', 'spelling'],
    ['/private/var/code', 'secrets/**', '/var/code/secrets/key', 'spelling'],
    ['/code', '.env', '.e\u200bnv', 'spelling'],
    ['', 'secrets/**', '/anywhere/secrets/key', 'spelling'],
  ])('in %j, %j covers %j: %s', (root, pattern, path, how) => {
    expect(guard([pattern], root).constraintOf(path)?.how ?? null).toBe(how)
  })

  const DRIVE_SPELLINGS = ['C:\\x\\y', 'c:/x/y', '\\\\?\\C:\\x\\y', 'file:///C:/x/y']
  test.each([
    ['C:\\w', [...DRIVE_SPELLINGS, '/c/x/y', '/mnt/c/x/y', '/cygdrive/c/x/y', '../x/y']],
    ['c:\\w', [...DRIVE_SPELLINGS, '/c/x/y', '/mnt/c/x/y', '/cygdrive/c/x/y', '../x/y']],
    ['/mnt/c/w', [...DRIVE_SPELLINGS, '/mnt/c/x/y', '../x/y']],
    ['/c/w', [...DRIVE_SPELLINGS, '/c/x/y', '../x/y']],
  ])('below %j a drive goes by all of its names, in patterns as in paths', (root, spellings) => {
    const uncovered = spellings.flatMap((pattern) =>
      spellings.filter((path) => guard([pattern], root).constraintOf(path) === null),
    )
    expect(uncovered).toEqual([])
    expect(guard(spellings, root).constraintOf('z/y')).toBeNull()
  })

  test('[D17] without a root, a path of countless folders is not taken apart but counts as private', () => {
    const path = `${'/a'.repeat(100)}/b`
    expect(guard(['x/**'], '').constraintOf(path)).toEqual({
      path,
      pattern: 'x/**',
      list: 'restricted_paths',
      how: 'too long',
    })
    expect(guard([], '').constraintOf(path)).toBeNull()
    expect(guard(['x/**'], '/code').constraintOf(path)).toBeNull()
  })

  test('[D17] a pathological pattern is matched against a long path and its folders in linear time', () => {
    const folders = 'a/'.repeat(2000)
    expect(guard(['**/a/**/a/**/a/**/a/**/a/**/b']).constraintOf(`${folders}x`)).toBeNull()
    expect(guard(['**/a/**/a/**/a/**/b']).constraintOf(`${folders}b/x`)?.how).toBe('folder')
  })

  test('a folder whose contents are constrained counts with them, and is what reports show', () => {
    expect(guard(['secrets/**']).constraintOf('secrets')).toBeNull()
    expect(guard(['secrets/**']).constraintOfFolder('./secrets/')).toEqual({
      path: 'secrets',
      pattern: 'secrets/**',
      list: 'restricted_paths',
      how: 'path',
    })
    expect(guard(['secrets/**']).constraintOfFolder('src')).toBeNull()
  })
})

test('[EC 9] a constraint says path, pattern, list, and how they meet', () => {
  const all = makePrivacyGuard(
    makePrivacy({ restricted_paths: ['**/.env', '*.pem'], remote: { blocked_paths: ['docs'] } }),
    [makeRule({ name: 'mine', paths: ['/x/**'], local_only: true })],
    '/code',
  )
  const said = ['app/.env', 'a/b.pem', 'docs/a', 'x/a'].map((path) => {
    const constraint = all.constraintOf(path)
    return constraint === null ? null : sayConstraint(constraint)
  })
  expect(said).toEqual([
    '`app/.env` matches `**/.env` of restricted_paths',
    '`a/b.pem` matches `*.pem` of restricted_paths',
    '`docs/a` matches `docs` of remote.blocked_paths (by its folder)',
    '`x/a` matches `/x/**` of rule `mine` (in another spelling)',
  ])
  const long = `${'['.repeat(200)}".env"${']'.repeat(200)}`
  const unread = all.constraintOfCall(makeCall({ name: 'a_tool' }, long))
  expect(unread && sayConstraint(unread)).toBe(
    'its result is too long to be read to its end, so it counts as matching `**/.env` of restricted_paths',
  )
  const broken = guard(['[']).constraintOf('a')
  expect(broken && sayConstraint(broken)).toBe(
    '`[` of restricted_paths is no valid pattern, so every path counts',
  )
})

test('the same policy gives the same guard, and another one where the rules or the root are others', () => {
  const privacy = makePrivacy({ restricted_paths: ['a/**'] })
  const rules = [makeRule({ name: 'r', paths: ['b/**'], local_only: true })]
  const first = makePrivacyGuard(privacy, rules, '/code')
  expect(makePrivacyGuard(privacy, rules, '/code')).toBe(first)
  expect(makePrivacyGuard(privacy, [], '/code').constraintOf('b/x')).toBeNull()
  expect(makePrivacyGuard(privacy, rules, '/other').constraintOf('/code/b/x')).toBeNull()
  expect(makePrivacyGuard(privacy, rules, '/code').constraintOf('/code/b/x')?.list).toBe('rule `r`')
})
