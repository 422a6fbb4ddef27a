import type { RunInputEvent } from '../core/run/inputs.ts'
import type { RunState } from '../core/run/state.ts'
import type { Effect, Step } from '../core/run/step.ts'
import { errorName } from '../protocol/error-name.ts'
import { failure } from '../protocol/execution/errors.ts'
import type { ProviderMap } from '../providers/provider.ts'
import type { ModelCatalogue } from './catalogue.ts'
import type { RequestContext } from './engine.ts'
import type { Feed } from './feed.ts'
import { forgetRequest, type LiveTurn, makeLiveTurn } from './live-turn.ts'
import { lockedSentence } from './remote/locked.ts'
import { serveTurn } from './serve-turn.ts'
import type { Thoughts } from './text-gatherer.ts'
import { answerClock, endThinking, NO_THINKING, thinkMore, thoughtsOf } from './thinking.ts'
import type { TurnMaterial } from './turn-material.ts'

export type TurnServerDeps = {
  providers: ProviderMap
  catalogue: ModelCatalogue
  material: TurnMaterial
  feed: Pick<Feed, 'text' | 'thought'>
  /** Of a sealed session: which key its envelopes are made with. */
  sealed: { keyId: string } | null
  state(): RunState | null
  /** Runs the machine; false: the input was not taken. */
  dispatch(input: RunInputEvent): boolean
  /** Resolves when what a turn came to may be told: it is durable, and its copy was given a moment (U03, D23). */
  settled(): Promise<void>
  keepAlive(work: Promise<unknown>): void
}

/**
 * Serves the turn that the run machine wants served. What is here is in memory only: a turn goes with its object, and is
 * found cut off by the next one (D21).
 */
export class TurnServer {
  readonly #deps: TurnServerDeps
  #live: LiveTurn | null = null

  constructor(deps: TurnServerDeps) {
    this.#deps = deps
  }

  /** The turn that is being served, or the last one that was, while this object remembers it. */
  turn(turnId: string): LiveTurn | null {
    return this.#live?.turnId === turnId ? this.#live : null
  }

  /** Whether the turn under this lease is served here. */
  holds(lease: string): boolean {
    return this.#live?.lease === lease
  }

  /** What a message that supersedes takes over from the turn it cuts. */
  get partial(): LiveTurn['partial'] {
    return this.#active?.partial ?? null
  }

  /** What the model has said so far in the call under way, as devices are shown it; null between calls. */
  answer(nowMs: number): { text: string; thoughts: Thoughts | null } | null {
    const live = this.#active
    if (live === null || live.partial === null) return null
    const { text } = live.partial
    return {
      text: text === '' ? '' : (this.#locked ?? text),
      thoughts: thoughtsOf(live.thinking, nowMs),
    }
  }

  /** A step is stored: a turn that it begins takes the place of the one before, and what it asks for is done. */
  stepStored(
    { state: { active }, effects, writes }: Step,
    { access, facts }: Pick<RequestContext, 'access' | 'facts'>,
  ): void {
    const { material } = this.#deps
    const before = this.#live
    if (active && access && before?.turnId !== active.turnId) {
      this.#live = makeLiveTurn(active.turnId, active.lease, access, material.withOwed(facts))
      if (before) {
        this.#cancel(before, effects)
        before.channel.retire()
      }
    } else if (before) {
      if (writes.some(({ w }) => w === 'memory')) before.facts = material.withOwed(before.facts)
      this.#cancel(before, effects)
    }
    for (const effect of effects) this.#perform(effect)
  }

  /** Cuts the turn that is being served without a trace: the session is going away. */
  abandon(): void {
    this.#live?.abort.abort()
    this.#live?.channel.end({ k: 'superseded', traceId: this.#deps.state()?.traceId ?? '' })
    this.#live = null
  }

  /** The turn that is served now. */
  get #active(): LiveTurn | null {
    const active = this.#deps.state()?.active
    return active ? this.turn(active.turnId) : null
  }

  #perform(effect: Effect): void {
    switch (effect.e) {
      case 'serve_turn': {
        const live = this.#live
        if (live?.lease === effect.lease) this.#deps.keepAlive(this.#serve(live))
        return
      }
      case 'answer': {
        const live = this.turn(effect.turnId)
        if (live) this.#deps.keepAlive(this.#tell(live, effect))
        return
      }
      case 'cancel_turn':
        // The turn that dispatched goes on by itself; a cancelled one was cut when the step was stored.
        return
    }
  }

  #cancel(live: LiveTurn, effects: readonly Effect[]): void {
    const cut = effects.some((effect) => effect.e === 'cancel_turn' && effect.turnId === live.turnId)
    if (!cut) return
    live.abort.abort()
    forgetRequest(live)
    live.channel.end({ k: 'superseded', traceId: this.#deps.state()?.traceId ?? '' })
  }

  async #serve(live: LiveTurn): Promise<void> {
    const { providers, catalogue, material, sealed, state, dispatch } = this.#deps
    try {
      await serveTurn(live, {
        providers,
        state: () => {
          const run = state()
          if (run === null) throw new Error('invariant broken: a turn without a run')
          return run
        },
        view: () => material.view(live),
        closed: () => material.closed(),
        memories: () => material.memoriesOf(live),
        catalogue: () => catalogue.view(live.access, Date.now()),
        list: (provider, models, signal, localOnly) =>
          catalogue.list(provider, models, live.access, signal, localOnly),
        dispatch,
        callBegins: () => {
          live.thinking = NO_THINKING
          live.calledAtMs = Date.now()
        },
        textArrived: (type, text) => this.#textArrived(live, type, text),
        clock: () => answerClock(live.calledAtMs, live.thinking, Date.now()),
        routed: ({ purpose, provider, model, local, chosenBy, origin }) =>
          console.info(
            `route ${purpose} ${provider}/${model} local=${local} by=${JSON.stringify(chosenBy)} to ${origin}`,
          ),
      })
    } catch (error) {
      // An error may quote what it stumbled over; of a sealed session nothing of that is logged.
      const told = sealed === null ? error : errorName(error)
      console.error(`turn ${live.turnId} failed inside the router:`, told)
      dispatch({
        type: 'turn_failed',
        lease: live.lease,
        failure: failure('internal_error', 'the router failed while serving this turn'),
        partial: live.partial,
        call: live.partial?.call ?? null,
      })
    }
  }

  async #tell(live: LiveTurn, { outcome }: Extract<Effect, { e: 'answer' }>): Promise<void> {
    await this.#deps.settled()
    forgetRequest(live)
    live.channel.end({ k: 'outcome', outcome })
  }

  #textArrived(live: LiveTurn, type: 'text_delta' | 'reasoning_delta', text: string): void {
    const { feed } = this.#deps
    const nowMs = Date.now()
    if (type === 'text_delta') {
      live.thinking = endThinking(live.thinking, nowMs)
      const locked = this.#locked
      // Of a sealed session devices see that something is said, once in each answer, and never what (D47).
      if (locked === null) feed.text(text)
      else if (live.partial?.text === text) feed.text(locked)
      else feed.thought()
    } else {
      live.thinking = thinkMore(live.thinking, text, nowMs)
      feed.thought()
    }
  }

  get #locked(): string | null {
    const { sealed } = this.#deps
    return sealed === null ? null : lockedSentence(sealed.keyId)
  }
}
