import { describe, expect, test } from 'vitest'
import { type DriveOptions, driveRun, type RunEvent, type RunOutcome } from '../../../src/client/drive.ts'
import type { Approver } from '../../../src/client/tool-runner.ts'
import { approveAll, driveToEnd, recordingTools, rigRouter } from '../../support/node/drive-rig.ts'
import { executeRequest } from '../../support/node/run-request.ts'
import { json, numbered, openStream, refusal, stream } from '../../support/node/scripted-router.ts'
import {
  awaitingApproval,
  awaitingTool,
  call,
  completed,
  failedTurn,
  idle,
  paths,
  SESSION,
  text,
} from '../../support/node/scripted-router-turns.ts'

const rig = rigRouter()

const drive = (changes: Partial<DriveOptions> = {}) => driveToEnd({ client: rig.client, ...changes })

const bodies = (path: string) =>
  rig.router.requests.filter((one) => one.path === path).map(({ body }) => body)
const requested = (id: string, name: string) => ({
  type: 'tool_call_requested',
  call_id: id,
  name,
  arguments: {},
  requires_approval: 'allow',
})

describe('driveRun', () => {
  test('a prompt without tools is one turn', async () => {
    const { type: _type, ...turn } = completed('hello')
    rig.router.script(
      'POST',
      paths.execute,
      stream(numbered(1, [text('hel'), text('lo'), completed('hello')])),
    )
    const { events, outcome } = await drive()
    expect(events.map(({ type }) => type)).toEqual(['text_delta', 'text_delta', 'turn_end', 'run_ended'])
    expect(outcome).toEqual({
      status: 'completed',
      turn: turn.status === 'completed' ? turn.data : undefined,
    })
  })

  test('[EC 29.3, 29.7] calls seen in events and in turn_end run once each, and all are answered together', async () => {
    const pause = awaitingTool(
      call('c1', 'read_file', {}),
      call('c2', 'shell', {}, 'ask'),
      call('c1', 'read_file', {}),
    )
    rig.router.script(
      'POST',
      paths.execute,
      stream(numbered(1, [requested('c1', 'read_file'), requested('c2', 'shell'), pause])),
    )
    rig.router.script('POST', paths.continue, stream(numbered(2, [completed('done')])))
    const tools = recordingTools()
    const { events, outcome } = await drive({ tools })
    expect(tools.ran).toEqual(['c1', 'c2'])
    expect(outcome?.status).toBe('completed')
    expect(bodies(paths.continue)).toEqual([
      {
        type: 'tool_results',
        data: {
          results: [
            { call_id: 'c1', content: 'read_file ran', is_error: false },
            { call_id: 'c2', content: 'shell ran', is_error: false, decision: 'approved' },
          ],
        },
      },
    ])
    expect(events.filter(({ type }) => type === 'tool_finished')).toHaveLength(2)
  })

  test('[D05] driver_epoch is echoed in the results', async () => {
    rig.router.script(
      'POST',
      paths.execute,
      stream([{ event: awaitingTool({ ...call('c1', 'x', {}), driver_epoch: 7 }) }]),
    )
    rig.router.script('POST', paths.continue, stream([{ event: completed('done') }]))
    await drive()
    expect(bodies(paths.continue)).toMatchObject([
      { data: { results: [{ call_id: 'c1', driver_epoch: 7 }] } },
    ])
  })

  test('[EC 13] a declined call is not run and reported as an error with the reason', async () => {
    rig.router.script(
      'POST',
      paths.execute,
      stream([{ event: awaitingTool(call('c1', 'shell', {}, 'ask')) }]),
    )
    rig.router.script('POST', paths.continue, stream([{ event: completed('ok') }]))
    const tools = recordingTools()
    const approver: Approver = {
      ...approveAll,
      approveTool: async () => ({ decision: 'rejected', reason: 'Not now' }),
    }
    await drive({ tools, approver })
    expect(tools.ran).toEqual([])
    expect(bodies(paths.continue)).toEqual([
      {
        type: 'tool_results',
        data: { results: [{ call_id: 'c1', content: 'Not now', is_error: true, decision: 'rejected' }] },
      },
    ])
  })

  test('[D05, D46] what a device rejected is not run; what it approved is still asked for here', async () => {
    const pause = awaitingTool(
      { ...call('c1', 'shell', {}, 'ask'), decision: 'rejected' },
      { ...call('c2', 'shell', {}, 'ask'), decision: 'approved' },
    )
    rig.router.script('POST', paths.execute, stream([{ event: pause }]))
    rig.router.script('POST', paths.continue, stream([{ event: completed('ok') }]))
    const asked: string[] = []
    const tools = recordingTools()
    await drive({
      tools,
      approver: {
        ...approveAll,
        approveTool: async ({ call_id }) => {
          asked.push(call_id)
          return { decision: 'approved' }
        },
      },
    })
    expect(asked).toEqual(['c2'])
    expect(tools.ran).toEqual(['c2'])
  })

  test.each(['remote_disclosure', 'cost_limit', 'plan'] as const)(
    '[EC 13] a %s gate is decided by the approver',
    async (kind) => {
      rig.router.script(
        'POST',
        paths.execute,
        stream([{ event: awaitingApproval('a1', kind, { plan: 'p' }) }]),
      )
      rig.router.script('POST', paths.continue, stream([{ event: idle }]))
      const seen: string[] = []
      const { events, outcome } = await drive({
        approver: {
          ...approveAll,
          decideGate: async (approval) => {
            seen.push(approval.kind)
            return { decision: 'rejected', reason: 'no' }
          },
        },
      })
      expect(seen).toEqual([kind])
      expect(outcome).toEqual({ status: 'idle', stopped: false })
      expect(events.map(({ type }) => type)).toEqual(['turn_end', 'gate_decided', 'turn_end', 'run_ended'])
      expect(bodies(paths.continue)).toEqual([
        {
          type: 'approval_decisions',
          data: { decisions: [{ approval_id: 'a1', decision: 'rejected', reason: 'no' }] },
        },
      ])
    },
  )

  test('[EC 29.9] a turn that fails in its stream is a turn failure with its code', async () => {
    rig.router.script('POST', paths.execute, stream([{ event: failedTurn('fallback_exhausted') }]))
    expect((await drive()).outcome).toEqual({
      status: 'error',
      failure: { kind: 'turn', code: 'fallback_exhausted', message: 'scripted fallback_exhausted' },
    })
  })

  test('a run that is refused before it starts is an http failure', async () => {
    rig.router.script('POST', paths.execute, refusal(422, 'no_route'))
    expect((await drive()).outcome).toMatchObject({
      status: 'error',
      failure: { kind: 'http', code: 'no_route' },
    })
  })

  test.each([
    ['awaiting_decrypt', { to_decrypt: {}, trace_id: 't' }],
    ['awaiting_encrypt', { to_encrypt: {}, trace_id: 't' }],
  ])('%s ends with a sentence that no key is held', async (status, data) => {
    rig.router.script('POST', paths.execute, stream([{ event: { type: 'turn_end', status, data } }]))
    const { outcome } = await drive()
    expect(outcome).toMatchObject({ status: 'error', failure: { kind: 'unsupported' } })
    expect(JSON.stringify(outcome)).toContain('holds no key')
  })
})

describe('after a crash of the router', () => {
  /** The envelope as a router without event ids gives it. */
  const envelope = ({ type: _type, ...rest }: { type: string }) => json(rest)

  test('[U24] a pause that comes again is answered with the same results, and no tool runs twice', async () => {
    const pause = awaitingTool(call('c1', 'shell', {}))
    rig.router.script('POST', paths.execute, stream([{ event: pause }]))
    rig.router.script(
      'POST',
      paths.continue,
      stream([{ event: text('lost ') }], 'cut'),
      stream([{ event: text('again') }, { event: completed('again') }]),
    )
    rig.router.script('GET', paths.run, envelope(pause))
    const tools = recordingTools()
    const { events, outcome } = await drive({ tools })
    expect(tools.ran).toEqual(['c1'])
    expect(outcome?.status).toBe('completed')
    const [first, second] = bodies(paths.continue)
    expect(second).toEqual(first)
    const types = events.map(({ type }) => type)
    expect(types.slice(types.indexOf('text_delta'))).toEqual([
      'text_delta',
      'turn_restarted',
      'turn_end',
      'text_delta',
      'turn_end',
      'run_ended',
    ])
  })

  test('[U24] a gate that comes again is not asked about twice', async () => {
    const gate = awaitingApproval('a1', 'plan', {})
    rig.router.script('POST', paths.execute, stream([{ event: gate }]))
    rig.router.script(
      'POST',
      paths.continue,
      stream([{ event: text('x') }], 'cut'),
      stream([{ event: completed('x') }]),
    )
    rig.router.script('GET', paths.run, envelope(gate))
    let asked = 0
    const { outcome } = await drive({
      approver: {
        ...approveAll,
        decideGate: async () => {
          asked++
          return { decision: 'approved' }
        },
      },
    })
    expect({ asked, status: outcome?.status }).toEqual({ asked: 1, status: 'completed' })
  })

  test('a router that never takes the results is given up', async () => {
    const pause = stream([{ event: awaitingTool(call('c1', 'shell', {})) }])
    rig.router.script('POST', paths.execute, pause)
    rig.router.always('POST', paths.continue, pause)
    const tools = recordingTools()
    const { outcome } = await drive({ tools })
    expect(outcome).toMatchObject({ status: 'error', failure: { kind: 'network' } })
    expect(tools.ran).toEqual(['c1'])
    expect(rig.router.count('POST', paths.continue)).toBe(4)
  })
})

describe('when another device moved the run on', () => {
  const pause = awaitingTool(call('c1', 'shell', {}))

  test('[D05] results that come too late are no failure: the run’s present state decides', async () => {
    rig.router.script('POST', paths.execute, stream(numbered(1, [pause])))
    rig.router.script('POST', paths.continue, refusal(422, 'invalid_request'))
    rig.router.script('GET', paths.run, stream(numbered(2, [idle])))
    expect((await drive()).outcome).toEqual({ status: 'idle', stopped: false })
  })

  test('[EC 29.10] a turn that is being served is followed', async () => {
    rig.router.script('POST', paths.execute, stream(numbered(1, [pause])))
    rig.router.script('POST', paths.continue, refusal(409, 'run_in_flight'))
    rig.router.script('GET', paths.run, stream(numbered(2, [text('hi'), completed('hi')])))
    expect((await drive()).outcome?.status).toBe('completed')
  })

  test('results that the router refuses while it still waits for them are a failure', async () => {
    rig.router.script('POST', paths.execute, stream(numbered(1, [pause])))
    rig.router.script('POST', paths.continue, refusal(422, 'invalid_request'))
    rig.router.script('GET', paths.run, stream(numbered(1, [pause])))
    expect((await drive()).outcome).toMatchObject({ status: 'error', failure: { code: 'invalid_request' } })
  })
})

describe('stopping', () => {
  const breaks = { type: 'break' }

  test('[U26] during generation: the reading ends and a break is sent', async () => {
    const stop = new AbortController()
    rig.router.script('POST', paths.execute, openStream(numbered(1, [text('one')])))
    rig.router.script('POST', paths.continue, stream(numbered(2, [idle])))
    const events: RunEvent[] = []
    const run = driveRun({
      client: rig.client,
      sessionId: SESSION,
      request: executeRequest('hi'),
      tools: recordingTools(),
      approver: approveAll,
      signal: stop.signal,
    })
    for await (const event of run) {
      events.push(event)
      if (event.type === 'text_delta') stop.abort()
    }
    expect(events.at(-1)).toEqual({ type: 'run_ended', outcome: { status: 'idle', stopped: true } })
    expect(bodies(paths.continue)).toEqual([breaks])
  })

  test('[U26] during a tool: the tool is told, later calls do not run, and no results are sent', async () => {
    const stop = new AbortController()
    rig.router.script(
      'POST',
      paths.execute,
      stream([{ event: awaitingTool(call('c1', 'a', {}), call('c2', 'b', {})) }]),
    )
    rig.router.script('POST', paths.continue, stream([{ event: idle }]))
    const ran: string[] = []
    const { outcome } = await drive({
      signal: stop.signal,
      tools: {
        run: async ({ call_id }, signal) => {
          ran.push(call_id)
          stop.abort()
          return { content: String(signal.aborted), isError: true }
        },
      },
    })
    expect({ ran, outcome }).toEqual({ ran: ['c1'], outcome: { status: 'idle', stopped: true } })
    expect(bodies(paths.continue)).toEqual([breaks])
  })

  test('at a question: the answer given meanwhile does not count', async () => {
    const stop = new AbortController()
    rig.router.script(
      'POST',
      paths.execute,
      stream([{ event: awaitingTool(call('c1', 'shell', {}, 'ask')) }]),
    )
    rig.router.script('POST', paths.continue, stream([{ event: idle }]))
    const tools = recordingTools()
    await drive({
      tools,
      signal: stop.signal,
      approver: {
        ...approveAll,
        approveTool: async () => {
          stop.abort()
          return { decision: 'approved' }
        },
      },
    })
    expect(tools.ran).toEqual([])
    expect(bodies(paths.continue)).toEqual([breaks])
  })

  test('a run that is over when the signal comes keeps its outcome', async () => {
    const stop = new AbortController()
    rig.router.script('POST', paths.execute, stream([{ event: completed('hi') }]))
    let outcome: RunOutcome | undefined
    const run = driveRun({
      client: rig.client,
      sessionId: SESSION,
      request: executeRequest('hi'),
      tools: recordingTools(),
      approver: approveAll,
      signal: stop.signal,
    })
    for await (const event of run) {
      if (event.type === 'turn_end') stop.abort()
      if (event.type === 'run_ended') outcome = event.outcome
    }
    expect(outcome?.status).toBe('completed')
  })

  test('[EC 5.3] a run that the router never heard of is stopped as well', async () => {
    const stop = new AbortController()
    rig.router.script('POST', paths.execute, () => stop.abort())
    rig.router.script('POST', paths.continue, refusal(422, 'invalid_request'))
    expect((await drive({ signal: stop.signal })).outcome).toEqual({ status: 'idle', stopped: true })
  })

  test('a stop that the router does not confirm is a failure, not a success', async () => {
    const stop = new AbortController()
    rig.router.script('POST', paths.execute, () => stop.abort())
    rig.router.always('POST', paths.continue, json({ error: { code: 'internal_error', message: 'm' } }, 500))
    expect((await drive({ signal: stop.signal })).outcome).toMatchObject({
      status: 'error',
      failure: { code: 'internal_error' },
    })
  })
})
