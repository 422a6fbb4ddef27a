import { describe, expect, test } from 'vitest'
import { judgeCursor, type RingExtent } from '../../../src/core/ring-cursor.ts'

/** Events 11 to 20 are held, but for 15 and 16, which were lost; the newest change without an event came after 12. */
const ring = (changes: Partial<RingExtent> = {}): RingExtent => ({
  last: 20,
  floor: 10,
  lost: 0,
  cut: { sequence: 12, id: 'newest' },
  holds: (sequence) => sequence > 10 && sequence <= 20 && sequence !== 15 && sequence !== 16,
  ...changes,
})

const verdict = (after: number, snapshotId: string | null = null, changes: Partial<RingExtent> = {}) =>
  judgeCursor({ after, snapshotId }, ring(changes))

describe('[RF 12] a cursor', () => {
  test('of which every later event is held is resumed', () => {
    for (const after of [13, 14, 17, 19, 20])
      for (const snapshotId of ['newest', null])
        expect(verdict(after, snapshotId)).toEqual({ k: 'resumed', withSnapshot: false })
  })

  test('before a change that no event tells is resumed, and a snapshot follows', () => {
    expect(verdict(10)).toEqual({ k: 'resumed', withSnapshot: true })
    expect(verdict(11, 'older')).toEqual({ k: 'resumed', withSnapshot: true })
  })

  test('of a device that has an older snapshot, though events behind the change, is resumed and gets the snapshot', () => {
    expect(verdict(14, 'older')).toEqual({ k: 'resumed', withSnapshot: true })
  })

  test('exactly at such a change is resumed with the id of its snapshot alone', () => {
    expect(verdict(12, 'newest')).toEqual({ k: 'resumed', withSnapshot: false })
    expect(verdict(12, 'older')).toEqual({ k: 'resync', reason: 'sequence_gap' })
    expect(verdict(12)).toEqual({ k: 'resync', reason: 'sequence_gap' })
  })

  test('at sequence zero resumes with the id of the snapshot that it began with', () => {
    const fresh = { last: 0, floor: 0, lost: 0, cut: { sequence: 0, id: 'first' }, holds: () => false }
    expect(verdict(0, 'first', fresh)).toEqual({ k: 'resumed', withSnapshot: false })
    expect(verdict(0, null, fresh)).toEqual({ k: 'resync', reason: 'sequence_gap' })
  })

  test('before what is held has lagged', () => {
    for (const after of [0, 9]) expect(verdict(after)).toEqual({ k: 'resync', reason: 'lagged' })
  })

  test('of which the events went with an object that had them in memory is a gap', () => {
    expect(verdict(9, null, { lost: 10 })).toEqual({ k: 'resync', reason: 'sequence_gap' })
  })

  test('that was never given out, or whose event was lost, is a gap', () => {
    for (const after of [21, 1000, 15, 16])
      expect(verdict(after)).toEqual({ k: 'resync', reason: 'sequence_gap' })
  })
})
