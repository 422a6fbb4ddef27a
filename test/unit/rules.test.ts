import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'

const ROOT = path.join(import.meta.dirname, '../..')
const ROOMS = ['src', 'test', 'bench', 'scripts', 'bin']

function* sources(folder: string): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const full = path.join(folder, entry.name)
    if (entry.isDirectory()) yield* sources(full)
    else if (/\.(ts|mjs)$/.test(entry.name)) yield full
  }
}

/** Rule ids in a text: `D20`, `U37`, and the topic of `EC 8.3`, which is `EC 8`. */
const idsIn = (text: string): string[] =>
  [...text.matchAll(/\b([DU]\d{2})\b|\bEC (\d{1,2})(?:\.\d+)?\b/g)].map(
    ([, rule, topic]) => rule ?? `EC ${topic}`,
  )

describe('rule ids', () => {
  const listed = new Set(
    [...readFileSync(path.join(ROOT, 'docs/rules.md'), 'utf8').matchAll(/^\| ([DU]\d{2}|EC \d+) +\|/gm)].map(
      ([, id]) => id,
    ),
  )

  test('every rule id in code and tests is stated in docs/rules.md', () => {
    const missing = ROOMS.flatMap((room) => [...sources(path.join(ROOT, room))]).flatMap((file) =>
      idsIn(readFileSync(file, 'utf8'))
        .filter((id) => !listed.has(id))
        .map((id) => `${id} in ${path.relative(ROOT, file)}`),
    )
    expect([...new Set(missing)]).toEqual([])
  })

  test('a rule id is recognised where it stands', () => {
    expect(idsIn('[D20] a key (EC 5.3, U37)')).toEqual(['D20', 'EC 5', 'U37'])
  })
})
