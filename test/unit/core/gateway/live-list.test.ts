import { describe, expect, test } from 'vitest'
import {
  byId,
  inDoubt,
  type ListedRow,
  nextLookMs,
  toDelist,
} from '../../../../src/core/gateway/live-list.ts'

const NOW_MS = 1_800_000_000_000
const HOUR_AGO_MS = NOW_MS - 3_600_000
const WEEK_MS = 7 * 24 * 3_600_000

/** Rows of an activity; the first was touched longest ago. */
const rows = (activity: ListedRow['activity'], count: number, touchedAtMs = NOW_MS - 1_000): ListedRow[] =>
  Array.from({ length: count }, (_, n) => ({
    sessionId: `${activity} ${String(n).padStart(2, '0')}`,
    activity,
    touchedAtMs: touchedAtMs + n,
    heardAtMs: touchedAtMs + n,
    isAsked: false,
  }))

describe('[D03] at most 32 sessions are live', () => {
  test('32 stay, of whatever activity', () => {
    expect(toDelist([...rows('idle', 16), ...rows('running', 16)], NOW_MS)).toEqual([])
  })

  test('of 33 the idle one untouched longest leaves, though others are older', () => {
    const older = [...rows('awaiting_approval', 15, HOUR_AGO_MS), ...rows('running', 15, HOUR_AGO_MS)]
    expect(toDelist([...older, ...rows('idle', 3)], NOW_MS)).toEqual(['idle 00'])
  })

  test('with no idle one the waiting one untouched longest leaves, for whatever it waits', () => {
    const waiting = [
      ...rows('awaiting_approval', 2, NOW_MS - 50),
      ...rows('awaiting_question', 2, NOW_MS - 90),
    ]
    expect(toDelist([...waiting, ...rows('running', 29, HOUR_AGO_MS)], NOW_MS)).toEqual([
      'awaiting_question 00',
    ])
  })

  test('as many leave as there are too many: first idle ones, then waiting ones', () => {
    const many = [...rows('running', 30, HOUR_AGO_MS), ...rows('awaiting_question', 3), ...rows('idle', 2)]
    expect(toDelist(many, NOW_MS)).toEqual(['idle 00', 'idle 01', 'awaiting_question 00'])
  })

  test('a running one leaves last, when nothing else is left to leave', () => {
    expect(toDelist([...rows('running', 32, HOUR_AGO_MS), ...rows('idle', 1)], NOW_MS)).toEqual(['idle 00'])
    expect(toDelist(rows('running', 33, HOUR_AGO_MS), NOW_MS)).toEqual(['running 00'])
  })

  test('a run that was left in the middle counts as idle once its session has been asked', () => {
    const left = rows('running', 32, HOUR_AGO_MS).map((row) => ({ ...row, isAsked: true }))
    expect(toDelist([...left, ...rows('idle', 1)], NOW_MS)).toEqual(['running 00'])
  })

  test('the one that has just spoken stays, whatever it is', () => {
    expect(toDelist([...rows('running', 32, HOUR_AGO_MS), ...rows('idle', 1)], NOW_MS, 'idle 00')).toEqual([
      'running 00',
    ])
  })

  test('of two that were touched at once the lower id leaves, in whatever order they come', () => {
    const tied = rows('idle', 33).map((row) => ({ ...row, touchedAtMs: NOW_MS }))
    expect(toDelist(tied, NOW_MS)).toEqual(['idle 00'])
    expect(toDelist(tied.toReversed(), NOW_MS)).toEqual(['idle 00'])
  })
})

describe('[D03] an idle session leaves after 7 days', () => {
  test('at 7 days without a touch, not a moment before', () => {
    expect(toDelist(rows('idle', 2, NOW_MS - WEEK_MS), NOW_MS)).toEqual(['idle 00'])
  })

  test('so does one that waits, or seems to run: nobody has done anything with it', () => {
    const old = [
      ...rows('running', 1, 0),
      ...rows('awaiting_approval', 1, 0),
      ...rows('awaiting_question', 1, 0),
    ]
    expect(toDelist(old, WEEK_MS - 1)).toEqual([])
    expect(toDelist(old, WEEK_MS)).toHaveLength(3)
  })

  test('those that leave by age make room for the others', () => {
    const many = [...rows('running', 31), ...rows('idle', 3, NOW_MS - WEEK_MS - 1)]
    expect(toDelist(many, NOW_MS)).toEqual(['idle 00', 'idle 01'])
    const tooMany = [...many, ...rows('awaiting_question', 1)]
    expect(toDelist(tooMany, NOW_MS)).toEqual(['idle 00', 'idle 01', 'idle 02'])
  })

  test('the next one to leave is the idle one untouched longest', () => {
    expect(nextLookMs(rows('idle', 3, 500).toReversed())).toBe(500 + WEEK_MS)
    expect(nextLookMs(rows('awaiting_approval', 1, 500))).toBe(500 + WEEK_MS)
    expect(nextLookMs([])).toBeNull()
  })

  test('whoever looks at that time finds it gone, and nothing a moment before', () => {
    const listed = rows('idle', 3)
    const atMs = nextLookMs(listed) ?? Number.NaN
    expect([toDelist(listed, atMs - 1), toDelist(listed, atMs)]).toEqual([[], ['idle 00']])
  })
})

describe('[RF 11] the order of the list', () => {
  test('is ascending by the code units of the id, and the given list stays as it was', () => {
    const given = ['b', 'a', 'é', 'B', 'a2', 'a10', '😀', '\uffee'].map((session_id) => ({ session_id }))
    const before = structuredClone(given)
    expect(byId(given).map((row) => row.session_id)).toEqual([
      'B',
      'a',
      'a10',
      'a2',
      'b',
      'é',
      '😀',
      '\uffee',
    ])
    expect(given).toEqual(before)
  })
})

describe('[U06] a session that was running and has said nothing for long', () => {
  const silent = rows('running', 1, NOW_MS - 120_000)

  test('is asked after two minutes, four times as long as a turn that goes on is silent', () => {
    expect(inDoubt(silent, NOW_MS - 1)).toEqual([])
    expect(inDoubt(silent, NOW_MS)).toEqual(['running 00'])
    expect(nextLookMs(silent)).toBe(NOW_MS)
  })

  test('is asked once', () => {
    const asked = silent.map((row) => ({ ...row, isAsked: true }))
    expect(inDoubt(asked, NOW_MS)).toEqual([])
    expect(nextLookMs(asked)).toBe(NOW_MS - 120_000 + WEEK_MS)
  })

  test('is not asked while it speaks, though it always says the same', () => {
    expect(
      inDoubt(
        silent.map((row) => ({ ...row, touchedAtMs: 0, heardAtMs: NOW_MS - 1 })),
        NOW_MS,
      ),
    ).toEqual([])
  })

  test('is not asked when it waits or is idle: those rows change by what somebody does', () => {
    expect(inDoubt([...rows('idle', 1, 0), ...rows('awaiting_approval', 1, 0)], NOW_MS)).toEqual([])
  })
})
