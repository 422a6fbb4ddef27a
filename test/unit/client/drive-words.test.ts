import type http from 'node:http'
import { beforeEach, describe, expect, test } from 'vitest'
import { makeSealer } from '../../../src/client/crypto/sealer.ts'
import { generateKey } from '../../../src/client/crypto/session-key.ts'
import type { DriveOptions, RunEvent } from '../../../src/client/drive.ts'
import { WordQueue } from '../../../src/client/words.ts'
import { driveToEnd, rigRouter } from '../../support/node/drive-rig.ts'
import {
  encodeEvent,
  hangUp,
  numbered,
  openStream,
  type Reply,
  refusal,
  stream,
} from '../../support/node/scripted-router.ts'
import {
  awaitingApproval,
  awaitingTool,
  call,
  completed,
  idle,
  paths,
  SESSION,
  text,
} from '../../support/node/scripted-router-turns.ts'

const rig = rigRouter()
let words: WordQueue
beforeEach(() => {
  words = new WordQueue()
})

const drive = (changes: Partial<DriveOptions> = {}, on?: (event: RunEvent) => void) =>
  driveToEnd({ client: rig.client, words, ...changes }, on)

const types = (events: RunEvent[]) => events.map(({ type }) => type)
const sent = () => rig.router.requests.filter(({ path }) => path === paths.continue).map(({ body }) => body)
const keys = () =>
  rig.router.requests
    .filter(({ path }) => path === paths.continue)
    .map(({ headers }) => headers['idempotency-key'])
const startKeys = () =>
  rig.router.requests
    .filter(({ path }) => path === paths.execute)
    .map(({ headers }) => headers['idempotency-key'])
const inject = (words: string) => ({ type: 'inject', data: { messages: [{ text: words }] } })
const started = (reply: Reply) => rig.router.script('POST', paths.execute, reply)
const continued = (...replies: Reply[]) => rig.router.script('POST', paths.continue, ...replies)
const answers = (turn: number, content: string) => stream(numbered(turn, [text(content), completed(content)]))
/** A turn at work that says nothing more until it is let go of. */
const atWork = (turn: number, ...events: unknown[]) => openStream(numbered(turn, events))
/** Whenever text is shown, the next of these is typed. */
const typing =
  (...lines: string[]) =>
  (event: RunEvent) => {
    const line = event.type === 'text_delta' ? lines.shift() : undefined
    if (line !== undefined) words.push(line)
  }

describe('new words while the model is at work', () => {
  test('[EC 15] in mid-text cut the answer, and the run goes on from them', async () => {
    started(atWork(1, text('Once upon')))
    continued(answers(2, 'Twice.'))
    const { events, outcome } = await drive({}, typing('say it twice'))
    expect(sent()).toEqual([inject('say it twice')])
    expect(types(events)).toEqual(['text_delta', 'words_sent', 'text_delta', 'turn_end', 'run_ended'])
    expect(events[1]).toEqual({ type: 'words_sent', texts: ['say it twice'], cut: true })
    expect(outcome).toMatchObject({ status: 'completed', turn: { message: { content: 'Twice.' } } })
  })

  test('[EC 15] before the first token they are sent once the router has taken the prompt, not before', async () => {
    words.push('in French')
    const prompts: boolean[] = []
    started((response, request) => {
      prompts.push(rig.router.count('POST', paths.continue) === 0)
      return openStream([])(response, request)
    })
    continued(answers(2, 'Oui.'))
    const { events } = await drive()
    expect(prompts).toEqual([true])
    expect(sent()).toEqual([inject('in French')])
    expect(events[0]).toEqual({ type: 'words_sent', texts: ['in French'], cut: false })
  })

  test('two arrivals close together are one request; one that comes behind it cuts again, and none is sent twice', async () => {
    started(atWork(1, text('a')))
    continued(atWork(2, text('b')), answers(3, 'c'))
    const { events } = await drive(
      {},
      (() => {
        let shown = 0
        return ({ type }: RunEvent) => {
          if (type !== 'text_delta') return
          shown++
          if (shown === 1) {
            words.push('one')
            words.push('two')
          }
          if (shown === 2) words.push('three')
        }
      })(),
    )
    expect(sent()).toEqual([inject('one\ntwo'), inject('three')])
    expect(new Set(keys()).size).toBe(2)
    expect(events.filter(({ type }) => type === 'words_sent')).toEqual([
      { type: 'words_sent', texts: ['one', 'two'], cut: true },
      { type: 'words_sent', texts: ['three'], cut: true },
    ])
  })

  test('[U04] they are told as sent before the next word of the model comes', async () => {
    let opened: http.ServerResponse | undefined
    started(atWork(1, text('a')))
    continued(openStream([], (response) => (opened = response)))
    const { outcome } = await drive({}, (event) => {
      if (event.type === 'text_delta') words.push('wait')
      if (event.type === 'words_sent') opened?.end(encodeEvent({ id: '2.1', event: completed('I waited.') }))
    })
    expect(outcome?.status).toBe('completed')
  })
})

describe('new words while the run waits for this machine', () => {
  test('[EC 15] a tool that is running is not cut: its result goes first, the words at once behind it', async () => {
    started(stream(numbered(1, [awaitingTool(call('c1', 'shell', {}))])))
    continued(atWork(2), answers(3, 'done'))
    const { events, outcome } = await drive({
      tools: {
        run: async () => {
          words.push('only the first one')
          return { content: 'ran', isError: false }
        },
      },
    })
    expect(sent()).toEqual([
      { type: 'tool_results', data: { results: [{ call_id: 'c1', content: 'ran', is_error: false }] } },
      inject('only the first one'),
    ])
    expect(events.find(({ type }) => type === 'words_sent')).toMatchObject({ cut: false })
    expect(outcome?.status).toBe('completed')
  })

  test('[EC 13] at a gate they wait for the decision', async () => {
    started(stream(numbered(1, [awaitingApproval('a1', 'plan', { content: 'p' })])))
    continued(atWork(2), answers(3, 'done'))
    await drive({
      approver: {
        approveTool: async () => ({ decision: 'approved' }),
        decideGate: async () => {
          words.push('but carefully')
          return { decision: 'approved' }
        },
      },
    })
    expect(sent()).toEqual([
      {
        type: 'approval_decisions',
        data: { decisions: [{ approval_id: 'a1', decision: 'approved' }] },
      },
      inject('but carefully'),
    ])
  })

  test('[D20] in an encrypted session what was opened for the prompt is opened again for the words', async () => {
    const sealer = makeSealer(await generateKey(2), SESSION)
    const opening = {
      type: 'turn_end',
      status: 'awaiting_decrypt',
      data: { to_decrypt: { 'message:m1': sealer.seal('message:m1', 'earlier') }, trace_id: 'trace:1' },
      allowed_continuations: ['decrypted', 'break'],
    }
    started(stream([{ event: opening }]))
    const lines = ['one', 'two', 'three', 'four']
    for (const [turn] of lines.entries()) continued(atWork(turn + 2, text('a')), stream([{ event: opening }]))
    continued(answers(9, 'c'))
    const { outcome } = await drive({ sealer }, typing(...lines))
    expect(sent().map((body) => (body as { type: string }).type)).toEqual([
      'decrypted',
      ...lines.flatMap(() => ['inject', 'decrypted']),
    ])
    expect(outcome?.status).toBe('completed')
  })
})

describe('new words and a router that dies', () => {
  test('[D20] while the connection is lost they wait: the router may have lost the turn that they would follow', async () => {
    started(stream(numbered(1, [text('a')]), 'cut'))
    const atReconnect: number[] = []
    rig.router.script('GET', paths.run, (response, request) => {
      words.push('x')
      return stream(numbered(7, [idle]))(response, request)
    })
    started((response, request) => {
      atReconnect.push(rig.router.count('POST', paths.continue))
      return atWork(2, text('a'))(response, request)
    })
    continued(answers(3, 'b'))
    const { events, outcome } = await drive()
    expect(atReconnect).toEqual([0])
    expect(sent()).toEqual([inject('x')])
    expect(new Set(startKeys()).size).toBe(1)
    expect(types(events)).toContain('words_sent')
    expect(outcome?.status).toBe('completed')
  })

  test.each([
    ['is asked for with the answer', { 'message:u1': 'hi', 'message:u2': 'x' }, 'completed'],
    ['is not asked for: it is lost, and that is said', { 'message:u2': 'x' }, 'error'],
  ])(
    '[D20, EC 17.3] in an encrypted session the prompt before the words %s',
    async (_what, asked, status) => {
      const sealer = makeSealer(await generateKey(2), SESSION)
      started(atWork(1, text('a')))
      continued(stream(numbered(2, [completed('b', { to_encrypt: asked })])), stream([{ event: idle }]))
      const { outcome } = await drive({ sealer }, typing('x'))
      expect(outcome?.status).toBe(status)
      if (outcome?.status === 'error') expect(outcome.failure.message).toContain('has lost it: send it again')
      expect(sent().map((body) => (body as { type: string }).type)).toEqual([
        'inject',
        status === 'error' ? 'break' : 'sealed',
      ])
    },
  )
})

describe('new words that the router does not take', () => {
  test('[U04] refused ones are told of, and the turn that was let go of goes on where it was, nothing shown twice', async () => {
    started(atWork(1, text('Once '), text('upon ')))
    continued(refusal(422, 'invalid_request'))
    const resumed: unknown[] = []
    rig.router.script('GET', paths.run, (response, request) => {
      resumed.push(request.headers['last-event-id'])
      return stream(numbered(1, [text('a time'), completed('Once upon a time')], 3))(response, request)
    })
    const { events, outcome } = await drive({}, (event) => {
      if (event.type === 'text_delta' && event.delta === 'upon ') words.push('too much')
    })
    expect(resumed).toEqual(['1.2'])
    expect(types(events)).toEqual([
      ...['text_delta', 'text_delta', 'words_not_sent', 'text_delta', 'turn_end', 'run_ended'],
    ])
    expect(events[2]).toMatchObject({
      texts: ['too much'],
      failure: { kind: 'http', code: 'invalid_request' },
    })
    expect(outcome?.status).toBe('completed')
  })

  test('[D05] refused with 409 they leave the run to whoever has it', async () => {
    started(atWork(1, text('a')))
    continued(refusal(409, 'run_in_flight'))
    rig.router.script('GET', paths.run, stream(numbered(1, [idle], 2)))
    const { events, outcome } = await drive({}, typing('x'))
    expect(types(events)).toEqual(['text_delta', 'words_not_sent', 'turn_end', 'run_ended'])
    expect(outcome).toEqual({ status: 'idle', stopped: false })
  })

  test('[U02, U14] a connection that is lost meanwhile repeats the same request, under the same key', async () => {
    started(atWork(1, text('a')))
    continued(hangUp, answers(2, 'b'))
    const { events } = await drive({}, typing('x'))
    expect(sent()).toEqual([inject('x'), inject('x')])
    expect(new Set(keys()).size).toBe(1)
    expect(events.filter(({ type }) => type === 'words_sent')).toHaveLength(1)
  })

  test('a router that does not answer them ends the run, and says which words they were', async () => {
    started(atWork(1, text('a')))
    continued(hangUp, hangUp, hangUp)
    const { events, outcome } = await drive({}, typing('x'))
    expect(events.find(({ type }) => type === 'words_not_sent')).toMatchObject({
      texts: ['x'],
      failure: { kind: 'network' },
    })
    expect(outcome).toMatchObject({ status: 'error', failure: { kind: 'network' } })
  })
})

describe('new words and the end of the run', () => {
  test('what comes after the end is left where it is', async () => {
    started(answers(1, 'done'))
    const { outcome } = await drive({}, (event) => {
      if (event.type === 'turn_end') words.push('and then?')
    })
    expect(outcome?.status).toBe('completed')
    expect(sent()).toEqual([])
    expect(words.take()).toEqual(['and then?'])
  })

  test('[U26] a stop wins over words that wait, and over those on their way', async () => {
    const stop = new AbortController()
    started(atWork(1, text('a')))
    continued(
      (response, request) => {
        stop.abort()
        return openStream([])(response, request)
      },
      stream([{ event: idle }]),
    )
    const { events, outcome } = await drive({ signal: stop.signal }, typing('x'))
    expect(sent()).toEqual([inject('x'), { type: 'break' }])
    expect(outcome).toEqual({ status: 'idle', stopped: true })
    expect(events.filter(({ type }) => type.startsWith('words_'))).toHaveLength(1)
  })
})
