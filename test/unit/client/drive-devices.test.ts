import { describe, expect, test } from 'vitest'
import type { RemoteNews } from '../../../src/client/remote-follower.ts'
import type { Approver } from '../../../src/client/tool-runner.ts'
import type { RemoteEvent } from '../../../src/protocol/remote/events.ts'
import { driveToEnd, recordingTools, rigRouter } from '../../support/node/drive-rig.ts'
import { snapshotAt } from '../../support/node/scripted-gateway.ts'
import { json, numbered, openStream, stream } from '../../support/node/scripted-router.ts'
import {
  awaitingApproval,
  awaitingTool,
  call,
  completed,
  idle,
  paths,
  text,
} from '../../support/node/scripted-router-turns.ts'

const rig = rigRouter()

/** What devices do, as a test says it. */
class Devices {
  readonly #listeners = new Set<(news: RemoteNews) => void>()

  onNews(listener: (news: RemoteNews) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  event(event: RemoteEvent): void {
    for (const listener of [...this.#listeners]) listener({ k: 'event', event })
  }

  state(changes: Parameters<typeof snapshotAt>[2] = {}): void {
    for (const listener of [...this.#listeners])
      listener({ k: 'snapshot', snapshot: snapshotAt(1, 's', changes) })
  }
}

/** Asks for ever, and notes that it was told to stop. */
function patient(onAsked: () => void, acceptsDevice = true) {
  let stopped = 0
  const ask = (signal: AbortSignal) =>
    new Promise<{ decision: 'rejected' }>((resolve) => {
      signal.addEventListener('abort', () => {
        stopped++
        resolve({ decision: 'rejected' })
      })
      onAsked()
    })
  const approver: Approver = {
    approveTool: (_call, signal) => ask(signal),
    decideGate: (_approval, signal) => ask(signal),
    acceptsDevice: () => acceptsDevice,
  }
  return { approver, stopped: () => stopped }
}

const ASKING = call('c1', 'shell', { command: 'make' }, 'ask')
const BATCH = { type: 'approval_resolved', batch_id: 'b1' } as const
const answer = (...events: unknown[]) => rig.router.script('POST', paths.execute, stream(numbered(1, events)))
const then = (...events: unknown[]) => rig.router.script('POST', paths.continue, stream(numbered(2, events)))
const run = (...replies: Parameters<typeof json>[0][]) =>
  rig.router.script('GET', paths.run, ...replies.map((reply) => json(reply)))
const sent = () => rig.router.requests.filter(({ path }) => path === paths.continue).map(({ body }) => body)

describe('[D05] while this machine asks', () => {
  test('the approval of a device ends the question, and the call runs with it', async () => {
    const devices = new Devices()
    const { approver, stopped } = patient(() => devices.event(BATCH))
    answer(awaitingTool(ASKING))
    run(awaitingTool({ ...ASKING, decision: 'approved' }))
    then(completed('done'))
    const tools = recordingTools()
    const { client } = rig
    const { events, outcome } = await driveToEnd({ client, devices, approver, tools })
    expect(tools.ran).toEqual(['c1'])
    expect(stopped()).toBe(1)
    expect(sent()).toMatchObject([{ data: { results: [{ call_id: 'c1', decision: 'approved' }] } }])
    expect(events).toContainEqual({ type: 'settled_elsewhere', what: 'call', decision: 'approved' })
    expect(outcome?.status).toBe('completed')
  })

  test('[D46] the approval of a device that is not enough here leaves the question standing', async () => {
    const devices = new Devices()
    answer(awaitingTool(ASKING))
    run(awaitingTool({ ...ASKING, decision: 'approved' }))
    then(completed('done'))
    const approver: Approver = {
      approveTool: async (_call, signal) => {
        devices.event(BATCH)
        while (rig.router.count('GET', paths.run) === 0) await new Promise((resolve) => setImmediate(resolve))
        expect(signal.aborted).toBe(false)
        return { decision: 'rejected', reason: 'no' }
      },
      decideGate: async () => ({ decision: 'approved' }),
      acceptsDevice: () => false,
    }
    await driveToEnd({ client: rig.client, devices, approver })
    expect(sent()).toMatchObject([{ data: { results: [{ decision: 'rejected', content: 'no' }] } }])
  })

  test('[RF 19] the denial of a device ends the run: nothing is run, and nothing is sent', async () => {
    const devices = new Devices()
    const { approver } = patient(() => devices.event({ type: 'turn_cancelled', turn_id: 'turn:1' }))
    answer(awaitingTool(ASKING))
    run({ status: 'idle', data: { trace_id: 'trace:1' } })
    const tools = recordingTools()
    const { outcome } = await driveToEnd({ client: rig.client, devices, approver, tools })
    expect(outcome).toEqual({ status: 'idle', stopped: false, elsewhere: true })
    expect(tools.ran).toEqual([])
    expect(sent()).toEqual([])
  })

  test('a gate that a device has decided and that set the run going is followed from where it stands', async () => {
    const devices = new Devices()
    const { approver } = patient(() => devices.event({ type: 'approval_resolved', batch_id: 'a1' }))
    answer(awaitingApproval('a1', 'cost_limit', {}))
    run({ status: 'running', data: { trace_id: 'trace:1' }, allowed_continuations: ['inject', 'break'] })
    rig.router.script('GET', paths.run, stream(numbered(2, [text('went on'), completed('went on')])))
    const { events, outcome } = await driveToEnd({ client: rig.client, devices, approver })
    expect(outcome).toMatchObject({ status: 'completed', turn: { message: { content: 'went on' } } })
    expect(events).toContainEqual({ type: 'moved_elsewhere', why: 'decision' })
    expect(sent()).toEqual([])
  })

  test('[D06] a gate whose decision waits for our keys is gone on with', async () => {
    const devices = new Devices()
    const { approver } = patient(() => devices.event({ type: 'approval_resolved', batch_id: 'a1' }))
    const gate = awaitingApproval('a1', 'cost_limit', {})
    answer(gate)
    run({
      ...gate,
      data: {
        approval: { approval_id: 'a1', kind: 'cost_limit', detail: {}, decision: 'approved' },
        trace_id: 'trace:1',
      },
    })
    then(completed('done'))
    const { events } = await driveToEnd({ client: rig.client, devices, approver })
    expect(sent()).toEqual([
      { type: 'approval_decisions', data: { decisions: [{ approval_id: 'a1', decision: 'approved' }] } },
    ])
    expect(events.map(({ type }) => type)).toContain('settled_elsewhere')
  })

  test('what was settled while nothing could be heard shows in the state that comes then', async () => {
    const devices = new Devices()
    const { approver } = patient(() => devices.state())
    answer(awaitingTool(ASKING))
    run(awaitingTool({ ...ASKING, decision: 'rejected' }))
    then(completed('done'))
    await driveToEnd({ client: rig.client, devices, approver })
    expect(sent()).toMatchObject([{ data: { results: [{ call_id: 'c1', decision: 'rejected' }] } }])
  })

  test('news of what is nobody’s decision changes nothing', async () => {
    const devices = new Devices()
    answer(awaitingTool(ASKING))
    run(awaitingTool(ASKING))
    then(completed('done'))
    const approver: Approver = {
      approveTool: async () => {
        devices.state()
        while (rig.router.count('GET', paths.run) === 0) await new Promise((resolve) => setImmediate(resolve))
        return { decision: 'approved' }
      },
      decideGate: async () => ({ decision: 'approved' }),
    }
    const { outcome } = await driveToEnd({ client: rig.client, devices, approver })
    expect(outcome?.status).toBe('completed')
  })
})

describe('[D08] a question of the model', () => {
  const QUESTION = call('q1', 'ask_user', { questions: [] })
  /** Asks for ever. */
  const asking = (onAsked: () => void) => ({
    asksUser: () => true,
    run: (_call: unknown, signal: AbortSignal) =>
      new Promise<{ content: string; isError: boolean }>((resolve) => {
        signal.addEventListener('abort', () => resolve({ content: 'stopped', isError: true }))
        onAsked()
      }),
  })

  test('that a device answers is taken away, and what is said of it here is ignored there', async () => {
    const devices = new Devices()
    const bounded = { text: 'User selected: A', truncated: false, offset: 0, total_bytes: 16 }
    const tools = asking(() => {
      devices.event({ type: 'question_resolved', question_id: 'x' })
      devices.event({ type: 'tool_finished', id: 'q1', success: true, pending: false, content: bounded })
    })
    answer(awaitingTool(QUESTION))
    run(awaitingTool(QUESTION), awaitingTool(QUESTION))
    then(completed('done'))
    const { events } = await driveToEnd({ client: rig.client, devices, tools })
    expect(events).toContainEqual({ type: 'settled_elsewhere', what: 'call', decision: 'answered' })
    expect(sent()).toMatchObject([{ data: { results: [{ call_id: 'q1', is_error: false }] } }])
  })

  test('[U26] whose chain a device has taken over can still be stopped here', async () => {
    const devices = new Devices()
    const stop = new AbortController()
    const tools = {
      asksUser: () => true,
      run: (_call: unknown, signal: AbortSignal) =>
        new Promise<{ content: string; isError: boolean }>((resolve) => {
          signal.addEventListener('abort', () => {
            resolve({ content: 'stopped', isError: true })
            setImmediate(() => stop.abort())
          })
          devices.event({ type: 'question_resolved', question_id: 'x' })
        }),
    }
    answer(awaitingTool(QUESTION))
    rig.router.always('GET', paths.run, json(awaitingTool(QUESTION)))
    then(idle)
    const { outcome } = await driveToEnd({ client: rig.client, devices, tools, signal: stop.signal })
    expect(outcome).toEqual({ status: 'idle', stopped: true })
    expect(sent()).toEqual([{ type: 'break' }])
  })
})

describe('[U26] a device that stops the run', () => {
  test('while a tool works here: it is ended, and so is the run', async () => {
    const devices = new Devices()
    let ended = false
    const tools = {
      run: (_call: unknown, signal: AbortSignal) =>
        new Promise<{ content: string; isError: boolean }>((resolve) => {
          signal.addEventListener('abort', () => {
            ended = true
            resolve({ content: '', isError: true })
          })
          devices.event({ type: 'turn_cancelled', turn_id: 'turn:1' })
        }),
    }
    answer(awaitingTool(call('c1', 'shell', { command: 'sleep 1000' })))
    run({ status: 'idle', data: { trace_id: 'trace:1' } })
    const { outcome } = await driveToEnd({ client: rig.client, devices, tools })
    expect(ended).toBe(true)
    expect(outcome).toEqual({ status: 'idle', stopped: false, elsewhere: true })
    expect(sent()).toEqual([])
  })

  test('while a model speaks: the run says who stopped it', async () => {
    answer(text('Once'), idle)
    run({ status: 'idle', data: { trace_id: 'trace:1' } })
    const { outcome } = await driveToEnd({ client: rig.client, devices: new Devices() })
    expect(outcome).toEqual({ status: 'idle', stopped: false, elsewhere: true })
  })
})

test('[U10] words of a device that cut the answer are followed by the answer to them', async () => {
  answer(text('Once'), idle)
  run({ status: 'running', data: { trace_id: 'trace:1' }, allowed_continuations: ['inject', 'break'] })
  rig.router.script('GET', paths.run, stream(numbered(2, [text('Twice.'), completed('Twice.')])))
  const { events, outcome } = await driveToEnd({ client: rig.client, devices: new Devices() })
  expect(events).toContainEqual({ type: 'moved_elsewhere', why: 'words' })
  expect(outcome).toMatchObject({ status: 'completed', turn: { message: { content: 'Twice.' } } })
})

test('[U26] our own stop is ours, whatever devices do', async () => {
  const stop = new AbortController()
  rig.router.script(
    'POST',
    paths.execute,
    openStream(numbered(1, [text('one')]), () => setImmediate(() => stop.abort())),
  )
  then(idle)
  const { outcome } = await driveToEnd({ client: rig.client, devices: new Devices(), signal: stop.signal })
  expect(outcome).toEqual({ status: 'idle', stopped: true })
})
