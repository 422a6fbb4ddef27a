import { readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'

const FOLDER = path.join(import.meta.dirname, '../../../../src/client/crypto')

/** Everything that a module and the modules behind it import from outside the folder. */
function importsOf(file: string, seen = new Set<string>()): string[] {
  if (seen.has(file)) return []
  seen.add(file)
  const text = readFileSync(path.join(FOLDER, file), 'utf8')
  return [...text.matchAll(/from '([^']+)'/g)].flatMap(([, name = '']) =>
    name.startsWith('./') ? importsOf(name.slice(2), seen) : [name],
  )
}

test.each(['sealer.ts', 'session-key.ts', 'key-line.ts'])(
  '%s runs in a browser: it needs nothing of Node',
  (file) => {
    expect(importsOf(file).filter((name) => name.startsWith('node:'))).toEqual([])
  },
)

test('key files are for Node, and it shows', () => {
  expect(importsOf('key-files.ts')).toContain('node:fs')
})
