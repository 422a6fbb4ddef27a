import type { z } from 'zod'
import type { ContinueRequest, ToolResult } from '../../../src/protocol/execution/continue.ts'
import type { ExecuteRequest } from '../../../src/protocol/execution/execute.ts'
import { RunResponse, type ToolRequest, type TurnResponse } from '../../../src/protocol/execution/turn.ts'
import type { CrashPoints } from './crash-points.ts'
import type { CrashSealing } from './crash-sealing.ts'
import { until } from './hold.ts'
import { type Client, type Headers, parsed, type Refused, refused, turnOf } from './router.ts'
import { endOf, STREAM, TurnStream } from './turn-stream.ts'

export type Execute = z.input<typeof ExecuteRequest>
export type Continuation = z.input<typeof ContinueRequest>

/** How a client talks: with a key on each request or without any, streamed or buffered. */
export type Manner = { keyed: boolean; stream: boolean }

/** What a request came to. `overtaken`: another request has taken the run over, or its sender has moved on. */
export type Outcome = TurnResponse | 'overtaken'

type Answer =
  | { k: 'turn'; turn: TurnResponse }
  | { k: 'overtaken' }
  | { k: 'refused'; refused: Refused }
  /** The connection broke, or the router died. */
  | { k: 'lost' }

export type Sent = { route: 'execute' | 'continue'; body: Execute | Continuation; headers?: Headers }

/** A request that is lost more often than routers die is never answered. */
const SENDS_BESIDE_DEATHS = 1
/** Real time, while the clock of the play stands still; far more than any answer takes. */
const PATIENCE_MS = 8_000
/** How often a turn that is being served is looked at before the client gives up. */
const LOOKS = 500

/**
 * A client that means to carry its run to the end, whatever breaks. Whose answer is lost sends the same request again:
 * under the same key, or, without keys, after it has asked where the run stands.
 */
export class CrashClient {
  readonly #client: Client
  readonly #points: CrashPoints
  readonly #manner: Manner
  readonly sessionId: string
  /** Of a sealed session. */
  readonly sealing: CrashSealing | null
  #requests = 0
  /** By what the last outcome that this client has seen is known: a run that still shows it has not moved since. */
  #lastMark: string | null = null
  readonly #results = new Map<string, ToolResult>()
  /** How often each call was run, by its id. */
  readonly ran = new Map<string, number>()
  /** Runs when an answer was lost, before anything is sent again. */
  onLost: () => Promise<void> = async () => {}

  constructor(
    client: Client,
    points: CrashPoints,
    { id, sealing }: { id: string; sealing: CrashSealing | null },
    manner: Manner,
  ) {
    this.#client = client
    this.#points = points
    this.sessionId = id
    this.sealing = sealing
    this.#manner = manner
  }

  /**
   * Sends a message until it is answered. `isMoot`: its sender does not wait for the answer any more, so nothing is
   * sent again.
   */
  async request(sent: Sent, isMoot: () => boolean = () => false): Promise<Outcome> {
    const key = `request-${++this.#requests}`
    const deaths = this.#points.deaths.length
    for (let sends = 1; ; sends++) {
      const died = this.#points.deaths.length - deaths
      if (sends > SENDS_BESIDE_DEATHS + died) throw new Error(`sent ${sends} times under ${died} deaths`)
      const answer = await this.#send(sent, key)
      if (answer.k === 'overtaken') return 'overtaken'
      if (answer.k === 'turn') {
        this.#lastMark = markOf(answer.turn) ?? this.#lastMark
        return answer.turn
      }
      if (answer.k === 'refused') {
        if (isMoot() && answer.refused.code === 'run_in_flight') return 'overtaken'
        throw new Error(`refused: ${JSON.stringify(answer.refused)}, sent ${JSON.stringify(sent.body)}`)
      }
      await this.onLost()
      if (isMoot()) return 'overtaken'
      if (this.#manner.keyed) continue
      const seen = await this.#lookUp(sent)
      if (seen !== null) return seen
    }
  }

  /** Runs each call once, and knows its result from then on. */
  results(calls: readonly ToolRequest[], reject: boolean): ToolResult[] {
    return calls.map((call) => {
      const known = this.#results.get(call.call_id)
      if (known) return known
      const asked = call.requires_approval === 'ask'
      const rejected = asked && reject
      if (!rejected) this.ran.set(call.call_id, (this.ran.get(call.call_id) ?? 0) + 1)
      const result: ToolResult = {
        call_id: call.call_id,
        content: rejected ? 'The user said no.' : `result of ${call.name} ${JSON.stringify(call.arguments)}`,
        is_error: rejected,
        ...(asked ? { decision: rejected ? 'rejected' : 'approved' } : {}),
      }
      this.#results.set(call.call_id, result)
      return result
    })
  }

  async #send({ route, body, headers = {} }: Sent, key: string): Promise<Answer> {
    const { keyed, stream } = this.#manner
    const all = { ...headers, ...(keyed ? { 'Idempotency-Key': key } : {}), ...(stream ? STREAM : {}) }
    return this.#unlessLost(async () => {
      const path = `/api/v1/sessions/${this.sessionId}/${route}`
      const before = this.#points.deaths.length
      const response = await this.#client.send('POST', path, body, all)
      return this.#read(response, () => this.#points.deaths.length > before)
    })
  }

  /** What comes of it, or `lost` when the router died meanwhile and nothing did. */
  async #unlessLost(work: () => Promise<Answer>): Promise<Answer> {
    const before = this.#points.deaths.length
    let answer: Answer | null = null
    let failure: unknown = null
    work().then(
      (value) => {
        answer = value
      },
      (error: unknown) => {
        failure = error ?? new Error('nothing')
      },
    )
    const isDead = () => this.#points.deaths.length > before
    const started = performance.now()
    await until(() => {
      if (performance.now() - started > PATIENCE_MS) throw new Error('[U06] a request is never answered')
      return answer !== null || failure !== null || isDead()
    })
    if (answer === null && failure === null) await this.#grace(() => answer !== null || failure !== null)
    if (answer !== null) return answer
    if (isDead()) return { k: 'lost' }
    throw failure
  }

  /** A request that a death has cut off may hang for good, or have been answered just before. */
  async #grace(isSettled: () => boolean): Promise<void> {
    for (let look = 0; look < 20 && !isSettled(); look++) await scheduler.wait(1)
  }

  async #read(response: Response, isDead: () => boolean): Promise<Answer> {
    if (await this.#points.outside('the answer')) {
      await response.body?.cancel().catch(() => {})
      return { k: 'lost' }
    }
    if (response.status >= 500 && isDead()) {
      const text = await response.text()
      if (text.includes('internal_error')) return { k: 'lost' }
      throw new Error(`${response.status}: ${text}`)
    }
    if (!response.ok) {
      const no = await refused(response)
      return no.code === 'run_in_flight' && no.message.includes('superseded')
        ? { k: 'overtaken' }
        : { k: 'refused', refused: no }
    }
    if (response.headers.get('Content-Type') !== 'text/event-stream') {
      const turn = await turnOf(response)
      return (await this.#points.outside('the whole answer')) ? { k: 'lost' } : { k: 'turn', turn }
    }
    const stream = new TurnStream(response)
    const events = []
    try {
      for (let frame = await stream.next(); frame !== null; frame = await stream.next()) {
        events.push(frame.event)
        if (await this.#points.outside(`event ${frame.event.type}`)) {
          await stream.cancel().catch(() => {})
          return { k: 'lost' }
        }
      }
    } catch (error) {
      if (isDead()) return { k: 'lost' }
      throw error
    }
    if (events.at(-1)?.type !== 'turn_end' && isDead()) return { k: 'lost' }
    const { type: _, ...turn } = endOf(events)
    return { k: 'turn', turn: turn as TurnResponse }
  }

  /** Where the run stands, for a client without keys. Null: as before, so the request has to be sent again. */
  async #lookUp(sent: Sent): Promise<Outcome | null> {
    const run = await this.shown()
    if (this.sealing?.isUnseen(run)) return null
    if (run.status === 'idle' ? !endsRun(sent) : markOf(run) === this.#lastMark) return null
    const { grants: _, ...turn } = run as TurnResponse & { grants?: unknown }
    this.#lastMark = markOf(turn) ?? this.#lastMark
    return turn
  }

  /** `GET …/run`, until no turn is served. */
  async shown(): Promise<Exclude<RunResponse, { status: 'running' }>> {
    for (let looks = 0; looks < LOOKS; looks++) {
      const before = this.#points.deaths.length
      try {
        const run = await parsed(await this.#client.run(this.sessionId), RunResponse)
        if (run.status !== 'running') return run
      } catch (error) {
        if (this.#points.deaths.length === before) throw error
      }
      await scheduler.wait(1)
    }
    throw new Error('[U06] a turn is shown as running and does not end')
  }
}

/** After these a run may be idle; after anything else an idle run is one that a death has cut off. */
function endsRun({ body }: Sent): boolean {
  if (!('type' in body)) return false
  if (body.type === 'approval_decisions')
    return body.data.decisions.some(({ decision }) => decision === 'rejected')
  return body.type === 'break' || body.type === 'sealed'
}

/**
 * Tells one outcome from another; null where nothing does. A trace id alone does not: opening one part of a history may
 * show that more has to be opened, and nothing is traced in between.
 */
function markOf({ data }: { data: object }): string | null {
  if (!('trace_id' in data && typeof data.trace_id === 'string')) return null
  const toDecrypt = 'to_decrypt' in data ? Object.keys(data.to_decrypt ?? {}).sort() : []
  return [data.trace_id, ...toDecrypt].join()
}
