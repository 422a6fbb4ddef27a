import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { ContinueRequest } from '../../src/protocol/execution/continue.ts'
import type { TurnResponse } from '../../src/protocol/execution/turn.ts'
import { makeExecute } from '../support/workers/bodies.ts'
import { Hold } from '../support/workers/hold.ts'
import { type Client, makeClient, turnOf } from '../support/workers/router.ts'
import { type Reply, scriptModels } from '../support/workers/scripted-models.ts'
import {
  decryptedFor,
  newSealedSession,
  resultsFor,
  type SealedSession,
  sealAll,
  sealedFor,
  toEncrypt,
} from '../support/workers/sealed-client.ts'
import { crash } from '../support/workers/session-object.ts'
import { storedTexts } from '../support/workers/stored-texts.ts'

/** Nobody says this word by accident; another one in each test, since they share a database. */
let word = ''
const models = scriptModels()

/** Every place that a text can come from. */
const MARKS = [
  'prompt',
  'file',
  'instruction',
  'skill',
  'diff',
  'spoken',
  'argument',
  'result',
  'secretkey',
  'fact',
  'answer',
  'injected',
  'plan',
  'reason',
  'partial',
  'toolname',
] as const
const mark = (name: (typeof MARKS)[number]): string => `${word}-${name}`

const BODY = () =>
  makeExecute(mark('prompt'), {
    workspace: { git_diff: `diff --git a/x b/x\n+${mark('diff')}` },
    attachments: {
      files: [{ path: 'src/a.ts', content: mark('file'), content_hash: 'sha256:x', required: true }],
      instructions: [{ source: 'AGENTS.md', content: mark('instruction') }],
      available_skills: [{ name: 'cook', content: mark('skill') }],
    },
  })

const read = (path: string) => ({ id: 'p', name: 'read_file', arguments: { path } })

/** A client that goes on until the run is over: `session` null is one without encryption. */
class Player {
  readonly #client: Client
  readonly #id: string
  readonly #session: SealedSession | null
  /** After each answer of the router. */
  readonly after: () => Promise<void>

  constructor(client: Client, id: string, session: SealedSession | null, after: () => Promise<void>) {
    this.#client = client
    this.#id = id
    this.#session = session
    this.after = after
  }

  async execute(body: ReturnType<typeof BODY>): Promise<TurnResponse> {
    return this.#goOn(await this.#client.execute(this.#id, body))
  }

  async proceed(message: ContinueRequest): Promise<TurnResponse> {
    return this.#goOn(await this.#client.proceed(this.#id, message))
  }

  /** Opens and seals what is asked for; stops where somebody has to decide something. */
  async #goOn(response: Response): Promise<TurnResponse> {
    const turn = await turnOf(response)
    await this.after()
    const session = this.#session
    if (session === null) return turn
    if (turn.status === 'awaiting_decrypt') return this.proceed(decryptedFor(session, turn))
    if (turn.status === 'completed' || turn.status === 'awaiting_encrypt') {
      await this.proceed(sealedFor(session, turn))
      return turn
    }
    return turn
  }

  results(turn: TurnResponse): ContinueRequest {
    if (this.#session) return resultsFor(this.#session, turn, mark('result'))
    if (turn.status !== 'awaiting_tool') throw new Error(`no tools: ${turn.status}`)
    const results = turn.data.tool_requests.map(({ call_id: id }) => ({
      call_id: id,
      content: mark('result'),
      is_error: false,
    }))
    return { type: 'tool_results', data: { results } }
  }

  decision(turn: TurnResponse): ContinueRequest {
    if (turn.status !== 'awaiting_approval') throw new Error(`no approval: ${turn.status}`)
    const entry = {
      approval_id: turn.data.approval.approval_id,
      decision: 'approved' as const,
      reason: mark('reason'),
    }
    const encrypted = this.#session === null ? {} : { encrypted: sealAll(this.#session, toEncrypt(turn)) }
    return { type: 'approval_decisions', data: { decisions: [entry], ...encrypted } }
  }
}

/** Three runs that say every mark: tools and a fact, an inject at a pause, a plan, and a stop in mid-answer. */
async function play(client: Client, id: string, session: SealedSession | null, after: () => Promise<void>) {
  const player = new Player(client, id, session, after)
  const hold = new Hold()
  const script: Reply[] = [
    { text: [mark('spoken')], calls: [read(mark('argument'))] },
    {
      calls: [
        {
          id: 'm',
          name: 'memory',
          arguments: { op: 'record', scope: 'session', key: mark('secretkey'), value: mark('fact') },
        },
      ],
    },
    { calls: [{ id: 'u', name: mark('toolname'), arguments: {} }] },
    { text: ['look'], calls: [read('b.ts')] },
    { text: [mark('answer')] },
    { text: [mark('plan')] },
    { text: ['built'] },
    { text: [mark('partial')], hold: hold.wait, after: ['never'] },
  ]
  models.script(...(script as [Reply, ...Reply[]]))
  const tools = await player.execute(BODY())
  await player.proceed(player.results(tools))
  await player.proceed({ type: 'inject', data: { messages: [{ text: mark('injected') }] } })
  const planning = makeExecute('make a plan', { input: { text: 'make a plan', command: 'plan' } })
  await player.proceed(player.decision(await player.execute(planning)))
  const cut = player.execute(makeExecute('say something long')).catch(() => null)
  await hold.reached()
  await player.proceed({ type: 'break' })
  hold.release()
  await cut
}

/** Where the word stands, with what is around it; none is good. */
const places = (text: string): string[] =>
  text
    .split(word)
    .slice(0, -1)
    .map((before) => before.slice(-100))

const logged: string[] = []
let tests = 0
beforeEach(() => {
  word = `zq7mark${++tests}q`
  logged.length = 0
  for (const level of ['log', 'info', 'warn', 'error'] as const)
    vi.spyOn(console, level).mockImplementation((...parts) => {
      logged.push(
        parts.map((part) => (part instanceof Error ? (part.stack ?? '') : JSON.stringify(part))).join(' '),
      )
    })
})
afterEach(() => vi.restoreAllMocks())

describe('[EC 17.4] what is said in a sealed session', () => {
  test('the scan finds each of it in a session that is not sealed, so the scan works', async () => {
    const client = await makeClient()
    const id = await client.newSession()
    const seen = new Set<string>()
    const look = async () => {
      const stored = await storedTexts(id)
      for (const name of MARKS) if (stored.includes(mark(name))) seen.add(name)
    }
    await play(client, id, null, look)
    await look()
    expect([...seen].sort()).toEqual([...MARKS].sort())
  })

  test.each([
    ['undisturbed', false],
    ['with the object dying behind each answer', true],
  ])('stands in no table, no key and no log at any time: %s [D47]', async (_how, dies) => {
    const client = await makeClient()
    const session = await newSealedSession(client, 2)
    const look = async () => {
      expect(places(await storedTexts(session.id))).toEqual([])
      if (dies) await crash(session.id)
    }
    await play(client, session.id, session, look)
    expect(places(await storedTexts(session.id))).toEqual([])
    expect(places(logged.join('\n'))).toEqual([])
    expect(models.chats.some((chat) => JSON.stringify(chat).includes(mark('result')))).toBe(true)
  })

  test('not even while a turn is being served, nor after it was cut off by a crash', async () => {
    const client = await makeClient()
    const session = await newSealedSession(client, 2)
    const hold = new Hold()
    models.script({ text: [mark('partial')], hold: hold.wait, after: ['never'] }, { text: [mark('answer')] })
    const cut = client.execute(session.id, BODY()).catch(() => null)
    await hold.reached()
    expect(places(await storedTexts(session.id))).toEqual([])
    await crash(session.id)
    hold.release()
    await cut
    expect(places(await storedTexts(session.id))).toEqual([])
    const again = await turnOf(await client.execute(session.id, BODY()))
    expect(again.status).toBe('completed')
    await client.proceed(session.id, sealedFor(session, again))
    expect(places(await storedTexts(session.id))).toEqual([])
    expect(places(logged.join('\n'))).toEqual([])
  })
})
