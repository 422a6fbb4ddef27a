import { describe, expect, test } from 'vitest'
import {
  acknowledge,
  type Flow,
  fill,
  goesOnAtMs,
  heard,
  isFull,
  isStuck,
  limitFor,
  MAX_UNREAD_BYTES,
  MAX_UNREAD_BYTES_IN_ALL,
  newFlow,
  settle,
} from '../../../../src/core/gateway/flow.ts'

const NOW_MS = 1_800_000_000_000
const KIB = 1024
const MIB = 1024 * KIB

/** A device that was sent so many bytes at once and has said nothing. */
const sent = (bytes: number): Flow => fill(newFlow(NOW_MS), bytes)
const limit = MAX_UNREAD_BYTES
/** A device that is sent so much every second, for so long; the bucket at the end. */
function sentEachSecond(bytes: number, seconds: number, heard: (second: number) => number = () => 0): Flow {
  let flow = newFlow(NOW_MS)
  for (let second = 0; second <= seconds; second++) {
    flow = settle(flow, heard(second), NOW_MS + second * 1000)
    // What is full waits in the session.
    if (!isFull(flow, limit)) flow = fill(flow, bytes)
  }
  return settle(flow, heard(seconds), NOW_MS + seconds * 1000)
}

describe('[D35] what a device may not have read', () => {
  test('is what was sent, less 256 KiB for each second', () => {
    const flow = settle(sent(MIB), 0, NOW_MS + 1500)
    expect(flow.level).toBe(MIB - 1.5 * 256 * KIB)
    expect(settle(flow, 0, NOW_MS + 60_000).level).toBe(0)
  })

  test('is nothing once the device has been heard of since', () => {
    expect(settle(sent(8 * MIB), NOW_MS + 1, NOW_MS + 2)).toEqual({
      level: 0,
      atMs: NOW_MS + 2,
      heardAtMs: NOW_MS + 1,
      fullSinceMs: null,
      sentBytes: 8 * MIB,
      acknowledges: false,
    })
  })

  test('a sign of life counts once: what is sent after it fills the bucket again', () => {
    const flow = fill(settle(newFlow(NOW_MS), NOW_MS - 5, NOW_MS), MIB)
    expect(settle(flow, NOW_MS - 5, NOW_MS).level).toBe(MIB)
  })

  test('a clock that went back drains nothing', () => {
    expect(settle(sent(MIB), 0, NOW_MS - 60_000).level).toBe(MIB)
  })
})

describe('[D35] events wait', () => {
  test('above 4 MiB, and not at it', () => {
    expect(isFull(sent(4 * MIB), limit)).toBe(false)
    expect(isFull(sent(4 * MIB + 1), limit)).toBe(true)
  })

  test('until there is room for more than a frame, so that the device does not wait at each', () => {
    const flow = sent(4 * MIB + 1)
    const atMs = goesOnAtMs(flow, limit)
    expect(atMs - NOW_MS).toBeGreaterThan(4_000)
    expect(atMs - NOW_MS).toBeLessThan(5_000)
    expect(isFull(settle(flow, 0, atMs), limit)).toBe(false)
    expect(settle(flow, 0, atMs).level).toBeLessThanOrEqual(3 * MIB)
  })

  test('not at all when there is room', () => {
    expect(goesOnAtMs(sent(KIB), limit)).toBe(NOW_MS)
  })
})

describe('[D35] 32 MiB over all sockets', () => {
  const total = (levels: number[]): number => levels.reduce((sum, level) => sum + level, 0)

  test('as long as they are not reached, each may have 4 MiB', () => {
    expect(limitFor([])).toBe(4 * MIB)
    expect(limitFor(Array.from({ length: 8 }, () => 4 * MIB))).toBe(4 * MIB)
  })

  test('the fullest wait first, and small ones not at all', () => {
    const levels = [
      ...Array.from({ length: 9 }, () => 4 * MIB),
      ...Array.from({ length: 20 }, () => 10 * KIB),
    ]
    const most = limitFor(levels)
    expect(levels.filter((level) => level > most)).toHaveLength(9)
    expect(most).toBeGreaterThan(10 * KIB)
  })

  test('64 devices that read nothing are not sent more than that, but for a frame each', () => {
    const frame = 256 * KIB
    const levels = Array.from({ length: 64 }, () => 0)
    for (let round = 0; round < 100; round++)
      for (const [n, level] of levels.entries()) if (level <= limitFor(levels)) levels[n] = level + frame
    expect(total(levels)).toBeGreaterThan(MAX_UNREAD_BYTES_IN_ALL)
    expect(total(levels)).toBeLessThanOrEqual(MAX_UNREAD_BYTES_IN_ALL + 64 * frame)
  })
})

describe('[D35] a device that stopped reading', () => {
  test('is one that was over the limit 120 s ago, has not caught up since, and said nothing', () => {
    expect(isStuck(sentEachSecond(MIB, 120))).toBe(false)
    expect(isStuck(sentEachSecond(MIB, 130))).toBe(true)
  })

  test('is none that is heard of, however much it is sent', () => {
    expect(isStuck(sentEachSecond(MIB, 600, (second) => NOW_MS + Math.floor(second / 100) * 100_000))).toBe(
      false,
    )
  })

  test('is none that had the time to read all of it', () => {
    expect(isStuck(settle(sent(8 * MIB), 0, NOW_MS + 200_000))).toBe(false)
  })

  test('is none that is sent less than it is taken to read', () => {
    expect(isStuck(sentEachSecond(200 * KIB, 600))).toBe(false)
  })
})

describe('[D35] what a device that acknowledges has not read', () => {
  test('is what was sent and not acknowledged, from the first acknowledgement on', () => {
    const flow = acknowledge(sent(3 * MIB), MIB, NOW_MS)
    expect(flow.level).toBe(2 * MIB)
    expect(fill(flow, KIB).level).toBe(2 * MIB + KIB)
  })

  test('counts from the beginning, whatever was estimated to be read', () => {
    const estimated = settle(sent(MIB), NOW_MS + 1, NOW_MS + 2)
    expect(estimated.level).toBe(0)
    expect(acknowledge(fill(heard(estimated, NOW_MS + 3), KIB), 0, NOW_MS + 4).level).toBe(MIB + KIB)
  })

  test('is lowered by nothing else: no time, no ping, no other frame', () => {
    const flow = acknowledge(sent(3 * MIB), MIB, NOW_MS)
    expect(settle(heard(flow, NOW_MS + 1), NOW_MS + 2, NOW_MS + 600_000).level).toBe(2 * MIB)
  })

  test('is not raised by an acknowledgement that comes late', () => {
    const flow = acknowledge(sent(3 * MIB), 2 * MIB, NOW_MS)
    expect(acknowledge(flow, MIB, NOW_MS).level).toBe(MIB)
  })

  test('is nothing when more is acknowledged than was sent, and what is sent then counts', () => {
    const flow = acknowledge(sent(MIB), 8 * MIB, NOW_MS)
    expect(flow.level).toBe(0)
    expect(fill(flow, KIB).level).toBe(KIB)
  })

  test('ends the connection when it is over 4 MiB and nothing more was acknowledged for 120 s', () => {
    const flow = fill(acknowledge(newFlow(NOW_MS), 0, NOW_MS), 5 * MIB)
    expect(isStuck(settle(flow, 0, NOW_MS + 119_999))).toBe(false)
    expect(isStuck(settle(flow, 0, NOW_MS + 120_000))).toBe(true)
    const same = acknowledge(settle(flow, 0, NOW_MS + 60_000), 0, NOW_MS + 60_000)
    expect(isStuck(settle(same, 0, NOW_MS + 120_000))).toBe(true)
    const more = acknowledge(settle(flow, 0, NOW_MS + 60_000), 1, NOW_MS + 60_000)
    expect(isStuck(settle(more, 0, NOW_MS + 179_999))).toBe(false)
    expect(isStuck(settle(more, 0, NOW_MS + 180_000))).toBe(true)
  })

  test('is looked at again when it may have stopped reading', () => {
    const flow = fill(acknowledge(newFlow(NOW_MS), 0, NOW_MS), 5 * MIB)
    expect(goesOnAtMs(settle(flow, 0, NOW_MS + 1_000), limit)).toBe(NOW_MS + 120_000)
  })

  test('is looked at again soon when only other devices can make room for it', () => {
    const flow = fill(acknowledge(newFlow(NOW_MS), 0, NOW_MS), MIB)
    expect(goesOnAtMs(flow, KIB)).toBe(NOW_MS + 10_000)
  })
})
