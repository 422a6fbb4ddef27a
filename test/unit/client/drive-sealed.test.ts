import { beforeEach, describe, expect, test } from 'vitest'
import { makeSealer, type Sealer } from '../../../src/client/crypto/sealer.ts'
import { generateKey } from '../../../src/client/crypto/session-key.ts'
import { type DriveOptions, driveRun, type RunEvent, type RunOutcome } from '../../../src/client/drive.ts'
import type { ToolRunner } from '../../../src/client/tool-runner.ts'
import type { EncryptedPayload, SealedMap } from '../../../src/protocol/execution/sealed.ts'
import { approveAll, driveToEnd, recordingTools, rigRouter } from '../../support/node/drive-rig.ts'
import { executeRequest } from '../../support/node/run-request.ts'
import { hangUp, json, numbered, openStream, refusal, stream } from '../../support/node/scripted-router.ts'
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
let sealer: Sealer
beforeEach(async () => {
  sealer = makeSealer(await generateKey(2), SESSION)
})

/** `locked`: this client has no key. */
const drive = ({ locked, ...changes }: Partial<DriveOptions> & { locked?: true } = {}) =>
  driveToEnd({ client: rig.client, ...(locked ? {} : { sealer }), ...changes })

type Sent = {
  type: string
  data: { plaintext?: Record<string, string>; encrypted?: SealedMap; results?: unknown[] }
}
const sent = (): Sent[] =>
  rig.router.requests.filter(({ path }) => path === paths.continue).map(({ body }) => body as Sent)
const keysOf = (path: string) =>
  rig.router.requests.filter((one) => one.path === path).map(({ headers }) => headers['idempotency-key'])

/** What a message carried sealed, opened again. */
function opened(message: Sent | undefined): Record<string, string> {
  const all = Object.entries(message?.data.encrypted ?? {}).map(([ref, payload]) => {
    const text = sealer.open(ref, payload)
    return [ref, text.ok ? text.value : text.error]
  })
  return Object.fromEntries(all)
}

const asking = <T extends { data: object }>(end: T, to_encrypt: Record<string, string>): T => ({
  ...end,
  data: { ...end.data, to_encrypt },
})
const awaitingDecrypt = (to_decrypt: SealedMap, to_encrypt?: Record<string, string>) => ({
  type: 'turn_end',
  status: 'awaiting_decrypt',
  data: { to_decrypt, ...(to_encrypt ? { to_encrypt } : {}), trace_id: 'trace:1' },
  allowed_continuations: ['decrypted', 'break'],
})
const awaitingEncrypt = (to_encrypt: Record<string, string>) => ({
  type: 'turn_end',
  status: 'awaiting_encrypt',
  data: { to_encrypt, trace_id: 'trace:1' },
  allowed_continuations: ['sealed', 'break'],
})
/** As `GET …/run` tells of a pause. */
const envelope = ({ type: _type, ...rest }: { type: string }, more: Record<string, unknown> = {}) =>
  json({ ...rest, ...more })
const start = (...events: unknown[]) => rig.router.script('POST', paths.execute, stream(numbered(1, events)))
const then = (...ends: unknown[]) => {
  for (const end of ends) rig.router.script('POST', paths.continue, stream([{ event: end }]))
}
const types = (events: RunEvent[]) => events.map(({ type }) => type)

describe('a run in an encrypted session', () => {
  const bundle = '{"version":1}'

  test('[EC 17.3, EC 28.4] the answer is shown first, then sealed, and the run is complete once it is kept', async () => {
    const asked = { [`run_input:${SESSION}`]: bundle, 'message:u1': 'hi', 'message:a1': 'hello' }
    start(text('hello'), asking(completed('hello'), asked))
    const shownBefore: string[] = []
    rig.router.script('POST', paths.continue, async (response, request) => {
      shownBefore.push(...seen)
      await stream([{ event: idle }])(response, request)
    })
    const seen: string[] = []
    let outcome: RunOutcome | undefined
    const run = driveRun({
      client: rig.client,
      sessionId: SESSION,
      request: executeRequest('hi'),
      tools: recordingTools(),
      approver: approveAll,
      sealer,
    })
    for await (const event of run) {
      seen.push(event.type)
      if (event.type === 'run_ended') outcome = event.outcome
    }
    expect(shownBefore).toEqual(['text_delta', 'turn_end'])
    expect(outcome).toMatchObject({ status: 'completed', turn: { message: { content: 'hello' } } })
    expect(outcome).not.toHaveProperty('unkept')
    expect(sent().map(({ type }) => type)).toEqual(['sealed'])
    expect(opened(sent()[0])).toEqual(asked)
  })

  test('[EC 29.5] what was opened goes back in plain text, and with it what was asked to be sealed', async () => {
    const history = { 'message:u0': sealer.seal('message:u0', 'before') }
    start(awaitingDecrypt(history, { [`run_input:${SESSION}`]: bundle }))
    then(asking(completed('hello'), { 'message:a1': 'hello' }), idle)
    const { outcome } = await drive()
    expect(outcome?.status).toBe('completed')
    expect(sent()[0]).toMatchObject({
      type: 'decrypted',
      data: { plaintext: { 'message:u0': 'before', [`run_input:${SESSION}`]: bundle } },
    })
    expect(opened(sent()[0])).toEqual({ [`run_input:${SESSION}`]: bundle })
  })

  test('[EC 29.4, EC 29.6] results come sealed beside what was asked, and a decrypt pause may come after any message', async () => {
    start(asking(awaitingTool(call('c1', 'shell', {})), { 'message:a1': '', 'tool_call:a1': '{}' }))
    then(
      awaitingDecrypt({ 'message:a1': sealer.seal('message:a1', '') }),
      asking(awaitingApproval('p1', 'cost_limit', {}), { 'message:a2': 'two' }),
      awaitingDecrypt({ 'message:a2': sealer.seal('message:a2', 'two') }),
      asking(completed('done'), { 'message:a3': 'done' }),
      idle,
    )
    const tools = recordingTools()
    const { outcome } = await drive({ tools })
    expect(outcome?.status).toBe('completed')
    expect(tools.ran).toEqual(['c1'])
    expect(sent().map(({ type }) => type)).toEqual([
      'tool_results',
      'decrypted',
      'approval_decisions',
      'decrypted',
      'sealed',
    ])
    expect(opened(sent()[0])).toEqual({
      'message:a1': '',
      'tool_call:a1': '{}',
      'tool_call:c1': 'shell ran',
    })
    expect(opened(sent()[2])).toEqual({ 'message:a2': 'two' })
  })

  test('[EC 14] a plan is shown and decided by its text, which comes to be sealed', async () => {
    start(asking(awaitingApproval('p1', 'plan', { version: 1 }), { 'plan:p': 'First, second.' }))
    then(idle)
    const shown: unknown[] = []
    const { events } = await drive({
      approver: {
        ...approveAll,
        decideGate: async ({ detail }) => {
          shown.push(detail)
          return { decision: 'rejected' }
        },
      },
    })
    expect(shown).toEqual([{ version: 1, content: 'First, second.' }])
    expect(events[0]).toMatchObject({ data: { approval: { detail: { content: 'First, second.' } } } })
    expect(opened(sent()[0])).toEqual({ 'plan:p': 'First, second.' })
  })

  test('text that UTF-8 cannot carry is sealed as well as it can be, and the run goes on', async () => {
    start(asking(completed('x'), { 'message:a1': 'half \ud800 pair' }))
    then(idle)
    expect((await drive()).outcome?.status).toBe('completed')
    expect(opened(sent()[0])).toEqual({ 'message:a1': 'half \ufffd pair' })
  })

  test('a router that wants the same opened for ever is given up', async () => {
    const pause = stream([{ event: awaitingDecrypt({ 'message:u0': sealer.seal('message:u0', 'x') }) }])
    rig.router.script('POST', paths.execute, pause)
    rig.router.always('POST', paths.continue, pause)
    const { outcome } = await drive()
    expect(outcome).toMatchObject({ status: 'error', failure: { kind: 'network' } })
    expect(rig.router.count('POST', paths.continue)).toBe(4)
  })

  test('[D20] a pause that wants more opened is another one, however often and under whatever trace id', async () => {
    const refs = ['u0', 'a0', 'u1', 'a1', 'u2', 'a2'].map((id) => `message:${id}`)
    const pauses = refs.map((_, last) => {
      const wanted = refs.slice(0, last + 1)
      return awaitingDecrypt(Object.fromEntries(wanted.map((ref) => [ref, sealer.seal(ref, ref)])))
    })
    start(pauses[0])
    then(...pauses.slice(1), idle)
    expect((await drive()).outcome).toEqual({ status: 'idle', stopped: false })
    expect(sent().map(({ data }) => Object.keys(data.plaintext ?? {}))).toEqual(
      refs.map((_, last) => refs.slice(0, last + 1)),
    )
  })

  test('[D20] refused what it has opened, it opens what the run waits for by now', async () => {
    const now = {
      'message:u0': sealer.seal('message:u0', 'one'),
      'message:u1': sealer.seal('message:u1', 'two'),
    }
    start(awaitingDecrypt({ 'message:u0': now['message:u0'] }))
    rig.router.script('POST', paths.continue, refusal(422, 'invalid_request'))
    rig.router.always('GET', paths.run, envelope(awaitingDecrypt(now)))
    then(idle)
    expect((await drive()).outcome).toEqual({ status: 'idle', stopped: false })
    expect(sent().map(({ data }) => data.plaintext)).toEqual([
      { 'message:u0': 'one' },
      { 'message:u0': 'one', 'message:u1': 'two' },
    ])
  })
})

describe('a key that is missing', () => {
  let other: EncryptedPayload
  beforeEach(async () => {
    other = makeSealer(await generateKey(2), SESSION).seal('message:u0', 'secret')
  })

  test('[U35] what another key sealed stops the run, and the failure names that key', async () => {
    start(awaitingDecrypt({ 'message:u0': other }))
    then(idle)
    const { outcome } = await drive()
    expect(outcome).toEqual({
      status: 'error',
      failure: {
        kind: 'locked',
        keyId: other.key_id,
        message: `this session is locked: key ${other.key_id} is needed`,
      },
    })
    expect(sent().map(({ type }) => type)).toEqual(['break'])
  })

  test('[U35] what cannot be opened with the right key is said to be damaged', async () => {
    const moved = sealer.seal('message:elsewhere', 'x')
    start(awaitingDecrypt({ 'message:u0': moved }))
    then(idle)
    const { outcome } = await drive()
    expect(outcome).toMatchObject({ status: 'error', failure: { kind: 'unsupported' } })
    expect(JSON.stringify(outcome)).toMatch(/message:u0.*damaged/)
  })

  test('[U35] without any key the pause names the key, no tool runs and nothing is answered', async () => {
    start(awaitingDecrypt({ 'message:u0': other }))
    const locked = await drive({ locked: true })
    expect(locked.outcome).toMatchObject({ failure: { kind: 'locked', keyId: other.key_id } })
    start(asking(awaitingTool(call('c1', 'shell', {})), { 'message:a1': '' }))
    const tools = recordingTools()
    const unsupported = await drive({ locked: true, tools })
    expect(unsupported.outcome).toMatchObject({ status: 'error', failure: { kind: 'unsupported' } })
    expect(tools.ran).toEqual([])
    expect(sent()).toEqual([])
  })
})

describe('an answer that is not kept', () => {
  const asked = { 'message:a1': 'hello' }
  const detail = (messages: unknown[]) =>
    json({
      session: {
        id: SESSION,
        title: 't',
        key_id: sealer.keyId,
        created_at: '2026-01-01T00:00:00.000Z',
        updated_at: '2026-01-01T00:00:00.000Z',
        messages,
        metadata: null,
      },
    })
  const session = `/api/v1/sessions/${SESSION}`

  test('was shown, and the outcome says that it is not kept', async () => {
    start(text('hello'), asking(completed('hello'), asked))
    rig.router.script('POST', paths.continue, refusal(422, 'invalid_request'))
    rig.router.script('GET', session, detail([]))
    const { events, outcome } = await drive()
    expect(types(events)).toEqual(['text_delta', 'turn_end', 'run_ended'])
    expect(outcome).toMatchObject({
      status: 'completed',
      unkept: { kind: 'http', code: 'invalid_request' },
    })
  })

  test('[D05] unless another client with the key has handed it in', async () => {
    const id = '0197d0a2-6c1e-7c52-9a55-0c6a6f1d2b12'
    start(asking(completed('hello'), { [`message:${id}`]: 'hello' }))
    rig.router.script('POST', paths.continue, refusal(422, 'invalid_request'))
    const encrypted = sealer.seal(`message:${id}`, 'hello')
    rig.router.script('GET', session, detail([{ role: 'assistant', id, content: { encrypted } }]))
    const { outcome } = await drive()
    expect(outcome?.status).toBe('completed')
    expect(outcome).not.toHaveProperty('unkept')
  })

  test('a router that never takes it is given up', async () => {
    start(asking(completed('hello'), asked))
    rig.router.always('POST', paths.continue, stream([{ event: awaitingEncrypt(asked) }]))
    const { outcome } = await drive()
    expect(outcome).toMatchObject({ status: 'completed', unkept: { kind: 'network' } })
    expect(rig.router.count('POST', paths.continue)).toBe(4)
    const [first, ...others] = sent()
    for (const again of others) expect(again).toEqual(first)
  })
})

describe('stopping an encrypted run', () => {
  test('[U26, EC 17.4] the partial answer that the stop leaves is sealed', async () => {
    const stop = new AbortController()
    rig.router.script('POST', paths.execute, openStream(numbered(1, [text('one')])))
    then(awaitingEncrypt({ 'message:a1': 'one' }), idle)
    const events: RunEvent[] = []
    const run = driveRun({
      client: rig.client,
      sessionId: SESSION,
      request: executeRequest('hi'),
      tools: recordingTools(),
      approver: approveAll,
      sealer,
      signal: stop.signal,
    })
    for await (const event of run) {
      events.push(event)
      if (event.type === 'text_delta') stop.abort()
    }
    expect(events.at(-1)).toEqual({ type: 'run_ended', outcome: { status: 'idle', stopped: true } })
    expect(sent().map(({ type }) => type)).toEqual(['break', 'sealed'])
    expect(opened(sent()[1])).toEqual({ 'message:a1': 'one' })
  })

  test('at a pause the stop brings what the pause asked to seal', async () => {
    const stop = new AbortController()
    start(asking(awaitingTool(call('c1', 'a', {})), { 'message:a1': 'one' }))
    then(idle)
    const { outcome } = await drive({
      signal: stop.signal,
      tools: {
        run: async () => {
          stop.abort()
          return { content: '', isError: true }
        },
      },
    })
    expect(outcome).toEqual({ status: 'idle', stopped: true })
    expect(sent().map(({ type }) => type)).toEqual(['break'])
    expect(opened(sent()[0])).toEqual({ 'message:a1': 'one' })
  })

  test('a stop whose ciphertext is refused still stops', async () => {
    const stop = new AbortController()
    start(asking(awaitingTool(call('c1', 'a', {})), { 'message:a1': 'one' }))
    rig.router.script('POST', paths.continue, refusal(422, 'invalid_request'))
    then(idle)
    const tools = {
      run: async () => {
        stop.abort()
        return { content: '', isError: true }
      },
    }
    expect((await drive({ signal: stop.signal, tools })).outcome).toEqual({ status: 'idle', stopped: true })
    expect(sent().map(({ data }) => data?.encrypted !== undefined)).toEqual([true, false])
  })

  test('an answer that came before the stop is still kept', async () => {
    const stop = new AbortController()
    start(asking(completed('hello'), { 'message:a1': 'hello' }))
    then(idle)
    const run = driveRun({
      client: rig.client,
      sessionId: SESSION,
      request: executeRequest('hi'),
      tools: recordingTools(),
      approver: approveAll,
      sealer,
      signal: stop.signal,
    })
    let outcome: RunOutcome | undefined
    for await (const event of run) {
      if (event.type === 'turn_end') stop.abort()
      if (event.type === 'run_ended') outcome = event.outcome
    }
    expect(outcome?.status).toBe('completed')
    expect(opened(sent()[0])).toEqual({ 'message:a1': 'hello' })
  })
})

describe('after a failed turn', () => {
  test('what the turn had said is sealed if the router still has it, and the failure stays the failure', async () => {
    start(text('half'), failedTurn('provider_error'))
    rig.router.script('GET', paths.run, envelope(awaitingEncrypt({ 'message:a1': 'half' })))
    then(idle)
    const { outcome } = await drive()
    expect(outcome).toMatchObject({ status: 'error', failure: { kind: 'turn', code: 'provider_error' } })
    expect(opened(sent()[0])).toEqual({ 'message:a1': 'half' })
  })

  test('an HTTP error of a turn is treated alike, and one look is enough', async () => {
    rig.router.script('POST', paths.execute, refusal(503, 'fallback_exhausted'))
    rig.router.script('GET', paths.run, envelope(idle))
    expect((await drive()).outcome).toMatchObject({ failure: { kind: 'http', code: 'fallback_exhausted' } })
    expect(rig.router.count('GET', paths.run)).toBe(1)
    expect(sent()).toEqual([])
  })

  test('texts that the router has lost and this client never saw are let go', async () => {
    start(failedTurn('provider_error'))
    rig.router.script('GET', paths.run, envelope(awaitingEncrypt({}), { lost: ['message:a1'] }))
    expect((await drive()).outcome).toMatchObject({ failure: { code: 'provider_error' } })
    expect(sent()).toEqual([])
  })

  test('a session that is busy or unknown is not looked at', async () => {
    rig.router.script('POST', paths.execute, refusal(404, 'session_not_found'))
    await drive()
    rig.router.script('POST', paths.execute, refusal(409, 'run_in_flight'))
    await drive()
    expect(rig.router.count('GET', paths.run)).toBe(0)
  })
})

describe('[D20] texts that an evicted router has lost', () => {
  const asked = { 'message:a1': 'look', 'tool_call:a1': '{"calls":[]}' }
  const pause = asking(awaitingTool(call('c1', 'shell', { command: 'ls' })), asked)
  /** As the router tells of that pause without its memory. */
  const lostPause = envelope(
    { ...awaitingTool({ ...call('c1', 'shell', {}), arguments: null }), type: 'turn_end' },
    { lost: Object.keys(asked) },
  )

  test('a pause that nobody saw is asked for again by the same request, and no call without arguments runs', async () => {
    rig.router.script(
      'POST',
      paths.execute,
      stream(numbered(1, [text('lo')]), 'cut'),
      stream(numbered(2, [text('look'), pause])),
    )
    // The stream of a stored turn has its end only; what is missing shows in the state.
    rig.router.script(
      'GET',
      paths.run,
      stream(numbered(1, [awaitingTool({ ...call('c1', 'shell', {}), arguments: null })], 9)),
      lostPause,
    )
    then(asking(completed('done'), { 'message:a2': 'done' }), idle)
    const ran: unknown[] = []
    const tools: ToolRunner = {
      run: async ({ arguments: args }) => {
        ran.push(args)
        return { content: 'out', isError: false }
      },
    }
    const { events, outcome } = await drive({ tools })
    expect(outcome?.status).toBe('completed')
    expect(ran).toEqual([{ command: 'ls' }])
    const executes = rig.router.requests.filter(({ path }) => path === paths.execute)
    expect(executes[1]?.body).toEqual(executes[0]?.body)
    expect(new Set(keysOf(paths.execute)).size).toBe(1)
    expect(types(events).slice(0, 4)).toEqual(['text_delta', 'turn_restarted', 'text_delta', 'turn_end'])
    expect(opened(sent()[0])).toEqual({ ...asked, 'tool_call:c1': 'out' })
  })

  test('a router that loses them again and again is given up', async () => {
    rig.router.always('POST', paths.execute, stream(numbered(1, [text('lo')]), 'cut'))
    rig.router.always('GET', paths.run, lostPause)
    const tools = recordingTools()
    const { outcome } = await drive({ tools })
    expect(outcome).toMatchObject({ status: 'error', failure: { kind: 'network' } })
    expect(tools.ran).toEqual([])
    expect(rig.router.count('POST', paths.execute)).toBe(4)
  })

  test('a continuation is sent again byte for byte: its ciphertext is made once', async () => {
    start(pause)
    rig.router.script('POST', paths.continue, stream(numbered(2, [text('x')]), 'cut'))
    rig.router.script('GET', paths.run, lostPause)
    then(asking(completed('done'), { 'message:a2': 'done' }), idle)
    const tools = recordingTools()
    const { outcome } = await drive({ tools })
    expect(outcome?.status).toBe('completed')
    expect(tools.ran).toEqual(['c1'])
    const [first, again] = sent()
    expect(again).toEqual(first)
    const [key, sameKey] = keysOf(paths.continue)
    expect(sameKey).toBe(key)
  })

  test('a client that saw the texts hands in their ciphertext when the pause comes without them', async () => {
    start(pause)
    // The answer was refused, since another device was being served; now the pause stands there again.
    rig.router.script('POST', paths.continue, refusal(409, 'run_in_flight'))
    rig.router.script('GET', paths.run, envelope(awaitingEncrypt({}), { lost: ['message:a1'] }))
    then(idle)
    const { outcome } = await drive()
    expect(outcome).toEqual({ status: 'idle', stopped: false })
    expect(opened(sent()[1])).toEqual({ 'message:a1': 'look' })
  })

  test('a client that never saw them says so instead of answering', async () => {
    start(pause)
    rig.router.script('POST', paths.continue, refusal(409, 'run_in_flight'))
    rig.router.script(
      'GET',
      paths.run,
      envelope(awaitingTool({ ...call('c2', 'shell', {}), arguments: null }), { lost: ['message:a9'] }),
    )
    const tools = recordingTools()
    const { outcome } = await drive({ tools })
    expect(outcome).toMatchObject({ status: 'error', failure: { kind: 'unsupported' } })
    expect(tools.ran).toEqual(['c1'])
    expect(sent()).toHaveLength(1)
  })

  test('an answer whose ciphertext got lost on the way is sealed again as it was', async () => {
    start(asking(completed('hello'), { 'message:a1': 'hello' }))
    rig.router.script('POST', paths.continue, hangUp, stream([{ event: idle }]))
    const { outcome } = await drive()
    expect(outcome).not.toHaveProperty('unkept')
    const [first, again] = sent()
    expect(again).toEqual(first)
    expect(new Set(keysOf(paths.continue)).size).toBe(1)
  })

  test('a turn that is still held is read as it is, whether streamed or not', async () => {
    rig.router.script('POST', paths.execute, stream(numbered(1, [text('hel')]), 'cut'))
    const end = asking(completed('hello'), { 'message:a1': 'hello' })
    rig.router.script('GET', paths.run, stream(numbered(1, [text('lo'), end], 2)), envelope(end))
    then(idle)
    const { events, outcome } = await drive()
    expect(types(events)).toEqual(['text_delta', 'text_delta', 'turn_end', 'run_ended'])
    expect(outcome?.status).toBe('completed')
    expect(opened(sent()[0])).toEqual({ 'message:a1': 'hello' })
  })
})
