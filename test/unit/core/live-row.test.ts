import { describe, expect, test } from 'vitest'
import { activityOf, derivedTitle, isNews, type LiveFacts, liveRow } from '../../../src/core/live-row.ts'
import { RemoteSessionInfo } from '../../../src/protocol/remote/session-info.ts'
import { askCall, clientCall, decision, inject, Machine, results } from '../../support/core/run-machine.ts'
import { machineIn, type Situation } from '../../support/core/run-phases.ts'

const facts = (changes: Partial<LiveFacts> = {}): LiveFacts => ({
  sessionId: 's',
  registrationEpoch: 7,
  title: 'Fix the last row',
  derivedTitle: null,
  workspace: '/home/ana/csvkit',
  runs: 2,
  lastMessageAtMs: Date.parse('2026-11-30T03:21:43.000Z'),
  ...changes,
})
const bytes = (text: string | undefined): number => Buffer.byteLength(text ?? '')

describe('what a session does', () => {
  test.each<[Situation, ReturnType<typeof activityOf>]>([
    ['Idle', 'idle'],
    ['AwaitingTool', 'awaiting_approval'],
    ['AwaitingApproval: disclosure', 'awaiting_approval'],
    ['AwaitingApproval: cost', 'awaiting_approval'],
    ['AwaitingApproval: plan', 'awaiting_approval'],
    ['AwaitingDecrypt', 'running'],
    ['AwaitingEncrypt', 'idle'],
  ])('[D02] a run at %s shows as %s', (situation, activity) => {
    const { state } = machineIn(situation)
    expect(liveRow(state, facts())).toMatchObject({
      activity,
      attention: { approval: activity === 'awaiting_approval', question: false },
    })
  })

  test('[D02] a session without a run is idle', () => {
    expect(activityOf(null)).toBe('idle')
  })

  test('[D02] an idle session with a prompt in its queue is running: it is about to go on', () => {
    const { state } = machineIn('Idle')
    expect(liveRow(state, facts({ queued: 1 })).activity).toBe('running')
  })

  test('[D02] calls that nobody has to allow are part of the run', () => {
    const machine = new Machine()
    machine.execute('prompt')
    machine.round({ calls: [clientCall('read_file')] })
    expect(activityOf(machine.state)).toBe('running')
  })

  test('[D02] what a device has decided waits for nobody, though its driver has yet to act', () => {
    const tools = machineIn('AwaitingTool')
    tools.deviceDecides('approved')
    const gate = new Machine()
    gate.execute('prompt', { command: 'plan', keyed: ['openai'] })
    gate.round({ text: '1. do it' })
    gate.deviceDecides('approved')
    for (const { state } of [tools, gate])
      expect(liveRow(state, facts())).toMatchObject({
        activity: 'running',
        attention: { approval: false, question: false },
      })
  })

  test('[D02] a question waits for the user; a decision that waits beside it comes first', () => {
    const asks = new Machine()
    asks.execute('prompt')
    asks.round({ calls: [askCall(2), clientCall('read_file')] })
    const row = () => liveRow(asks.state, facts())
    expect(row()).toMatchObject({
      activity: 'awaiting_question',
      attention: { approval: false, question: true },
    })
    asks.answerQuestion('one')
    asks.answerQuestion('two')
    expect(row()).toMatchObject({ activity: 'running', attention: { question: false } })
    const both = new Machine()
    both.execute('prompt')
    both.round({ calls: [askCall(), clientCall('shell', 'ask')] })
    expect(liveRow(both.state, facts())).toMatchObject({
      activity: 'awaiting_approval',
      attention: { approval: true, question: true },
    })
  })

  test('[D02] while a turn is served the session is running, whatever the phase was', () => {
    const machine = machineIn('AwaitingTool')
    machine.continue(results(machine.waiting))
    expect(machine.state?.active).not.toBeNull()
    expect(activityOf(machine.state)).toBe('running')
    const begun = new Machine()
    begun.execute('prompt')
    expect(activityOf(begun.state)).toBe('running')
    const added = machineIn('AwaitingApproval: cost')
    added.continue(inject('rather this'))
    expect(activityOf(added.state)).toBe('running')
  })

  test('[D02] a run that failed is over', () => {
    const machine = new Machine()
    machine.execute('prompt')
    machine.resolve()
    machine.fail()
    expect(activityOf(machine.state)).toBe('idle')
  })

  describe('after a crash, while the client has not come back', () => {
    test('[D02] before the first checkpoint it is idle', () => {
      const machine = new Machine()
      machine.execute('prompt')
      machine.crash()
      expect(machine.state).toMatchObject({ active: null, unsettled: { kind: 'execute' } })
      expect(activityOf(machine.state)).toBe('idle')
    })

    test('[D02] results and decisions that were accepted are decided: the run goes on from there', () => {
      const tools = machineIn('AwaitingTool')
      tools.continue(results(tools.waiting))
      tools.crash()
      expect(tools.phase?.k).toBe('AwaitingTool')
      expect(activityOf(tools.state)).toBe('running')
      const gate = machineIn('AwaitingApproval: disclosure')
      gate.continue(decision(gate.approvalId, 'approved'))
      gate.crash()
      expect(gate.phase?.k).toBe('AwaitingApproval')
      expect(activityOf(gate.state)).toBe('running')
    })
  })
})

describe('a row', () => {
  test('[D03] is complete, and of the shape that goes over the wire', () => {
    const row = liveRow(machineIn('Idle').state, facts())
    expect(row).toEqual({
      session_id: 's',
      registration_epoch: 7,
      title: 'Fix the last row',
      workspace: '/home/ana/csvkit',
      model: 'm',
      harness: 'switchyard',
      turn_count: 2,
      last_active_at: '2026-11-30T03:21:43.000Z',
      activity: 'idle',
      attention: { approval: false, question: false },
      health: 'live',
    })
    expect(RemoteSessionInfo.parse(row)).toEqual(row)
  })

  test('[D03] of a session without a run leaves out what there is not', () => {
    const bare = facts({ title: null, workspace: null, runs: 0, lastMessageAtMs: null })
    expect(liveRow(null, bare)).toEqual({
      session_id: 's',
      registration_epoch: 7,
      title: '',
      model: '',
      harness: 'switchyard',
      turn_count: 0,
      activity: 'idle',
      attention: { approval: false, question: false },
      health: 'live',
    })
    expect(liveRow(null, facts({ workspace: ' ' }))).not.toHaveProperty('workspace')
  })

  test('[D03] has the title that was set; a blank one counts as none', () => {
    expect(liveRow(null, facts({ derivedTitle: 'said' })).title).toBe('Fix the last row')
    expect(liveRow(null, facts({ title: ' ', derivedTitle: 'said' })).title).toBe('said')
    expect(liveRow(null, facts({ title: null, derivedTitle: 'said' })).title).toBe('said')
  })

  test('[D03] is cut between characters: a title at 512 bytes, a workspace at 4096', () => {
    const long = liveRow(null, facts({ title: `x${'😀'.repeat(300)}`, workspace: `/${'ü'.repeat(3000)}` }))
    expect(long.title).toBe(`x${'😀'.repeat(127)}`)
    expect(bytes(long.title)).toBe(509)
    expect(long.workspace).toBe(`/${'ü'.repeat(2047)}`)
    expect(bytes(long.workspace)).toBe(4095)
    const whole = facts({ title: 'ü'.repeat(256), workspace: 'w'.repeat(4096) })
    expect(liveRow(null, whole)).toMatchObject({ title: whole.title, workspace: whole.workspace })
  })
})

describe('a title that is derived', () => {
  test.each([
    ['a line', 'a line'],
    ['  \n\t\r\n  the first that is not blank  \r\nanother', 'the first that is not blank'],
    ['x'.repeat(48), 'x'.repeat(48)],
    ['x'.repeat(49), `${'x'.repeat(45)}...`],
    ['😀'.repeat(48), '😀'.repeat(48)],
    ['😀'.repeat(49), `${'😀'.repeat(45)}...`],
    ['x'.repeat(1_000_000), `${'x'.repeat(45)}...`],
    ['not /a command', 'not /a command'],
    ['/a command\nand more', null],
    ['', null],
    [' \n ', null],
  ])('[D03] %#: is the first line of what was said, at most 48 characters of it', (message, title) => {
    expect(derivedTitle(message)).toBe(title)
  })
})

describe('news', () => {
  const idle = liveRow(machineIn('Idle').state, facts())
  const asking = liveRow(machineIn('AwaitingTool').state, facts())
  const later = '2026-11-30T04:00:00.000Z'

  test('[D33] the same row again is none', () => {
    expect(isNews(idle, { ...idle })).toBe(false)
  })

  test('[D33] a change is, in any field', () => {
    expect(isNews(idle, { ...idle, title: 'other' })).toBe(true)
    expect(isNews(idle, asking)).toBe(true)
    expect(isNews(asking, { ...asking, registration_epoch: 8 })).toBe(true)
  })

  test('[D33] that something was said is news only when the run is over', () => {
    expect(isNews(asking, { ...asking, last_active_at: later })).toBe(false)
    expect(isNews(asking, { ...idle, last_active_at: later })).toBe(true)
    expect(isNews(idle, { ...idle, last_active_at: later })).toBe(true)
  })
})
