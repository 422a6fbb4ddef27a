import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  HOST_OPERATIONS,
  isMutation,
  isOperationType,
  namesSession,
  type OperationType,
  SESSION_OPERATIONS,
} from '../../../../src/protocol/remote/operation-kinds.ts'
import { RemoteOperation } from '../../../../src/protocol/remote/operations.ts'
import { documentOf } from './support/documents.ts'

const all: OperationType[] = [...SESSION_OPERATIONS, ...HOST_OPERATIONS]

describe('kinds of operations', () => {
  test('there is one for each operation that has a shape, and no other', () => {
    const shaped = (documentOf('request').defs.RemoteOperation?.oneOf ?? []).map(
      (variant) => variant.properties?.type?.const,
    )
    expect(shaped.length).toBe(RemoteOperation.options.length)
    expect([...all].sort()).toEqual([...shaped].sort())
  })

  test('[RF 9] an operation is of one session or host-wide, and never both', () => {
    expect(all.filter(namesSession)).toEqual(SESSION_OPERATIONS)
    expect(new Set(all).size).toBe(all.length)
  })

  test('[RF 28] reading, listing and watching leave no receipt', () => {
    expect(all.filter((type) => !isMutation(type)).sort()).toEqual([
      'attach_session',
      'detach_session',
      'get_changes',
      'get_content',
      'get_history',
      'get_request_status',
      'get_settings',
      'get_usage',
      'list_directories',
      'list_saved_sessions',
      'list_sessions',
      'request_share',
      'subscribe_sessions',
    ])
  })

  test('what objects inherit is no operation', () => {
    expect(['__proto__', 'constructor', 'toString', ''].filter(isOperationType)).toEqual([])
    expect(all.filter(isOperationType)).toEqual(all)
  })
})

/** The files that a module loads when it runs: what is imported as a type only is gone by then. */
function loadedBy(file: string, seen = new Set<string>()): Set<string> {
  if (seen.has(file)) return seen
  seen.add(file)
  if (!file.startsWith('/')) return seen
  const text = readFileSync(file, 'utf8')
  for (const [, module = ''] of text.matchAll(/^(?:import|export) (?!type )[^;]*?from '([^']+)'/gms))
    loadedBy(module.startsWith('.') ? path.resolve(path.dirname(file), module) : module, seen)
  return seen
}

describe('what the router loads at its start', () => {
  const remote = path.join(import.meta.dirname, '../../../../src/protocol/remote')

  test.each(['limits.ts', 'operation-kinds.ts', 'wire-names.ts', 'utf8.ts'])(
    '%s builds no schema',
    (name) => {
      expect([...loadedBy(path.join(remote, name))]).not.toContain('zod')
    },
  )

  test('would be seen to: the decoders do', () => {
    expect([...loadedBy(path.join(remote, 'decode-request.ts'))]).toContain('zod')
    expect([...loadedBy(path.join(remote, 'decode-handshake.ts'))]).toContain('zod')
  })
})
