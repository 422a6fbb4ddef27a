import { describe, expect, it } from 'vitest'
import { RemoteSession, START_MS } from './remote-session.ts'

const at = (seconds: number): string => new Date(START_MS + seconds * 1000).toISOString()

describe('the clocks of a turn', () => {
  it('[RF 14] leave out the time that was spent waiting for the user', () => {
    const session = new RemoteSession().begins('r').answers('one')
    session.pauses({ phase: { k: 'AwaitingTool', calls: [], resume: 'NextTurn' } }).waits(60_000)
    expect(session.view.timing()).toEqual({ turn_id: 'turn:r', started_at: at(0), elapsed_work_ms: 2000 })
  })

  it('[RF 14] are the same for each of its messages, live and afterwards, and never change once it has ended', () => {
    const session = new RemoteSession().begins('r').answers('one').goesOn().answers('two').ends('failed')
    const ended = session.view.timing('turn:r')
    expect(ended).toEqual({
      turn_id: 'turn:r',
      started_at: at(0),
      ended_at: at(3),
      elapsed_work_ms: 3000,
      outcome: 'failed',
    })
    session.waits(60_000).talks(5)
    const { messages } = session.page(null)
    expect(messages.slice(0, 3).map(({ turn }) => turn)).toEqual([ended, ended, ended])
  })

  it('[D01] a run that is given up for another one ends, and is told apart from it', () => {
    const session = new RemoteSession().begins('old').answers('one').ends('cancelled').begins('new')
    expect(session.view.timing('turn:old')).toMatchObject({
      turn_id: 'turn:old',
      outcome: 'cancelled',
      ended_at: at(2),
    })
    expect(session.view.timing('turn:new')).toEqual({
      turn_id: 'turn:new',
      started_at: at(2),
      elapsed_work_ms: 1000,
    })
    expect(session.snapshot()).toMatchObject({
      turn: { turn_id: 'turn:new' },
      last_turn: { turn_id: 'turn:old' },
    })
  })

  it('[RF 14] the last turn is the newest that has ended, also before the messages of the snapshot', () => {
    const session = new RemoteSession().begins('first').ends('cancelled').begins('long')
    for (let n = 0; n < 60; n++) session.answers(`round ${n}`)
    const { last_turn: last, transcript } = session.snapshot()
    expect(last).toMatchObject({ turn_id: 'turn:first', outcome: 'cancelled' })
    expect(transcript.every(({ turn }) => turn?.turn_id === 'turn:long')).toBe(true)
  })

  it('[RF 14] of a run that an older release served are absent where nobody knows them', () => {
    const session = new RemoteSession().begins('old').answers('one').ends()
    session.sql.rows('UPDATE turns SET run_outcome = NULL, run_clock = NULL')
    session.state = session.state && { ...session.state, runId: 'another' }
    const { last_turn: last, transcript } = session.snapshot()
    expect(last).toBeUndefined()
    expect(transcript[0]?.turn).toEqual({ turn_id: 'turn:old', started_at: at(0) })
  })

  it('[RF 14] are found for each run of a page, wherever in the session it lies', () => {
    const session = new RemoteSession()
    const ends = new Map<string, unknown>()
    for (let n = 0; n < 60; n++) {
      session.begins(`run ${n}`)
      for (let turn = 0; turn < (n * 7) % 11; turn++) session.answers(`turn ${turn}`).goesOn()
      session.answers('the end').ends((['completed', 'failed', 'cancelled'] as const)[n % 3])
      ends.set(`turn:run ${n}`, session.view.timing(`turn:run ${n}`))
    }
    let seen = 0
    for (let cursor: string | null | undefined = null; cursor !== undefined; ) {
      const page = session.page(cursor, 7)
      for (const { turn } of page.messages) expect(turn).toEqual(ends.get(turn?.turn_id ?? ''))
      seen += page.messages.length
      cursor = page.next_cursor
    }
    expect(seen).toBe(session.counters.message)
    // And with nothing to go by but the message itself.
    const middle = Math.floor(session.counters.message / 2)
    const fresh = session.page(`${middle}.0@h0`, 1).messages[0]
    expect(fresh?.turn).toEqual(ends.get(fresh?.turn?.turn_id ?? ''))
  })
})

describe('what a snapshot costs', () => {
  /** What is read for a snapshot, and for a page in the middle, by an object that has just come up. */
  const costOf = (runs: number) => {
    const session = new RemoteSession().talks(runs)
    session.read.queries = 0
    session.read.rows = 0
    session.snapshot()
    const snapshot = { ...session.read }
    session.page(`${runs}.0@h0`)
    return { snapshot, pageQueries: session.read.queries - snapshot.queries }
  }

  it('[U09] of a session of 4,000 messages is that of one with 50', () => {
    const short = costOf(25)
    const long = costOf(2_000)
    expect([long.snapshot.queries, long.snapshot.rows]).toEqual([short.snapshot.queries, short.snapshot.rows])
    expect(long.snapshot.queries).toBeLessThan(80)
    expect(long.snapshot.rows).toBeLessThan(140)
    // A page anywhere costs a search by halving for its first run, and a few rows for each.
    expect(long.pageQueries).toBeLessThan(100)
  })

  it('[U09] of a run with a thousand turns is a bounded number of rows', () => {
    const session = new RemoteSession().begins('r')
    for (let n = 0; n < 1000; n++) session.answers(`turn ${n}`).goesOn()
    session.ends().begins('next')
    session.read.rows = 0
    session.snapshot()
    expect(session.read.rows).toBeLessThan(200)
  })
})
