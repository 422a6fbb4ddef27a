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

/** Rules that the name of a test cites: `[D20][EC 5.3] …`. */
const cited = (text: string): string[] =>
  [...text.matchAll(/\[((?:[DU]|EC )\d{1,2})(?:\.\d+)?\]/g)].flatMap(([, id]) => id ?? [])

/** Rules that no test cites yet, and why. */
const NOT_CITED = new Map([['D54', 'it is about the tests themselves']])

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

  test('every rule in docs/rules.md is cited by a test, or it is said here why none can', () => {
    const held = new Set(
      [...sources(path.join(ROOT, 'test'))].flatMap((file) => cited(readFileSync(file, 'utf8'))),
    )
    expect([...listed].filter((id) => id !== undefined && !held.has(id)).sort()).toEqual(
      [...NOT_CITED.keys()].sort(),
    )
  })

  test('a rule id is recognised where it stands', () => {
    expect(idsIn('[D20] a key (EC 5.3, U37)')).toEqual(['D20', 'EC 5', 'U37'])
    expect(cited('[D20][EC 5.3] a key (U37)')).toEqual(['D20', 'EC 5'])
  })
})
