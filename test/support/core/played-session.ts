/** A session in memory around the real machine and the real serving of turns: what its object does, without a platform. */

import { isKeptLocal } from '../../../src/core/privacy/kept-local.ts'
import type { ModelRequest } from '../../../src/core/prompt.ts'
import type { RunInputEvent } from '../../../src/core/run/inputs.ts'
import type { Write } from '../../../src/core/run/writes.ts'
import type { TranscriptMessage } from '../../../src/core/transcript.ts'
import type { RunInput } from '../../../src/core/turn-view.ts'
import type { ContinueRequest } from '../../../src/protocol/execution/continue.ts'
import type { ModelDescriptor } from '../../../src/protocol/execution/models.ts'
import type { TurnResponse } from '../../../src/protocol/execution/turn.ts'
import { makeAccess } from '../../../src/providers/access.ts'
import type { ModelEvent, ModelProvider } from '../../../src/providers/provider.ts'
import { ModelCatalogue } from '../../../src/session/catalogue.ts'
import { makeLiveTurn } from '../../../src/session/live-turn.ts'
import { serveTurn } from '../../../src/session/serve-turn.ts'
import { executeRequested, Machine } from './run-machine.ts'

/** What a model answers to a request. */
export type Answering = (model: ModelDescriptor, request: ModelRequest) => ModelEvent[]

export class PlayedSession {
  readonly transcript: TranscriptMessage[] = []
  readonly #machine = new Machine()
  readonly #models: readonly ModelDescriptor[]
  readonly #answering: Answering
  #runInput: RunInput | null = null
  #asked: string | null = null

  constructor(models: readonly ModelDescriptor[], answering: Answering) {
    this.#models = models
    this.#answering = answering
  }

  execute(request: RunInput): Promise<TurnResponse> {
    this.#runInput = request
    const { text, command } = request.input
    const kept = { localOnly: isKeptLocal(request) }
    return this.#take(executeRequested(text, command ?? null, this.#machine.newDigest(), kept))
  }

  continue(message: ContinueRequest): Promise<TurnResponse> {
    const startedWith = this.#runInput
    return this.#take({
      type: 'continuation_received',
      digest: this.#machine.newDigest(),
      message,
      partial: null,
      localOnly: message.type === 'inject' && startedWith !== null && isKeptLocal(startedWith),
    })
  }

  async #take(input: RunInputEvent): Promise<TurnResponse> {
    if (!this.#dispatch(input)) throw new Error(`refused: ${JSON.stringify(input)}`)
    const providers = new Map(this.#models.map((model) => [model.provider, this.#provider(model)]))
    const access = await makeAccess({ userId: 'u', credentials: {}, deploymentProviders: true }, new Map())
    const catalogue = new ModelCatalogue(providers)
    while (this.#asked !== null) {
      const live = makeLiveTurn('turn', this.#asked, access, [])
      this.#asked = null
      await serveTurn(live, {
        providers,
        state: () => this.#state(),
        view: () => this.#view(),
        closed: () => null,
        memories: () => [],
        catalogue: () => catalogue.view(access, 0),
        list: (provider, names, signal, localOnly) =>
          catalogue.list(provider, names, access, signal, localOnly),
        dispatch: (one) => this.#dispatch(one),
        callBegins: () => {},
        clock: () => ({ responseMs: 0 }),
        textArrived: () => {},
        routed: () => {},
      })
    }
    const outcome = [...this.#machine.store.turns.values()].at(-1)?.outcome
    if (!outcome) throw new Error('the turn came to no end')
    return outcome
  }

  #state() {
    const { state } = this.#machine
    if (state === null) throw new Error('the run has no state')
    return state
  }

  #view() {
    if (this.#runInput === null) throw new Error('no run has begun')
    const { runId, turn, planning, planApproved, remoteDeclined, localDeclined } = this.#state()
    return {
      runInput: this.#runInput,
      runId,
      firstTurn: turn === 1,
      planning,
      planApproved,
      remoteDeclined,
      ...(localDeclined ? { localDeclined } : {}),
      transcript: structuredClone(this.transcript),
      olderMessages: 0,
      memories: [],
    }
  }

  #dispatch(input: RunInputEvent): boolean {
    const result = this.#machine.send(input)
    if (!('state' in result)) return false
    for (const write of result.writes) this.#apply(write)
    for (const effect of result.effects) if (effect.e === 'serve_turn') this.#asked = effect.lease
    return true
  }

  /** What of the stored rows a later prompt is made from. */
  #apply(write: Write): void {
    switch (write.w) {
      case 'user_message': {
        const { runId, text, localOnly } = write
        this.#say({
          role: 'user',
          runId,
          text,
          interrupted: false,
          calls: [],
          ...(localOnly ? { localOnly } : {}),
        })
        return
      }
      case 'assistant_message': {
        const { w: _, id: __, calls, ...message } = write
        this.#say({
          role: 'assistant',
          ...message,
          calls: calls.map(({ recordsDiff, answer, ...call }) => ({
            ...call,
            isError: answer?.isError ?? false,
            changesFiles: recordsDiff,
            ...(answer === undefined ? {} : { result: answer.result }),
          })),
        })
        return
      }
      case 'settle_call':
        for (const { calls } of this.transcript) {
          const call = calls.find(({ id }) => id === write.callId)
          if (call) Object.assign(call, { result: write.content, isError: write.isError })
        }
        return
      case 'keep_local':
        for (const message of this.transcript) if (message.runId === write.runId) message.localOnly = true
    }
  }

  #say(message: Omit<TranscriptMessage, 'seq'>): void {
    this.transcript.push({ seq: this.transcript.length + 1, ...message })
  }

  #provider(model: ModelDescriptor): ModelProvider {
    const answering = this.#answering
    return {
      descriptor: { id: model.provider, display_name: model.provider, local: model.local },
      listModels: () => Promise.resolve({ ok: true, value: [model] }),
      async *invoke(request, { egress }) {
        // As every adapter does: the way out is asked for before anything is sent, and refuses what may not leave.
        egress({ baseUrl: 'http://model.test', local: model.local, model: model.model })
        yield* answering(model, request)
      },
    }
  }
}
