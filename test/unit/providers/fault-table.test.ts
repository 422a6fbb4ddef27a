import { afterEach, describe, expect, it, vi } from 'vitest'
import { MAX_CALLS_PER_ANSWER } from '../../../src/providers/bounds.ts'
import { categoryToCode, isFallbackEligible } from '../../../src/providers/failures.ts'
import { OpenAiCompatibleProvider } from '../../../src/providers/openai-compatible.ts'
import type { ModelEvent } from '../../../src/providers/provider.ts'
import { type ScriptedAnswer, scriptedFetch } from '../../support/node/scripted-upstream.ts'
import {
  dataEvent,
  jsonAnswer,
  piecesUntil,
  type ScriptedCall,
  type ScriptedCompletion,
} from '../../support/node/scripted-upstream-completion.ts'
import { startScriptedUpstream } from '../../support/node/scripted-upstream-server.ts'
import { DEADLINES, DIALECTS, type FaultDialect } from './fault-dialects.ts'
import { collectAll, KEY, makeContext, makeRequest } from './support.ts'

/** What became of a call: `code` and `fallback` as the run sees them, and what the reader has been shown. */
type Outcome = {
  code: string
  /** Another model is tried: nothing had been shown, and another may do better (D24, EC 3). */
  fallback: boolean
  kept: string
  /** Whether the sentence says this. */
  says?: string
}

const SLOW: Outcome = { code: 'request_timeout', fallback: true, kept: '' }
const BROKEN: Outcome = { code: 'provider_error', fallback: true, kept: '' }
const DOWN: Outcome = { code: 'provider_unavailable', fallback: true, kept: '' }
const afterWords = (outcome: Outcome): Outcome => ({ ...outcome, fallback: false, kept: 'Hm' })
const endless = (says: string): Outcome => ({ ...BROKEN, says })

type Fault = {
  name: string
  /** Undefined for a fault that this dialect cannot have. */
  answer: (dialect: FaultDialect) => ScriptedAnswer | typeof fetch | undefined
  outcome: Outcome
  /** Dialects in which it comes to something else. */
  except?: Partial<Record<FaultDialect['name'], Outcome>>
  streaming?: false
  /** The clock is let go this far. */
  afterMs?: number
}

const stream = ({ wire }: FaultDialect, pieces: readonly string[], rest: ScriptedAnswer = {}) => ({
  headers: { 'content-type': wire.contentType },
  body: pieces.join(''),
  ...rest,
})
const said = ({ wire }: FaultDialect) => piecesUntil(wire, 'Hm')
const isLines = ({ wire }: FaultDialect) => wire.contentType === 'application/x-ndjson'
/** White space inside a piece, so that a flood of little ones is one of many bytes. */
const padded = (piece: string) => piece.replace(/\}(\n+)$/, `}${' '.repeat(60_000)}$1`)
/** The piece of a stream that brings this text. */
const pieceWith = (dialect: FaultDialect, text: string) =>
  dialect.wire.frames({ text: [text] }).find((frame) => frame.includes(JSON.stringify(text))) ?? ''
const call = (id: string, path = 'a'): ScriptedCall => ({ id, name: 'read_file', arguments: { path } })

const page = '<!DOCTYPE html><html><body>Welcome to the hotel network</body></html>'

const FAULTS: readonly Fault[] = [
  {
    name: 'a refused connection',
    answer: () => () => Promise.reject(new TypeError('fetch failed')),
    outcome: DOWN,
  },
  {
    name: 'a redirect',
    answer: () => ({ status: 307, headers: { location: 'http://elsewhere.example/v1' } }),
    outcome: { ...BROKEN, says: 'a redirect, HTTP 307' },
  },
  {
    name: 'no byte at all',
    answer: () => ({ ending: 'hang' }),
    outcome: { ...SLOW, says: 'sent nothing within 3 s' },
    afterMs: 3_000,
  },
  {
    name: 'no byte after the first words',
    answer: (dialect) => stream(dialect, said(dialect), { ending: 'hang' }),
    outcome: { ...afterWords(SLOW), says: 'fell silent, and said nothing more within 5 s' },
    afterMs: 5_000,
  },
  {
    name: 'signs of life and nothing else',
    answer: (dialect) => stream(dialect, [], { repeat: { piece: dialect.keepAlive, everyMs: 1_000 } }),
    outcome: { ...SLOW, says: 'did not finish within 30 s' },
    afterMs: 30_000,
  },
  {
    name: 'signs of life and nothing else after the first words',
    answer: (dialect) =>
      stream(dialect, said(dialect), { repeat: { piece: dialect.keepAlive, everyMs: 4_999 } }),
    outcome: { ...afterWords(SLOW), says: 'did not finish within 30 s' },
    afterMs: 30_000,
  },
  { name: 'an end before the first token', answer: (dialect) => stream(dialect, []), outcome: BROKEN },
  {
    name: 'a connection that breaks before the first token',
    answer: (dialect) => stream(dialect, [], { ending: 'break' }),
    outcome: DOWN,
  },
  {
    name: 'an end after the first words',
    answer: (dialect) => stream(dialect, said(dialect)),
    outcome: afterWords(BROKEN),
  },
  {
    name: 'a connection that breaks after the first words',
    answer: (dialect) => stream(dialect, said(dialect), { ending: 'break' }),
    outcome: afterWords(DOWN),
  },
  { name: 'garbage', answer: (dialect) => stream(dialect, ['\u0000\u0001 garbage\n\n']), outcome: BROKEN },
  {
    name: 'garbage after the first words',
    answer: (dialect) => stream(dialect, [...said(dialect), dialect.wire.garbageFrame]),
    outcome: afterWords(BROKEN),
  },
  {
    name: 'garbage where the answer is not streamed',
    answer: () => ({ body: 'garbage' }),
    outcome: { ...BROKEN, says: 'its answer cannot be read' },
    streaming: false,
  },
  {
    name: 'a web page with status 200',
    answer: () => ({ headers: { 'content-type': 'text/html' }, body: page }),
    outcome: { ...BROKEN, says: 'a web page came instead of its answer' },
  },
  {
    name: 'a web page with status 200 where the answer is not streamed',
    answer: () => ({ headers: { 'content-type': 'text/html' }, body: page }),
    outcome: BROKEN,
    streaming: false,
  },
  {
    name: 'a web page that calls itself a stream',
    answer: (dialect) => stream(dialect, [`\n  ${page}`]),
    outcome: { ...BROKEN, says: 'a web page came instead of its answer' },
  },
  {
    name: 'an error in one piece, with status 200',
    answer: () => jsonAnswer({ error: { message: 'rate limit reached', type: 'x' } }),
    outcome: { code: 'rate_limited', fallback: true, kept: '', says: 'rate limit reached' },
  },
  {
    name: 'an answer in one piece where a stream was asked for',
    answer: (dialect) => (isLines(dialect) ? undefined : dialect.wire.buffered({ text: ['Hm'] })),
    outcome: { ...BROKEN, says: 'it answered in one piece where a stream was asked for' },
  },
  {
    name: 'an error inside the stream',
    answer: (dialect) => stream(dialect, [dialect.wire.errorFrame('rate limit reached')]),
    outcome: { code: 'rate_limited', fallback: true, kept: '' },
  },
  {
    name: 'an error inside the stream after the first words',
    answer: (dialect) => stream(dialect, [...said(dialect), dialect.wire.errorFrame('rate limit reached')]),
    outcome: { code: 'rate_limited', fallback: false, kept: 'Hm' },
  },
  {
    name: 'more calls than anybody makes',
    answer: (dialect) => {
      const calls = Array.from({ length: MAX_CALLS_PER_ANSWER + 1 }, (_, index) => call(`c${index}`))
      return stream(dialect, dialect.wire.frames({ calls }))
    },
    outcome: endless('it makes too many calls at once'),
  },
  {
    name: 'arguments of a call without an end',
    answer: (dialect) =>
      stream(dialect, dialect.wire.frames({ calls: [call('c1', 'x'.repeat(1024 * 1024))] })),
    outcome: endless('the arguments of a call have no end'),
  },
  {
    name: 'a call with a name without an end',
    answer: (dialect) =>
      stream(dialect, dialect.wire.frames({ calls: [{ ...call('c1'), name: 'n'.repeat(2_000) }] })),
    outcome: endless('a call of it has an endless name'),
  },
  {
    name: 'text without an end',
    answer: (dialect) => {
      const piece = 'x'.repeat(20_000)
      return stream(dialect, said(dialect).slice(0, -1), { repeat: { piece: pieceWith(dialect, piece) } })
    },
    outcome: { ...endless('its answer has no end'), fallback: false, kept: 'x'.repeat(2_080_000) },
  },
  {
    name: 'empty pieces without an end',
    answer: (dialect) => stream(dialect, said(dialect), { repeat: { piece: padded(emptyPiece(dialect)) } }),
    outcome: { ...afterWords(BROKEN), says: 'the answer is too large' },
  },
  {
    name: 'signs of life without an end and without a pause',
    answer: (dialect) => {
      const piece = isLines(dialect)
        ? `${' '.repeat(60_000)}\n`
        : `:${' '.repeat(60_000)}\n${dialect.keepAlive}`
      return stream(dialect, [], { repeat: { piece } })
    },
    outcome: endless('the answer is too large'),
  },
  {
    name: 'a line without an end',
    answer: (dialect) =>
      stream(dialect, [isLines(dialect) ? '{"message":"' : 'data: '], {
        repeat: { piece: 'x'.repeat(60_000) },
      }),
    outcome: endless('a piece of its answer has no end'),
  },
  {
    name: 'an event of lines without an end',
    answer: (dialect) =>
      isLines(dialect)
        ? undefined
        : stream(dialect, [], { repeat: { piece: `data: ${'x'.repeat(60_000)}\r\n` } }),
    outcome: endless('a piece of its answer has no end'),
  },
  {
    name: 'a whole answer that is too large',
    answer: () => ({ repeat: { piece: ' '.repeat(1_000_000) } }),
    outcome: endless('the answer is too large'),
    streaming: false,
  },
  {
    name: 'a call without a name',
    answer: (dialect) => stream(dialect, changed(dialect, { calls: [call('c1')] }, 'read_file', '')),
    outcome: BROKEN,
  },
  {
    name: 'a round of calls that calls nothing',
    answer: (dialect) => stream(dialect, dialect.wire.frames({ calls: [], finish: 'tool_calls' })),
    // Their word for the end of such a round is that for a good end, and so is an empty answer.
    outcome: { code: 'stop', fallback: false, kept: '' },
    except: {
      anthropic: { code: 'other', fallback: true, kept: '' },
      chat: { code: 'other', fallback: true, kept: '' },
    },
  },
  {
    name: 'an answer of nothing',
    answer: (dialect) => stream(dialect, dialect.wire.frames({})),
    outcome: { code: 'stop', fallback: false, kept: '' },
  },
  {
    name: 'a refusal',
    answer: (dialect) =>
      isLines(dialect) ? undefined : stream(dialect, dialect.wire.frames({ finish: 'refused' })),
    outcome: { code: 'refused', fallback: false, kept: '' },
  },
]

const emptyPiece = (dialect: FaultDialect) => pieceWith(dialect, 'Hm').replace('"Hm"', '""')

/** The pieces of an answer in which one word stands for another. */
const changed = ({ wire }: FaultDialect, completion: ScriptedCompletion, from: string, to: string) =>
  wire.frames(completion).map((frame) => frame.replaceAll(`"${from}"`, `"${to}"`))

const textIn = (events: readonly ModelEvent[]) =>
  events.map((event) => (event.type === 'text_delta' ? event.delta : '')).join('')

/** As the run sees it: an end with nothing in it that is no good end is a failure, too. */
function outcomeOf(events: readonly ModelEvent[], says: string | undefined): Outcome {
  const last = events.at(-1)
  const kept = textIn(events)
  const spoke = kept !== '' || events.some(({ type }) => type === 'reasoning_delta')
  if (last?.type === 'finished') {
    return { code: last.reason, fallback: last.reason === 'other' && !spoke, kept }
  }
  if (last?.type !== 'failed') throw new Error(`the call ended with ${last?.type}`)
  const { category, message } = last.failure
  const fallback = !spoke && isFallbackEligible(category)
  const heard = says !== undefined && message.includes(says) ? { says } : { says: message }
  return { code: categoryToCode(category), fallback, kept, ...(says === undefined ? {} : heard) }
}

function ask(dialect: FaultDialect, answer: ScriptedAnswer | typeof fetch, streaming = true) {
  const upstream = scriptedFetch(typeof answer === 'function' ? {} : answer)
  const send = typeof answer === 'function' ? answer : upstream.fetch
  const { context, routes } = makeContext({ credential: KEY, fetch: send })
  return { events: collectAll(dialect.provider, dialect.request(streaming), context), upstream, routes }
}

describe.each(DIALECTS)('a provider that speaks $name and does what it must not', (dialect) => {
  afterEach(() => {
    vi.useRealTimers()
  })

  it.each(FAULTS.filter(({ answer }) => answer(dialect) !== undefined))(
    '[EC 3][D24] $name',
    async ({ answer, outcome, except, streaming, afterMs }) => {
      if (afterMs !== undefined) vi.useFakeTimers()
      const { events: coming, upstream } = ask(dialect, answer(dialect) ?? {}, streaming)
      if (afterMs !== undefined) {
        await vi.advanceTimersByTimeAsync(afterMs - 1)
        expect(vi.getTimerCount()).toBeGreaterThan(0)
        await vi.advanceTimersByTimeAsync(1)
      }
      const events = await coming
      const expected = except?.[dialect.name] ?? outcome
      expect(outcomeOf(events, expected.says)).toEqual(expected)
      const ends = events.filter(({ type }) => type === 'failed' || type === 'finished')
      expect(ends).toHaveLength(1)
      // Of an answer that failed no call is made.
      if (ends[0]?.type === 'failed') expect(events.map(({ type }) => type)).not.toContain('tool_call')
      // The connection is given up, and no timer is left.
      expect(upstream.requests).toHaveLength(upstream.abortedCount())
      if (afterMs !== undefined) expect(vi.getTimerCount()).toBe(0)
    },
  )
})

describe('a stream without an end, over a socket', () => {
  it('[U26] is left by whoever reads it: the provider sees the connection close', async () => {
    const piece = dataEvent({ id: 'c', choices: [{ index: 0, delta: { content: 'x'.repeat(200_000) } }] })
    const server = await startScriptedUpstream({
      headers: { 'content-type': 'text/event-stream' },
      repeat: { piece },
    })
    const lab = { displayName: 'Lab', baseUrl: `${server.url}/v1`, local: false, auth: 'none' } as const
    const provider = new OpenAiCompatibleProvider({ id: 'openai-compat:lab', ...lab }, DEADLINES)
    const events = await collectAll(provider, makeRequest(), makeContext().context)
    await server.callerLeft
    await server.close()
    expect(outcomeOf(events, 'its answer has no end')).toMatchObject({
      code: 'provider_error',
      fallback: false,
      says: 'its answer has no end',
    })
  })
})

describe('a redirect', () => {
  it('[D16] is not followed, and takes no key along', async () => {
    for (const dialect of DIALECTS) {
      const { events, upstream } = ask(dialect, { status: 302, headers: { location: 'http://127.0.0.1:1/' } })
      await events
      expect(upstream.requests.map(({ url }) => new URL(url).host)).toEqual(['lab.internal:8080'])
      expect(upstream.inits[0]?.redirect).toBe('manual')
    }
  })
})
