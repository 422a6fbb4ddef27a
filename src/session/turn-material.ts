import { type MemoryFact, withChanges } from '../core/memory.ts'
import { type ClearInput, messageRefs, openMessage, parseFact } from '../core/run/contents.ts'
import type { RunState } from '../core/run/state.ts'
import { toPastCall } from '../core/transcript.ts'
import type { RunInput, TurnView } from '../core/turn-view.ts'
import { callsRef, factRef, inputRef } from '../protocol/execution/content-refs.ts'
import type { ContentRef } from '../protocol/execution/ids.ts'
import type { SealedMap } from '../protocol/execution/sealed.ts'
import type { Checkpoint } from '../storage/session/checkpoint.ts'
import { loadFacts, loadOwed, loadSealedFacts } from '../storage/session/memories.ts'
import { loadClearInput, loadRunInput, openRunInput } from '../storage/session/run-input.ts'
import { loadSealed, sealedAmong } from '../storage/session/sealed-contents.ts'
import type { Sql } from '../storage/session/sql.ts'
import type { LiveTurn } from './live-turn.ts'
import { type History, TranscriptWindow } from './transcript-window.ts'
import type { Vault } from './vault.ts'

export type TurnMaterialDeps = {
  sql: Sql
  /** Of a sealed session: what it is. */
  sealed: { sessionId: string } | null
  /** The texts of a sealed session that are in memory. */
  vault: Vault
  checkpoint(): Checkpoint
}

/** What a turn is decided from: the input of its run, the transcript, what is remembered (EC 10, EC 16). */
export class TurnMaterial {
  readonly #deps: TurnMaterialDeps
  readonly #transcript: TranscriptWindow
  #runInput: RunInput | null = null

  constructor(deps: TurnMaterialDeps) {
    this.#deps = deps
    this.#transcript = new TranscriptWindow(deps.sql, { sealed: deps.sealed !== null })
  }

  /** A step was stored: `messagesFrom` is the first message that changed, `input` what it brought. */
  changed(messagesFrom: number | null, input: RunInput | null | 'other'): void {
    this.#transcript.changed(messagesFrom)
    if (this.#deps.sealed !== null || input === 'other') this.#runInput = null
    else if (input !== null) this.#runInput = input
  }

  /** What stays clear of what the current run was started with; null before the first. */
  get startedWith(): ClearInput | null {
    if (this.#deps.checkpoint().state === null) return null
    return this.#deps.sealed === null ? this.#input() : loadClearInput(this.#deps.sql)
  }

  #input(): RunInput {
    const { sql, sealed } = this.#deps
    // What is open is not kept longer than its text: the vault alone says what is in memory.
    if (sealed !== null)
      return openRunInput(sql, this.#deps.vault.texts.get(inputRef(sealed.sessionId)) ?? null)
    this.#runInput ??= loadRunInput(sql)
    return this.#runInput
  }

  /** Everything that is remembered for a request: what D1 told of the user, and what this object knows (EC 16). */
  memories(facts: readonly MemoryFact[]): MemoryFact[] {
    return [...this.withOwed(facts), ...this.#sessionFacts()]
  }

  /** The same for the turn that is served. */
  memoriesOf(live: LiveTurn): MemoryFact[] {
    return [...live.facts, ...this.#sessionFacts()]
  }

  #sessionFacts(): MemoryFact[] {
    return this.#deps.sealed === null ? loadFacts(this.#deps.sql) : this.sealedFacts()
  }

  /** The facts of a sealed session that are open. */
  sealedFacts(): (MemoryFact & { key: string })[] {
    const facts = loadSealedFacts(this.#deps.sql)
    const replaced = new Set(facts.map(({ replaces }) => replaces))
    return facts.flatMap(({ id, localOnly, updatedAtMs }) => {
      const text = replaced.has(id) ? undefined : this.#deps.vault.texts.get(factRef(id))
      return text === undefined
        ? []
        : [
            {
              scope: 'session' as const,
              id,
              ...parseFact(text),
              ...(localOnly ? { localOnly: true as const } : {}),
              updatedAtMs,
            },
          ]
    })
  }

  /** What of a sealed session has to be opened before the turn can be decided; null when everything is in memory. */
  closed(): SealedMap | null {
    const { sealed, sql } = this.#deps
    if (sealed === null) return null
    const { transcript, pastAnswers } = this.#transcriptOf(this.#state().runId)
    const needed = [
      inputRef(sealed.sessionId),
      ...transcript.flatMap(messageRefs),
      ...pastAnswers.map(({ id }) => callsRef(id)),
      ...loadSealedFacts(sql).map(({ id }) => factRef(id)),
    ]
    const isOpen = [...sealedAmong(sql, needed)].every((ref) => this.#deps.vault.texts.has(ref))
    this.#deps.vault.keepOnly(new Set([...needed, ...(this.#state().unsealed?.refs ?? [])]))
    // All of it or nothing: of what is open already the object may be evicted before the rest comes.
    return isOpen ? null : loadSealed(sql, needed)
  }

  /** The user's facts with those changes of this session that D1 had not got when it told them. */
  withOwed(facts: readonly MemoryFact[]): MemoryFact[] {
    const owed = this.#deps.checkpoint().outbox.memory ? loadOwed(this.#deps.sql) : []
    return withChanges(
      facts,
      owed.map(({ change }) => change),
    )
  }

  /** Everything that the turn is decided from. */
  view(live: LiveTurn): TurnView {
    const state = this.#state()
    return {
      runInput: this.#input(),
      runId: state.runId,
      firstTurn: state.turn === 1,
      planning: state.planning,
      planApproved: state.planApproved,
      remoteDeclined: state.remoteDeclined,
      driver: state.driver,
      ...(state.localDeclined ? { localDeclined: true } : {}),
      ...this.history(state.runId),
      memories: this.memoriesOf(live),
    }
  }

  /** What of the transcript takes part in a turn of this run; null: of one that begins. */
  history(runId: string | null): History {
    const history = this.#transcriptOf(runId)
    if (this.#deps.sealed === null) return history
    const textOf = (ref: ContentRef) => this.#deps.vault.texts.get(ref)
    return {
      ...history,
      transcript: history.transcript.map((said) => openMessage(said, textOf)),
      pastCalls: history.pastAnswers.flatMap((said) => openMessage(said, textOf).calls.map(toPastCall)),
    }
  }

  /** As it is stored. */
  #transcriptOf(runId: string | null): History {
    return this.#transcript.read(this.#deps.checkpoint().counters.message, runId)
  }

  #state(): RunState {
    const { state } = this.#deps.checkpoint()
    if (state === null) throw new Error('invariant broken: a turn without a run')
    return state
  }
}
