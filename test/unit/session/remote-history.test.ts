import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { frameBytes } from '../../../src/core/remote/bounded-text.ts'
import type { NewCall } from '../../../src/core/run/writes.ts'
import { MAX_PAYLOAD_BYTES } from '../../../src/protocol/remote/limits.ts'
import type { RemoteMessage } from '../../../src/protocol/remote/message.ts'
import { call } from '../storage/contract/builders.ts'
import { RemoteSession } from './remote-session.ts'

/** Every item of the session, by its pages from the newest back. */
function allItems(session: RemoteSession, limit: number): RemoteMessage[] {
  const items: RemoteMessage[] = []
  for (let cursor: string | null | undefined = null; cursor !== undefined; ) {
    const page = session.page(cursor, limit)
    expect(frameBytes(page.messages)).toBeLessThanOrEqual(MAX_PAYLOAD_BYTES)
    items.unshift(...page.messages)
    cursor = page.next_cursor
  }
  return items
}

const idsOf = (items: readonly RemoteMessage[]): string[] => items.map(({ message_id: id }) => id)

describe('a page of history', () => {
  const session = new RemoteSession().begins('r')
  for (let n = 0; n < 3; n++) session.answers(`round ${n}`, [call(`x${n}`), call(`y${n}`)])
  const ALL = ['m1', 'm2', 'm2.0', 'm2.1', 'm3', 'm3.0', 'm3.1', 'm4', 'm4.0', 'm4.1']

  it('[RF 15] without a cursor is the newest; each cursor leads to the items before, until there are none', () => {
    const newest = session.page(null, 4)
    expect([idsOf(newest.messages), newest.next_cursor]).toEqual([ALL.slice(6), '3.2@h0'])
    const next = session.page('3.2@h0', 4)
    expect([idsOf(next.messages), next.next_cursor]).toEqual([ALL.slice(2, 6), '2.1@h0'])
    const last = session.page('2.1@h0', 4)
    expect([idsOf(last.messages), last.next_cursor]).toEqual([ALL.slice(0, 2), undefined])
  })

  it.each(Array.from({ length: 12 }, (_, n) => n + 1))(
    '[RF 15] of %i items each: the pages are the whole, each item once',
    (limit) => expect(idsOf(allItems(session, limit))).toEqual(ALL),
  )

  it.each([
    [0, 1],
    [1000, 10],
  ])('[RF 15] of %i items is one of %i', (limit, length) => {
    expect(session.page(null, limit).messages).toHaveLength(length)
  })

  it('[RF 15] holds 40 items at most', () => {
    expect(new RemoteSession().talks(30).page(null, 1000).messages).toHaveLength(40)
  })

  it('[RF 15] before the first item is empty', () => {
    expect(session.view.history('1.0@h0', 10)).toEqual({
      type: 'history',
      history_revision: 'h0',
      messages: [],
    })
  })

  it.each([
    ['', 'none'],
    ['0@h0', 'of another form'],
    ['2.1@h1', 'of another revision'],
    ['2.3@h0', 'of a call that the message does not have'],
    ['5.1@h0', 'of a call of no message'],
    ['6.0@h0', 'behind the transcript'],
    ['99999999.0@h0', 'far behind it'],
    ['-1.0@h0', 'before it'],
  ])('[RF 15] a cursor %j, %s, is stale', (cursor) => {
    expect(session.view.history(cursor, 10)).toMatchObject({ type: 'error', code: 'stale_cursor' })
  })

  it('[RF 15] a cursor stays good while the transcript grows, and names the same place', () => {
    const growing = new RemoteSession().begins('r').answers('one').answers('two')
    const { next_cursor: cursor = null } = growing.page(null, 1)
    const before = growing.page(cursor, 10)
    growing.answers('three', [call('c')])
    expect(idsOf(before.messages)).toEqual(['m1', 'm2'])
    expect(idsOf(growing.page(cursor, 10).messages)).toEqual(['m1', 'm2'])
  })

  it('[RF 15] a transcript that was rewritten has another revision, and every cursor of the old one is stale', () => {
    const rewritten = new RemoteSession().talks(2)
    const { next_cursor: cursor = null } = rewritten.page(null, 1)
    rewritten.counters.rewrites = 1
    expect(rewritten.view.history(cursor, 10)).toMatchObject({ code: 'stale_cursor' })
    expect(rewritten.page(null, 10)).toMatchObject({ history_revision: 'h1' })
    expect(rewritten.view.content('message:h0:m1', 0, 100)).toMatchObject({ code: 'not_found' })
    expect(rewritten.whole('message:h1:m1')).toBe('prompt of run 1')
  })

  it('[RF 15] that would not fit a frame drops its older half; one item stays', () => {
    const long = new RemoteSession().begins('r')
    for (let n = 0; n < 20; n++)
      long.answers('\u0001'.repeat(4096), [call(`c${n}`)]).settles(`c${n}`, '\u0001'.repeat(4096))
    const { messages, next_cursor: cursor } = long.page(null)
    expect(messages).toHaveLength(10)
    expect(cursor).toBe('17.0@h0')
    expect(allItems(long, 40)).toHaveLength(41)
  })
})

it('[U44] nothing is unreachable: pages and contents are the whole of what was said, done and given, exactly', () => {
  const word = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 30 }),
    fc.constantFrom('', 'a', '€', '\u0000nul', '\ufeffbom', '\u0001chunks:x', '😀'),
  )
  /** Some texts are long enough to be cut, some to be kept in pieces. */
  const text = fc
    .tuple(word, fc.constantFrom(1, 1, 1, 200, 5000))
    .map(([part, times]) => part.repeat(times).toWellFormed().slice(0, 120_000))
  const said = fc.record({
    text,
    calls: fc.array(fc.record({ argument: text, result: fc.option(text) }), { maxLength: 4 }),
  })
  fc.assert(
    fc.property(
      fc.array(said, { maxLength: 8 }),
      fc.integer({ min: 1, max: 40 }),
      fc.integer({ min: 4, max: 70_000 }),
      (all, limit, bytes) => {
        const session = new RemoteSession().begins('r', 'go')
        const expected: { text: string; argument?: string }[] = [{ text: 'go' }]
        for (const [seq, { text: words, calls }] of all.entries()) {
          const made = calls.map(
            ({ argument }, n): NewCall => call(`${seq}.${n}`, { arguments: { argument } }),
          )
          session.answers(words.toWellFormed(), made)
          // An answer of calls alone says nothing.
          if (words !== '' || calls.length === 0) expected.push({ text: words.toWellFormed() })
          for (const [n, { result, argument }] of calls.entries()) {
            if (result !== null) session.settles(`${seq}.${n}`, result.toWellFormed())
            expected.push({ text: result?.toWellFormed() ?? '', argument: JSON.stringify({ argument }) })
          }
        }
        const items = allItems(session, limit)
        expect(items).toHaveLength(expected.length)
        for (const [index, { content, message_id: id, tool }] of items.entries()) {
          const { text: whole = '', argument } = expected[index] ?? {}
          const total = new TextEncoder().encode(whole).length
          expect([content.total_bytes, content.truncated]).toEqual([total, content.text !== whole])
          expect(whole.startsWith(content.text)).toBe(true)
          // Not in more than some tens of pieces.
          if (content.truncated)
            expect(session.whole(content.content_id ?? '', Math.max(bytes, total / 40)) === whole).toBe(true)
          if (tool !== undefined) {
            const asWritten = session.whole(`arguments:h0:${id}`, 65_536)
            expect(JSON.parse(asWritten)).toEqual(JSON.parse(argument ?? 'null'))
          }
        }
        expect(frameBytes(session.snapshot())).toBeLessThanOrEqual(MAX_PAYLOAD_BYTES)
      },
    ),
    { numRuns: 25 },
  )
})
