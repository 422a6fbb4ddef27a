import { activityOf } from '../../core/live-row.ts'
import type { MemoryFact } from '../../core/memory.ts'
import { deviceRunInput, firstInput, type ReusedInput } from '../../core/operations/device-run-input.ts'
import { dispositionOf, type PromptStanding, readPrompt } from '../../core/operations/prompt.ts'
import type { Refusal } from '../../core/operations/refusal.ts'
import { deviceDigest } from '../../core/operations/resume.ts'
import { AUTO_PROFILE } from '../../core/operations/session-settings.ts'
import { isKeptLocal } from '../../core/privacy/kept-local.ts'
import type { RunInputEvent } from '../../core/run/inputs.ts'
import { isOver } from '../../core/run/state.ts'
import type { RunInput } from '../../core/turn-view.ts'
import type { ContinueRequest } from '../../protocol/execution/continue.ts'
import type { Access } from '../../providers/access.ts'
import { digestOf } from '../../storage/digest.ts'
import { countQueued, enqueuePrompt } from '../../storage/session/prompt-queue.ts'
import { refuseOverfull } from '../bounds.ts'
import { refuseLongWords } from '../long-words.ts'
import type { Actor, SessionOperation } from '../rpc.ts'
import { type Decision, machineRefusal, refused, refusedForNow } from './decision.ts'
import type { OperationsDeps } from './ports.ts'
import { sessionSettings } from './settings.ts'

type Prompt = Extract<SessionOperation, { type: 'submit_prompt' | 'steer' | 'queue' }>

/** Who asks, and under which name the request is known. */
export type Request = { actor: Actor; name: string }

/** Prompts that wait for their turn, at most. */
export const MAX_QUEUED_PROMPTS = 100

const LOCKED = {
  code: 'owner_unavailable',
  message:
    'the session is encrypted: a prompt has to be encrypted by the computer that has its key, and none is connected',
} as const

const NO_POLICY = {
  code: 'invalid_request',
  message:
    'the session has no policy yet: start a run in it from a computer, or set a default policy with `switchyard config publish`',
} as const

/**
 * Prompts of devices (RF 16). What only has to be looked at is decided at once; a run that begins needs what D1 and the
 * deployment say first, and is looked at again after that.
 */
export class Prompts {
  readonly #deps: OperationsDeps

  constructor(deps: OperationsDeps) {
    this.#deps = deps
  }

  /** Decides, or says what has to be waited for before it can be decided. */
  async prepare({ actor, name }: Request, operation: Prompt): Promise<() => Decision> {
    const first = this.#look(actor, operation)
    if (!('text' in first) || first.disposition !== 'started')
      return () => this.#decide({ actor, name }, operation)
    const digest = deviceDigest(name, actor.deploymentProviders)
    const start = await this.prepareRun(
      actor,
      { text: first.text, localOnly: false },
      digest,
      this.#deps.facts,
    )
    return () => this.#decide({ actor, name }, operation, start)
  }

  #decide(request: Request, operation: Prompt, start: PreparedRun | null = null): Decision {
    const { engine, sql } = this.#deps
    const seen = this.#look(request.actor, operation)
    if (!('text' in seen)) return seen
    const { text, disposition } = seen
    const result = { type: 'prompt_accepted', disposition } as const
    switch (disposition) {
      case 'queued': {
        if (countQueued(sql) >= MAX_QUEUED_PROMPTS)
          return refusedForNow({ code: 'rate_limited', message: 'too many prompts wait in this session' })
        const { startedWith, state } = engine
        // Another run may begin before it does, and send what is said in it elsewhere.
        const localOnly = (startedWith !== null && isKeptLocal(startedWith)) || state?.remoteDeclined === true
        const prompt = { id: this.#deps.newId(), text, localOnly, actor: request.actor }
        return {
          k: 'change',
          work: (tables) => enqueuePrompt(tables, prompt, this.#deps.nowMs()),
          cut: true,
          result,
        }
      }
      case 'steered': {
        const message: ContinueRequest = { type: 'inject', data: { messages: [{ text }] } }
        const digest = deviceDigest(request.name, request.actor.deploymentProviders)
        const grown =
          refuseOverfull(sql, engine.state, engine.counters, { digest, message }) ??
          refuseLongWords(sql, engine.state, { digest, message }, engine.isSealed)
        if (grown !== null) return refused({ code: 'invalid_request', message: grown.message })
        const turnId = engine.state?.active?.turnId
        const live = turnId === undefined ? null : engine.turns.turn(turnId)
        const { startedWith } = engine
        return {
          k: 'step',
          input: {
            type: 'continuation_received',
            digest,
            message,
            partial: engine.turns.partial,
            localOnly: startedWith !== null && isKeptLocal(startedWith),
          },
          // The turn goes on with other words: what it was served with serves them, too (D06).
          request: { access: live?.access ?? null, facts: live?.facts ?? [], runInput: null },
          result,
          refused: (why) => machineRefusal(why, 'not_running', 'nothing is going on in the session'),
        }
      }
      case 'started': {
        if (start === null || !this.#isCurrent(start))
          return refused({ code: 'busy', message: 'something else was started in the session meanwhile' })
        const refusal = this.refuseStart(start)
        if (refusal !== null || start.k === 'no_policy') return refused(refusal ?? NO_POLICY)
        return {
          k: 'step',
          ...start.step,
          result,
          refused: (why) => machineRefusal(why, 'busy', 'the session is at work'),
        }
      }
    }
  }

  /** The checks in their order (RF 16, D47). */
  #look(
    actor: Actor,
    { type, prompt }: Prompt,
  ): { text: string; disposition: 'started' | 'queued' | 'steered' } | Decision {
    const read = readPrompt(prompt)
    if (!read.ok) return refused(read.error)
    if (this.#deps.engine.isSealed) return refusedForNow(LOCKED)
    const images = this.#deps.uploads.check(actor.id, read.value)
    if (!images.ok) return refused(images.error)
    const disposition = dispositionOf(type, this.standing())
    return disposition.ok ? { text: read.value, disposition: disposition.value } : refused(disposition.error)
  }

  standing(): PromptStanding {
    const { engine, sql } = this.#deps
    const { state } = engine
    return {
      isOver: state === null || isOver(state),
      queued: countQueued(sql),
      canSteer:
        state?.active != null &&
        activityOf(state) === 'running' &&
        engine.turns.turn(state.active.turnId) !== null,
    }
  }

  /** What a run of a device needs, waited for (D07, D09). */
  async prepareRun(
    actor: Pick<Actor, 'deploymentProviders'>,
    prompt: { text: string; localOnly: boolean },
    digest: string,
    facts: () => Promise<MemoryFact[]>,
  ): Promise<PreparedRun> {
    const { engine } = this.#deps
    const runId = engine.state?.runId ?? null
    const last = engine.startedWith
    const profile = this.#profile()
    const reused = last ?? (await this.#firstInput())
    if (reused === null) return { k: 'no_policy', runId }
    const { text } = prompt
    const body = deviceRunInput(reused, prompt, profile)
    const [access, remembered, policy] = await Promise.all([
      this.#deps.access(actor),
      facts(),
      digestOf(JSON.stringify(body.policy)),
    ])
    const input = {
      type: 'execute_requested',
      digest,
      text,
      command: null,
      driver: { kind: 'none' },
      policyDigest: `sha256:${policy}`,
      localOnly: isKeptLocal(body),
    } as const
    return {
      k: 'ready',
      runId,
      digest,
      step: { input, request: { access, facts: remembered, runInput: body } },
    }
  }

  /** Why this run cannot begin in this session; null when it can. */
  refuseStart(start: PreparedRun): Refusal | null {
    if (start.k === 'no_policy') return NO_POLICY
    const { engine, sql } = this.#deps
    const grown = refuseOverfull(sql, engine.state, engine.counters, { digest: start.digest, message: null })
    return grown && { code: 'invalid_request', message: grown.message }
  }

  /** Nothing was started since it was prepared. */
  #isCurrent({ runId }: PreparedRun): boolean {
    return (this.#deps.engine.state?.runId ?? null) === runId
  }

  async #firstInput(): Promise<ReusedInput | null> {
    const published = await this.#deps.defaultPolicy()
    return published && firstInput(published)
  }

  #profile(): string {
    const { engine, session, sql } = this.#deps
    const { state, startedWith } = engine
    const settings = sessionSettings(sql, { state, startedWith, chosen: session().settings })
    return settings?.selected_model ?? AUTO_PROFILE
  }
}

/** `runId`: the run that it follows. */
export type PreparedRun =
  | { k: 'no_policy'; runId: string | null }
  | {
      k: 'ready'
      runId: string | null
      digest: string
      step: {
        input: RunInputEvent
        request: {
          access: Access
          facts: MemoryFact[]
          runInput: RunInput
        }
      }
    }
