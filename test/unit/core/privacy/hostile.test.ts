import { describe, expect, test } from 'vitest'
import { makePrivacyGuard } from '../../../../src/core/privacy/guard.ts'
import type { TranscriptCall } from '../../../../src/core/transcript.ts'
import { makeCall, makePrivacy } from '../../../support/core/builders.ts'

/** A fresh guard each time: nothing is remembered from the measurement before. */
const judge = (call: TranscriptCall, restricted = ['**/.env', 'secrets/**']) =>
  makePrivacyGuard(makePrivacy({ restricted_paths: restricted }), [], '/home/u/code').constraintOfCall(call)

const result = (text: string) => makeCall({ name: 'a_tool' }, text)
const command = (line: string) => makeCall({ name: 'shell', arguments: { command: line } })

/** Eight times as much takes eight times as long, give or take what else the machine does. */
function expectLinear(shape: (size: number) => TranscriptCall, size: number): void {
  const fastest = (calls: number) => {
    const call = shape(calls)
    let best = Number.POSITIVE_INFINITY
    for (let run = 0; run < 3; run++) {
      const start = performance.now()
      judge(call)
      best = Math.min(best, performance.now() - start)
    }
    return best
  }
  fastest(size)
  // Quadratic work would be 64 times as much. Some milliseconds are left for a pause of the machine.
  expect(fastest(8 * size)).toBeLessThan(24 * fastest(size) + 10)
}

const times = (count: number, text: (index: number) => string, between = '') =>
  Array.from({ length: count }, (_, index) => text(index)).join(between)
const nested = (depth: number, open: string, close: string) =>
  `${open.repeat(depth)}".env"${close.repeat(depth)}`
const deepObject = (depth: number): Record<string, unknown> => {
  let value: Record<string, unknown> = { path: 'a.ts' }
  for (let level = 0; level < depth; level++) value = { inner: value }
  return value
}

type Shape = [what: string, size: number, shape: (size: number) => TranscriptCall]

/** What is read to its end, and names nothing. */
const HARMLESS: Shape[] = [
  ['blanks inside a heading', 500, (n) => result(`# process.env${' '.repeat(900)}x\n`.repeat(n / 50))],
  ['blanks behind a tag', 500, (n) => result(`<path>${' '.repeat(n)}process.env`)],
  ['tags that do not end', 500, (n) => result(`${'<path> '.repeat(n)}process.env`)],
  ['blank lines', 5000, (n) => result(`process.env\n${'\n'.repeat(n)}x`)],
  ['carriage returns', 5000, (n) => result(`process.env\n${'\r'.repeat(n)}x`)],
  ['a key that does not end', 2000, (n) => result(`{ .env\n"${'content'.repeat(n)}`)],
  ['a value that does not end', 5000, (n) => result(`{ .env "content": 1, "path":"${'a'.repeat(n)}`)],
  ['a value of escapes', 5000, (n) => result(`{ .env "content": 1, "path":"${'\\"'.repeat(n)}`)],
  ['colons', 500, (n) => result(times(n, (i) => `a${i}:b:c:d:e:f:g:h process.env`, '\n'))],
  ['dashes and numbers', 6, (n) => result(times(n, (i) => `${i}${'-1'.repeat(400)}- process.env`, '\n'))],
  ['an attribute without its value', 1000, (n) => result(`< .env ${'src '.repeat(n)}`)],
  ['lists in lists', 12, (n) => result(`${nested(n, '{"a":', '}')}\n`.repeat(20))],
  ['braces that do not close', 1000, (n) => command('x{'.repeat(n))],
  ['commas in braces that do not close', 500, (n) => command(`x{${','.repeat(n)} `.repeat(10))],
  ['brackets that do not close', 400, (n) => command(`${'['.repeat(n)} `.repeat(10))],
  ['commands inside commands', 200, (n) => command(`sh -c "sh -c 'a; b; c'" ${'`x` '.repeat(n)}`)],
  ['an option over and over', 500, (n) => command(`find ${'d '.repeat(n)}${'-name x '.repeat(n)}`)],
  [
    'data with many members',
    20,
    (n) => command(times(n, (i) => `'{"a${i}":1${',"b":[1,2]'.repeat(90)}}'`, ' ')),
  ],
  [
    'a path with many steps',
    1000,
    (n) => makeCall({ name: 'a_tool', arguments: { path: `${'a/../'.repeat(n)}x` } }),
  ],
]

/** What is too much to be read to its end. */
const TOO_MUCH: [what: string, call: TranscriptCall, part: string][] = [
  ['lists in lists', result(nested(20_000, '[', ']')), 'its result'],
  ['objects in objects', result(nested(20_000, '{"a":', '}')), 'its result'],
  ['deep lines among others', result(`x\n${nested(200, '[', ']')}\ny`), 'its result'],
  ['a text within, deep', result(JSON.stringify({ text: nested(200, '[', ']') })), 'its result'],
  ['a diff of countless names', result(`diff --git ${'a '.repeat(20_000)}process.env`), 'its result'],
  ['countless names', result(times(20_001, (i) => `process.env${i}:x`, '\n')), 'its result'],
  ['deep arguments', makeCall({ name: 'a_tool', arguments: deepObject(20_000) }), 'what it names'],
  [
    'many names below many folders',
    command(`find ${times(600, (i) => `d${i} -name n${i}`, ' ')}`),
    'what it names',
  ],
  ['braces that give many names', command(`cat {a${',b'.repeat(100)},.e}nv`), 'what it names'],
  ['braces in a row', command(`cat ${'{a,b}'.repeat(12)}`), 'what it names'],
  [
    'braces in a row, cut in pieces',
    command(times(150, (i) => `w${i}${'{b,c}'.repeat(6)}${':e=v@'.repeat(30)}`, ' ')),
    'what it names',
  ],
  ['a variable over and over', command(`a=${'x'.repeat(4000)}; echo ${'$a'.repeat(5000)}`), 'what it names'],
  [
    'words with wildcards',
    command(`cd a; cd b; cat ${times(8000, (i) => `e${i}.env.${i}nv?`, ' ')}`),
    'what it names',
  ],
]

describe('[D17] what is made to be slow to read', () => {
  test.each(HARMLESS)('%s: is read to its end in linear time', (_, size, shape) => {
    expect(judge(shape(size))).toBeNull()
    expectLinear(shape, size)
  })

  test.each(HARMLESS)('%s: does not hide what comes behind', (_, size, shape) => {
    const call = shape(size)
    const { command: line } = call.arguments
    const behind =
      typeof line === 'string'
        ? { ...call, arguments: { command: `${line} ; cat .env` } }
        : { ...call, result: `${call.result ?? ''}\n.env:1:KEY=1` }
    expect(judge(behind)).toMatchObject({ pattern: '**/.env', how: 'path' })
  })

  test.each(TOO_MUCH)('[U37] %s: counts as private where anything is', (_, call, part) => {
    expect(judge(call)).toEqual({
      path: part,
      pattern: '**/.env',
      list: 'restricted_paths',
      how: 'too long',
    })
    expect(judge(call, [])).toBeNull()
  })
})
