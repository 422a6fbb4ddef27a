import { describe, expect, test } from 'vitest'
import { admitDevice, admitUpgrade, type HeldSocket } from '../../../../src/core/gateway/connections.ts'

const NOW_MS = 1_000_000

const strangers = (count: number, address: (n: number) => string): HeldSocket[] =>
  Array.from({ length: count }, (_, n) => ({
    id: `stranger ${n} of ${address(n)}`,
    deviceId: null,
    address: address(n),
    lastHeardAtMs: 0,
  }))

/** Connections of a device; the first was heard last. */
const of = (deviceId: string, count: number, heardAtMs = NOW_MS): HeldSocket[] =>
  Array.from({ length: count }, (_, n) => ({
    id: `${deviceId}.${n}`,
    deviceId,
    address: '10.0.0.1',
    lastHeardAtMs: heardAtMs - n,
  }))

/** 64 connections of eight devices. */
const full = (heardAtMs = NOW_MS): HeldSocket[] =>
  Array.from({ length: 8 }, (_, n) => of(`d${n}`, 8, heardAtMs)).flat()

describe('[D41] sockets that have not authenticated', () => {
  test('four per address', () => {
    expect(
      admitUpgrade(
        strangers(3, () => '10.0.0.1'),
        [],
        '10.0.0.1',
      ),
    ).toBe(true)
    expect(
      admitUpgrade(
        strangers(4, () => '10.0.0.1'),
        [],
        '10.0.0.1',
      ),
    ).toBe(false)
    expect(
      admitUpgrade(
        strangers(4, () => '10.0.0.1'),
        [],
        '10.0.0.2',
      ),
    ).toBe(true)
  })

  test('64 in all', () => {
    const spread = (n: number) => `10.0.0.${n}`
    expect(admitUpgrade(strangers(63, spread), [], '10.0.1.1')).toBe(true)
    expect(admitUpgrade(strangers(64, spread), [], '10.0.1.1')).toBe(false)
  })

  test('those that were told their end and do not go have places of their own: 16 per address, 1,024 in all', () => {
    const here = (count: number) => Array.from({ length: count }, () => '10.0.0.1')
    expect(admitUpgrade([], here(15), '10.0.0.1')).toBe(true)
    expect(admitUpgrade([], here(16), '10.0.0.1')).toBe(false)
    expect(admitUpgrade([], here(16), '10.0.0.2')).toBe(true)
    const spread = (count: number) => Array.from({ length: count }, (_, n) => `10.0.1.${n % 250}`)
    expect(admitUpgrade([], spread(1023), '10.0.0.2')).toBe(true)
    expect(admitUpgrade([], spread(1024), '10.0.0.2')).toBe(false)
  })

  test('authenticated ones do not count, even from the same address', () => {
    expect(admitUpgrade(full(), [], '10.0.0.1')).toBe(true)
  })
})

describe('[D36] connections of devices', () => {
  test('up to eight of one device stand side by side', () => {
    expect(admitDevice(of('d', 7), 'd', NOW_MS)).toEqual({ ok: true, evict: [] })
  })

  test('a ninth evicts that device’s longest silent one, however short it was silent', () => {
    expect(admitDevice([...of('d', 8), ...of('e', 8, 0)], 'd', NOW_MS)).toEqual({ ok: true, evict: ['d.7'] })
  })

  test('the 64th is admitted beside the others, also if they are silent', () => {
    expect(admitDevice(full(0).slice(1), 'new', NOW_MS)).toEqual({ ok: true, evict: [] })
  })

  test('at 64 the longest silent one goes, if it was unheard for 90 s', () => {
    const held = full()
    const [one, other] = [held[10], held[20]] as [HeldSocket, HeldSocket]
    one.lastHeardAtMs = NOW_MS - 90_000
    expect(admitDevice(held, 'new', NOW_MS)).toEqual({ ok: true, evict: [one.id] })
    other.lastHeardAtMs = NOW_MS - 90_001
    expect(admitDevice(held, 'new', NOW_MS)).toEqual({ ok: true, evict: [other.id] })
  })

  test('at 64 that were all heard within 90 s the device is refused, and nobody goes', () => {
    const held = full().map((socket) => ({ ...socket, lastHeardAtMs: NOW_MS - 89_999 }))
    expect(admitDevice(held, 'new', NOW_MS)).toEqual({ ok: false })
  })

  test('at 64 a device with eight replaces its own: nobody else goes, and it is not refused', () => {
    expect(admitDevice(full(), 'd3', NOW_MS)).toEqual({ ok: true, evict: ['d3.7'] })
    expect(admitDevice([...of('old', 8, 0), ...full().slice(8)], 'd3', NOW_MS)).toEqual({
      ok: true,
      evict: ['d3.7'],
    })
  })

  test('sockets that have not authenticated take no place, the device’s own among them', () => {
    const held = [...full().slice(1), ...strangers(64, (n) => `10.0.0.${n}`)]
    expect(admitDevice(held, 'new', NOW_MS)).toEqual({ ok: true, evict: [] })
  })

  test('more than there should be are brought back within the limits at once', () => {
    expect(admitDevice(of('d', 10), 'd', NOW_MS)).toEqual({ ok: true, evict: ['d.9', 'd.8', 'd.7'] })
    const many = [...full(0), ...of('d8', 2, 0)]
    expect(admitDevice(many, 'new', NOW_MS)).toMatchObject({ ok: true, evict: { length: 3 } })
  })
})
