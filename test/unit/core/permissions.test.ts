import { describe, expect, test } from 'vitest'
import {
  callMode,
  narrowPermissions,
  type PermissionMap,
  stricter,
  toolMode,
} from '../../../src/core/permissions.ts'
import type { PermissionMode } from '../../../src/protocol/execution/policy.ts'
import { must } from '../../support/core/builders.ts'

const MODES: (PermissionMode | undefined)[] = [undefined, 'allow', 'ask', 'deny']

describe('[EC 4] modes are ordered allow, ask, deny', () => {
  test.each(MODES.flatMap((a, i) => MODES.map((b, j) => [a, b, MODES[Math.max(i, j)]] as const)))(
    'the stricter of %s and %s is %s',
    (a, b, expected) => {
      expect(stricter(a, b)).toBe(expected)
    },
  )
})

describe('[EC 12.2] which keys govern which tool', () => {
  test.each<[string, PermissionMap, PermissionMode]>([
    // tool, permissions, mode
    ['read_file', {}, 'ask'],
    ['read_file', { read_file: 'allow' }, 'allow'],
    ['read_file', { file_read: 'deny' }, 'deny'],
    ['read_file', { read_file: 'allow', file_read: 'ask' }, 'ask'],
    ['read_file', { read_file: 'deny', file_read: 'allow' }, 'deny'],
    ['read_file', { file_write: 'deny' }, 'ask'],
    ['write_file', { file_write: 'deny' }, 'deny'],
    ['edit_file', { file_write: 'deny' }, 'deny'],
    ['edit_file', { edit_file: 'allow', file_write: 'allow' }, 'allow'],
    ['edit_file', { write_file: 'deny' }, 'ask'],
    ['shell', { shell: 'allow' }, 'allow'],
    ['shell', { git: 'deny' }, 'ask'],
    ['search', { search: 'deny' }, 'deny'],
    ['constructor', {}, 'ask'],
  ])('%s under %j is %s', (name, permissions, expected) => {
    expect(toolMode(permissions, name, undefined, 'ask')).toBe(expected)
  })

  test.each<[PermissionMode | undefined, PermissionMap, PermissionMode]>([
    ['allow', {}, 'allow'],
    ['allow', { x: 'deny' }, 'deny'],
    ['deny', { x: 'allow' }, 'deny'],
    ['ask', { x: 'allow' }, 'ask'],
    [undefined, { x: 'allow' }, 'allow'],
  ])('a declaration that says %s, under %j: the stricter holds, %s', (declared, permissions, expected) => {
    expect(toolMode(permissions, 'x', declared, 'ask')).toBe(expected)
  })

  test.each<[string, string, PermissionMap, PermissionMode]>([
    ['shell', 'git push', { git: 'deny' }, 'deny'],
    ['shell', '  git\tpush', { git: 'deny' }, 'deny'],
    ['shell', 'git', { git: 'ask' }, 'ask'],
    ['shell', 'gitk', { git: 'deny' }, 'allow'],
    ['shell', 'ls; git push', { git: 'deny' }, 'deny'],
    ['shell', 'cd x && /usr/bin/git push', { git: 'deny' }, 'deny'],
    ['shell', 'A=1 git push', { git: 'deny' }, 'deny'],
    ['shell', 'echo $(git log)', { git: 'deny' }, 'deny'],
    ['shell', 'echo git', { git: 'deny' }, 'allow'],
    ['shell', 'cat .git/config', { git: 'deny' }, 'allow'],
    ['shell', 'git push', {}, 'allow'],
    ['shell', 'git push', { git: 'allow' }, 'allow'],
    ['read_file', 'git push', { git: 'deny' }, 'allow'],
  ])('%s %j under %j, otherwise allowed, is %s', (name, command, permissions, expected) => {
    expect(callMode(permissions, name, { command }, 'allow')).toBe(expected)
  })

  test('the key for git never loosens', () => {
    expect(callMode({ git: 'allow' }, 'shell', { command: 'git push' }, 'ask')).toBe('ask')
  })

  test('a command that is no text is no git command', () => {
    expect(callMode({ git: 'deny' }, 'shell', { command: 7 }, 'allow')).toBe('allow')
  })
})

describe('[EC 8.4] what a rule requires may only tighten', () => {
  const base: PermissionMap = { shell: 'ask', read_file: 'allow' }

  test('tightening, repeating and naming what is unset are accepted', () => {
    const required = { permissions: { shell: 'deny', read_file: 'allow', web: 'allow' } } as const
    expect(must(narrowPermissions(base, required))).toEqual({
      shell: 'deny',
      read_file: 'allow',
      web: 'allow',
    })
    expect(must(narrowPermissions(base, undefined))).toBe(base)
    expect(base).toEqual({ shell: 'ask', read_file: 'allow' })
  })

  test('[EC 12.3] loosening is refused, and says what by how much', () => {
    expect(narrowPermissions(base, { permissions: { shell: 'allow' } })).toEqual({
      ok: false,
      error: {
        code: 'permission_expansion',
        message: 'a routing rule may not loosen `shell` from ask to allow',
        details: { tool: 'shell', base: 'ask', requested: 'allow' },
      },
    })
  })

  test('a key that is called like a method of every object is unset until it is set', () => {
    const required = { permissions: { constructor: 'deny', toString: 'allow' } } as const
    expect(narrowPermissions({}, required)).toEqual({
      ok: true,
      value: { constructor: 'deny', toString: 'allow' },
    })
  })
})
