/** Devices, a client, a model, crashes and a failing disk act on one session in random order. */

import type { MediatedCall } from '../../../src/core/mediate.ts'
import { openQuestion, pendingBatchId } from '../../../src/core/run/pending.ts'
import type { OperationAnswer, SessionOperation } from '../../../src/session/rpc.ts'
import { queuedHeads } from '../../../src/storage/session/prompt-queue.ts'
import { makeRequest } from '../core/builders.ts'
import { makeRandom, type Random } from '../core/random.ts'
import { clientCall, results } from '../core/run-machine.ts'
import { OperatedSession } from './operated-session.ts'

type Sent = { requestId: string; operation: SessionOperation; answer: OperationAnswer; text: string | null }

/** How often each answer was given, by operation and outcome. */
export type OperationTally = Map<string, number>

/** Throws where a rule is broken, with what happened until then. */
export async function walkOperations(seed: number, steps: number, tally: OperationTally): Promise<void> {
  const walk = new Walk(makeRandom(seed), tally)
  try {
    for (let n = 0; n < steps; n++) await walk.step()
    await walk.finish()
  } catch (error) {
    throw new Error(`seed ${seed}: ${String(error)}\n${walk.log.join('\n')}`)
  }
}

const ASKS: MediatedCall = {
  call: {
    name: 'ask_user',
    arguments: { questions: [1, 2].map((n) => ({ header: `h${n}`, text: `t${n}`, options: [] })) },
  },
  to: 'client',
  requiresApproval: 'allow',
  recordsDiff: false,
  questions: 2,
}

class Walk {
  readonly log: string[] = []
  readonly #random: Random
  readonly #tally: OperationTally
  readonly #session = new OperatedSession()
  readonly #sent: Sent[] = []
  /** Texts of prompts that were taken into the queue, in that order. */
  readonly #queued: string[] = []
  #texts = 0

  constructor(random: Random, tally: OperationTally) {
    this.#random = random
    this.#tally = tally
    this.#session.published = {
      policy: makeRequest().policy,
      localPreferences: makeRequest().local_preferences,
    }
  }

  async step(): Promise<void> {
    const act = this.#random.pick([
      () => this.#device(),
      () => this.#device(),
      () => this.#device(),
      () => this.#again(),
      () => this.#model(),
      () => this.#model(),
      () => this.#client(),
      () => this.#crash(),
    ])
    await act()
    if (this.#random.chance(0.8)) await this.#session.settled()
    this.#check()
  }

  /** Everybody does what is waited for: in the end nothing goes on, and everything that was taken has run. */
  async finish(): Promise<void> {
    const session = this.#session
    for (let n = 0; n < 10 * (this.#queued.length + 3); n++) {
      await session.settled()
      const { state } = session
      if (state?.active) session.answer('done')
      else if (state && (state.phase.k !== 'Idle' || state.unsettled))
        session.continueRun({ type: 'break', data: { run_id: state.runId } })
    }
    await session.settled()
    this.#check()
    if (session.state?.active || queuedHeads(session.sql, 1).length > 0)
      throw new Error('something is left over')
    const said = session.said()
    for (const text of this.#queued)
      if (!said.includes(`user: ${text}`)) throw new Error(`${text} was queued and never ran`)
  }

  async #device(): Promise<void> {
    const requestId = `request-${this.#sent.length}`
    const text = `p${++this.#texts}`
    const { state } = this.#session
    const question = state && openQuestion(state.phase)?.question.id
    const batch = state && pendingBatchId(state.phase)
    const operation = this.#random.pick<SessionOperation>([
      { type: 'submit_prompt', prompt: text },
      { type: 'queue', prompt: text },
      { type: 'steer', prompt: text },
      { type: 'cancel_turn', turn_id: this.#random.chance(0.5) ? this.#session.turnId : 'turn:other' },
      {
        type: 'answer_question',
        question_id: question ?? 'other',
        answer: this.#random.chance(0.8)
          ? { type: 'custom', text: 'yes' }
          : { type: 'selected', options: ['none'] },
      },
      {
        type: 'resolve_approval',
        batch_id: batch ?? 'other',
        choice: this.#random.pick(['approve', 'approve', 'deny']),
      },
      ...(this.#random.chance(0.2)
        ? ([{ type: 'cancel_question', question_id: question ?? 'other' }] as const)
        : []),
      { type: 'set_session_settings', model: 'auto', reasoning_effort: 'default' },
      { type: 'execute_command', command: '/status' },
    ])
    const prompt = 'prompt' in operation ? text : null
    const breaks = this.#random.chance(0.1)
    this.#session.breaksNext = breaks
    // A second one of the same at the same time is the same.
    const [answer, twin] = await Promise.all(
      breaks || this.#random.chance(0.7)
        ? [this.#session.ask(operation, { requestId })]
        : [this.#session.ask(operation, { requestId }), this.#session.ask(operation, { requestId })],
    )
    this.#session.breaksNext = false
    if (answer === undefined) throw new Error('no answer')
    const came = answer.result.type === 'error' ? answer.result.code : 'applied'
    this.#note(`${operation.type} ${came}`, prompt ?? '')
    if (twin !== undefined && JSON.stringify(twin) !== JSON.stringify(answer)) throw new Error('two answers')
    if (came === 'internal') return
    this.#sent.push({ requestId, operation, answer, text: prompt })
    if (operation.type === 'queue' && came === 'applied') this.#queued.push(text)
  }

  /** The same request as before gets the same answer. */
  async #again(): Promise<void> {
    if (this.#sent.length === 0) return
    const { requestId, operation, answer } = this.#random.pick(this.#sent)
    const told = await this.#session.ask(operation, { requestId })
    this.#note('sent again', requestId)
    if (JSON.stringify(told) !== JSON.stringify(answer)) throw new Error(`${requestId} is answered otherwise`)
  }

  #model(): void {
    const session = this.#session
    if (!session.state?.active) return
    const calls = this.#random.pick([
      [],
      [],
      [ASKS],
      [clientCall('shell', 'ask')],
      [clientCall('read_file'), clientCall('shell', 'ask'), ASKS],
    ])
    session.answer(`a${++this.#texts}`, calls)
    this.#note('model', String(calls.length))
  }

  #client(): void {
    const session = this.#session
    const { state } = session
    if (state === null || (!state.active && state.phase.k === 'Idle')) {
      session.execute(
        makeRequest({ text: `p${++this.#texts}` }),
        this.#random.pick([{}, { keyed: ['openai'] }]),
      )
      this.#note('client execute', '')
    } else if (!state.active && state.phase.k === 'AwaitingTool') {
      session.continueRun(results(state.phase.calls.map(({ callId }) => callId)))
      this.#note('client results', '')
    }
  }

  #crash(): void {
    this.#session.crash()
    this.#note('crash', '')
  }

  #note(what: string, of: string): void {
    this.log.push(`${what} ${of}`)
    this.#tally.set(what, (this.#tally.get(what) ?? 0) + 1)
  }

  #check(): void {
    const said = this.#session.said()
    const waiting = queuedHeads(this.#session.sql, 1_000).map(({ head }) => head)
    for (const { operation, answer, text } of this.#sent) {
      if (text === null) continue
      const times = said.filter((line) => line === `user: ${text}`).length
      const waits = waiting.filter((line) => line === text).length
      const expected = answer.receipt === 'applied' ? 1 : 0
      if (times + waits !== expected)
        throw new Error(`${operation.type} ${text}: said ${times}, waits ${waits}`)
    }
    const ran = this.#queued.filter((text) => said.includes(`user: ${text}`))
    const order = [...ran, ...waiting]
    if (order.join() !== this.#queued.join()) throw new Error(`the queue ran in another order: ${order}`)
    const batches = this.#sent.flatMap(({ operation, answer }) =>
      operation.type === 'resolve_approval' && answer.receipt === 'applied' ? [operation.batch_id] : [],
    )
    if (new Set(batches).size !== batches.length) throw new Error('a batch was resolved twice')
  }
}
