import { byteLength, type Fields, isFields } from '../shapes.ts'
import {
  fieldsOf,
  type Item,
  itemsOf,
  listOfFields,
  shown,
  shownBounded,
  type ToolState,
  tailOf,
} from './items.ts'

/** The gateway did something to a subscription that the contract does not allow. */
export class Breach extends Error {}

/** The answer that is being given, as far as it is known: its end, and how long the whole is. */
type LiveText = { tail: string; bytes: number; whole: string | null }

/** What is known of the turn that is active. */
type Turn = { id: string; live: LiveText; startedAt: unknown; workMs: number }

const LIVE_BYTES = 32 * 1024

/**
 * What a client knows of one session: a snapshot, and the events behind it applied in order, after the rules of
 * "Attaching, ordering and resuming" and "Known gaps". It knows no other source, and throws a `Breach` on any frame that
 * those rules do not allow.
 */
export class SessionView {
  /** The newest sequence that is contained. */
  cursor = 0
  snapshotId = ''
  items: Item[] = []
  /** The transcript is known from its beginning. */
  fromStart = false
  turn: Turn | null = null
  pendingApproval: Fields | null = null
  pendingQuestion: Fields | null = null
  decision: Fields | null = null
  pendingPrompts: Fields[] = []
  settings: Fields | null = null
  lastTurn: Fields | null = null
  revision = ''
  /** Of the row of the newest snapshot. */
  row: Fields = {}
  closed: string | null = null
  /** The newest snapshot as it came. */
  snapshot: Fields = {}
  /** A snapshot must follow: events were lost. */
  #awaitsSnapshot = false
  /** Ids of what was settled: nothing of it opens again. */
  readonly #settled = new Set<string>()
  readonly #endedTurns = new Map<string, string>()
  readonly #startedTurns = new Set<string>()
  /** The snapshot that the newest attach was answered with is another one than that which was held. */
  replacedAtCursor = false
  /** How many snapshots replaced the state. */
  replaced = 0
  /** Every event that was applied, by its type, in order. */
  readonly seen: { sequence: number; event: Fields }[] = []

  /** Begins with the snapshot of an `attached`. */
  static from(snapshot: unknown, one: string): SessionView {
    const view = new SessionView()
    view.#replace(fieldsOf(snapshot), one)
    return view
  }

  /** After an `attached` in answer to a cursor: what was known of the past still has to be true. */
  replaceBy(snapshot: unknown, one: string): void {
    this.#awaitsSnapshot = false
    this.replacedAtCursor = fieldsOf(snapshot).snapshot_id !== this.snapshotId
    this.#replace(fieldsOf(snapshot), one)
  }

  /** Applies one event frame. `one`: what the connection calls a row (`session` or `thread`). */
  apply(frame: Fields, one = 'session'): void {
    const sequence = Number(frame.sequence)
    const event = fieldsOf(frame.event)
    const type = String(event.type)
    if (this.closed !== null) throw this.#breach(`${type} came after the session was closed`)
    if (type === 'snapshot') {
      if (sequence !== fieldsOf(event.snapshot).sequence)
        throw this.#breach('a snapshot carries another watermark')
      if (sequence < this.cursor) throw this.#breach(`a snapshot at ${sequence} is older than ${this.cursor}`)
      if (sequence > this.cursor && !this.#awaitsSnapshot && !this.#mayJump(sequence)) {
        throw this.#breach(`a snapshot jumps from ${this.cursor} to ${sequence}`)
      }
      this.#awaitsSnapshot = false
      const before = this.items
      const wasFromStart = this.fromStart
      const open = this.#openText()
      this.#replace(fieldsOf(event.snapshot), one)
      if (wasFromStart && this.fromStart) this.#mustContain(before, open)
      return
    }
    if (type === 'resync_required') {
      this.#awaitsSnapshot = true
      return
    }
    if (type.endsWith('_closed')) {
      this.closed = String(event.reason)
      return
    }
    if (this.#awaitsSnapshot) throw this.#breach(`${type} came where a snapshot was announced`)
    if (sequence !== this.cursor + 1) throw this.#breach(`${type} has ${sequence} after ${this.cursor}`)
    this.cursor = sequence
    this.seen.push({ sequence, event })
    this.#event(type, event)
  }

  /** Numbers that were reserved and lost with an object leave a hole, which a snapshot bridges (D33). */
  #mayJump(sequence: number): boolean {
    return this.allowHoles && sequence > this.cursor
  }

  /** Whether an object may die while it streams, so that numbers may be lost. */
  allowHoles = false

  #event(type: string, event: Fields): void {
    switch (type) {
      case 'turn_started':
        this.#turnStarted(event)
        return
      case 'text_delta':
        this.#textDelta(event)
        return
      case 'tool_started': {
        const tool = fieldsOf(event.tool)
        this.#closeSegment()
        const id = String(tool.id)
        if (this.#toolIndex(id) >= 0) throw this.#breach(`the tool ${id} starts a second time`)
        this.items.push({ kind: 'tool', id, name: String(tool.name), state: 'open', content: shown('') })
        return
      }
      case 'tool_finished': {
        const id = String(event.id)
        const index = this.#toolIndex(id)
        const item = this.items[index]
        if (item?.kind !== 'tool') throw this.#breach(`the tool ${id} finishes without a start`)
        if (item.state !== 'open') throw this.#breach(`the tool ${id} finishes a second time`)
        const state: ToolState = event.success === true ? 'succeeded' : 'failed'
        if (event.pending !== true)
          this.items[index] = { ...item, state, content: shownBounded(event.content) }
        return
      }
      case 'approval_requested': {
        const approval = fieldsOf(event.approval)
        this.#opens('approval', String(approval.batch_id))
        if (this.pendingApproval !== null) throw this.#breach('an approval is requested while another waits')
        this.pendingApproval = approval
        return
      }
      case 'approval_resolved':
        if (this.pendingApproval?.batch_id !== event.batch_id)
          throw this.#breach(`the approval ${String(event.batch_id)} is resolved and does not wait`)
        this.#settles('approval', String(event.batch_id))
        this.pendingApproval = null
        return
      case 'approval_decision':
        this.#decided(fieldsOf(event.decision))
        return
      case 'question_requested': {
        const question = fieldsOf(event.question)
        this.#opens('question', String(question.question_id))
        if (this.pendingQuestion !== null) throw this.#breach('a question is asked while another waits')
        this.pendingQuestion = question
        return
      }
      case 'question_resolved':
        if (this.pendingQuestion?.question_id !== event.question_id)
          throw this.#breach(`the question ${String(event.question_id)} is resolved and does not wait`)
        this.#settles('question', String(event.question_id))
        this.pendingQuestion = null
        return
      case 'turn_finished':
      case 'turn_cancelled':
        this.#turnEnded(type, event)
        return
      default:
        // An unknown event still advances the sequence.
        return
    }
  }

  #turnStarted(event: Fields): void {
    const id = String(event.turn_id)
    if (this.turn !== null) throw this.#breach(`${id} starts while ${this.turn.id} is active`)
    if (this.#startedTurns.has(id) || this.#endedTurns.has(id))
      throw this.#breach(`${id} starts a second time`)
    this.#startedTurns.add(id)
    this.decision = null
    this.items.push({ kind: 'user', text: shownBounded(event.prompt) })
    this.turn = { id, live: emptyLive(), startedAt: undefined, workMs: 0 }
    this.#timing(event.timing)
  }

  #textDelta(event: Fields): void {
    if (this.turn === null) throw this.#breach('text comes while no turn is active')
    const text = String(event.text)
    this.turn.live = extended(this.turn.live, text)
    this.#timing(event.timing)
  }

  #turnEnded(type: string, event: Fields): void {
    if (this.turn === null) throw this.#breach(`${type} comes while no turn is active`)
    const timing = fieldsOf(event.timing)
    if (event.turn_id !== this.turn.id || timing.turn_id !== this.turn.id) {
      throw this.#breach(`${type} names ${String(event.turn_id)} while ${this.turn.id} is active`)
    }
    const outcomes = type === 'turn_cancelled' ? ['cancelled'] : ['completed', 'failed']
    if (!outcomes.includes(String(timing.outcome)))
      throw this.#breach(`${type} says ${String(timing.outcome)}`)
    if (this.pendingApproval !== null || this.pendingQuestion !== null)
      throw this.#breach(`${type} comes while something waits`)
    this.#timing(timing)
    this.#endedTurns.set(this.turn.id, String(timing.outcome))
    this.#closeSegment()
    this.lastTurn = timing
    this.turn = null
  }

  /** Totals only grow, and the beginning of a turn stands. */
  #timing(value: unknown): void {
    if (this.turn === null || !isFields(value)) return
    if (value.turn_id !== this.turn.id) throw this.#breach(`a clock of ${String(value.turn_id)} is told`)
    if (value.started_at !== undefined) {
      if (this.turn.startedAt !== undefined && this.turn.startedAt !== value.started_at)
        throw this.#breach('the turn began at another time')
      this.turn.startedAt = value.started_at
    }
    if (value.elapsed_work_ms === undefined) return
    const workMs = Number(value.elapsed_work_ms)
    if (workMs < this.turn.workMs)
      throw this.#breach(`work time went back from ${this.turn.workMs} to ${workMs}`)
    this.turn.workMs = workMs
  }

  #decided(decision: Fields): void {
    const order = ['stored', 'delivered', 'acted_on']
    const before = this.decision
    if (before?.batch_id === decision.batch_id) {
      if (order.indexOf(String(decision.state)) <= order.indexOf(String(before?.state)))
        throw this.#breach(`a decision went from ${String(before?.state)} to ${String(decision.state)}`)
      if (before?.choice !== decision.choice) throw this.#breach('a decision became another one')
    }
    this.decision = decision
  }

  #opens(what: string, id: string): void {
    if (this.#settled.has(`${what} ${id}`)) throw this.#breach(`the ${what} ${id} opens again`)
  }

  #settles(what: string, id: string): void {
    this.#settled.add(`${what} ${id}`)
  }

  /** The text of the open segment becomes an item of its own. */
  #closeSegment(): void {
    if (this.turn === null) return
    const { live } = this.turn
    this.turn.live = emptyLive()
    if (live.bytes === 0) return
    // Of an answer whose beginning was cut away in a snapshot only the size is known.
    const text = live.whole === null ? { head: UNKNOWN, bytes: live.bytes } : shown(live.whole)
    this.items.push({ kind: 'assistant', text })
  }

  #openText(): string | null {
    return this.turn?.live.whole ?? null
  }

  #toolIndex(id: string): number {
    return this.items.findLastIndex((item) => item.kind === 'tool' && item.id === id)
  }

  #replace(snapshot: Fields, one: string): void {
    this.snapshot = snapshot
    this.replaced++
    this.cursor = Number(snapshot.sequence)
    this.snapshotId = String(snapshot.snapshot_id)
    this.row = fieldsOf(snapshot[one])
    this.items = itemsOf(listOfFields(snapshot.transcript))
    this.fromStart = snapshot.history_cursor === undefined
    this.revision = String(snapshot.history_revision)
    const old = this.turn
    const turn = isFields(snapshot.turn) ? snapshot.turn : null
    this.turn = turn === null ? null : toTurn(turn)
    if (this.turn !== null) {
      if (this.#endedTurns.has(this.turn.id)) throw this.#breach(`${this.turn.id} is active again`)
      this.#startedTurns.add(this.turn.id)
      if (old?.id === this.turn.id) {
        this.turn.workMs = old.workMs
        this.turn.startedAt = old.startedAt
      }
      this.#timing(turn?.timing)
    }
    if (turn !== null) this.#toolsAgree(listOfFields(turn.tools))
    this.pendingApproval = optional(snapshot.pending_approval)
    this.pendingQuestion = optional(snapshot.pending_question)
    if (this.pendingApproval !== null) this.#opens('approval', String(this.pendingApproval.batch_id))
    if (this.pendingQuestion !== null) this.#opens('question', String(this.pendingQuestion.question_id))
    this.decision = optional(snapshot.approval_decision)
    this.pendingPrompts = listOfFields(snapshot.pending_prompts)
    this.settings = optional(snapshot.settings)
    this.lastTurn = optional(snapshot.last_turn)
    if (this.lastTurn !== null) {
      const { turn_id: id, outcome } = this.lastTurn
      const known = this.#endedTurns.get(String(id))
      if (known !== undefined && known !== outcome)
        throw this.#breach(`${String(id)} ended as ${known} and now as ${String(outcome)}`)
      this.#endedTurns.set(String(id), String(outcome))
    }
  }

  /** The tools of the active turn and those of the transcript are the same ones. */
  #toolsAgree(tools: readonly Fields[]): void {
    for (const { id, state } of tools) {
      const item = this.items[this.#toolIndex(String(id))]
      if (item?.kind !== 'tool' || state === 'preparing') continue
      if ((state === 'running' ? 'open' : state) !== item.state)
        throw this.#breach(`the tool ${String(id)} is ${String(state)} and ${item.state} in one snapshot`)
    }
  }

  /**
   * What was told stays told: in the same order, with open tools perhaps settled, and other items between. Two answers
   * with a change between them that no event tells are one text to whoever was told the words alone.
   */
  #mustContain(before: readonly Item[], openText: string | null): void {
    let at = 0
    for (const item of before) {
      const found = this.items.findIndex((one, index) => index >= at && isLaterOf(one, item))
      if (found >= 0) at = found + 1
      else if (item.kind === 'assistant' && this.allowHoles) {
        // Of the words that an object took with it when it died not all are kept.
      } else if (item.kind === 'assistant' && this.#wordsFrom(at).includes(item.text.head))
        at = this.#behindWords(at, item.text.head)
      else throw this.#breach(`a snapshot lacks ${JSON.stringify(item).slice(0, 200)}`)
    }
    // The beginning of an answer is kept, be it still under way, finished, or cut off by a cancel.
    if (openText === null || openText === '' || this.allowHoles || this.turn?.live.whole === null) return
    const words = this.#wordsFrom(at) + (this.turn?.live.whole ?? '')
    if (!words.startsWith(shown(openText).head.slice(0, 1000)))
      throw this.#breach(`a snapshot lacks the text ${JSON.stringify(openText).slice(0, 200)}`)
  }

  /** All that the model said behind so many items, as one text. */
  #wordsFrom(at: number): string {
    return this.items.slice(at).reduce((words, item) => words + wordsOf(item), '')
  }

  /** Where the item stands with which these words have been said. */
  #behindWords(at: number, words: string): number {
    let end = at
    let said = ''
    while (end < this.items.length && !said.includes(words)) {
      const item = this.items[end]
      said += item === undefined ? '' : wordsOf(item)
      end++
    }
    return end
  }

  #breach(what: string): Breach {
    const last = this.seen
      .slice(-8)
      .map(({ sequence, event }) => `${sequence} ${JSON.stringify(event).slice(0, 160)}`)
    return new Breach(`${what} (cursor ${this.cursor}); the last events were\n  ${last.join('\n  ')}`)
  }

  /** What two clients that know the same session agree on, however they came to know it. */
  shown(): ShownState {
    return {
      cursor: this.cursor,
      snapshotId: this.snapshotId,
      revision: this.revision,
      fromStart: this.fromStart,
      items: this.items,
      turn:
        this.turn === null
          ? null
          : { id: this.turn.id, live: { tail: this.turn.live.tail, bytes: this.turn.live.bytes } },
      pendingApproval: this.pendingApproval,
      pendingQuestion: this.pendingQuestion,
      decision: this.decision,
      pendingPrompts: this.pendingPrompts,
      settings: this.settings,
      lastTurn: this.lastTurn,
    }
  }
}

export type ShownState = {
  cursor: number
  snapshotId: string
  revision: string
  /** `items` begin where the transcript begins. */
  fromStart: boolean
  items: Item[]
  turn: { id: string; live: { tail: string; bytes: number } } | null
  pendingApproval: Fields | null
  pendingQuestion: Fields | null
  decision: Fields | null
  pendingPrompts: Fields[]
  settings: Fields | null
  lastTurn: Fields | null
}

/**
 * Both states, made comparable: a fresh snapshot holds the end of the transcript only, and of an answer that was joined
 * in its middle a client may know the size only.
 */
export function comparable(known: ShownState, fresh: ShownState): { known: ShownState; fresh: ShownState } {
  const whole = known.fromStart && fresh.fromStart
  const count = Math.min(known.items.length, fresh.items.length)
  const [left, right] = whole
    ? [known.items, fresh.items]
    : [lastOf(known.items, count), lastOf(fresh.items, count)]
  const isUnknown = (item: Item | undefined) => item?.kind === 'assistant' && item.text.head === UNKNOWN
  return {
    known: { ...known, fromStart: whole, items: left },
    fresh: {
      ...fresh,
      fromStart: whole,
      items: right.map((item, index) =>
        isUnknown(left[index]) && item.kind === 'assistant'
          ? { ...item, text: { ...item.text, head: UNKNOWN } }
          : item,
      ),
    },
  }
}

/** Stands for the beginning of a text that this client was never told. */
const UNKNOWN = '\u0000unknown'

const lastOf = <T>(list: readonly T[], count: number): T[] => (count === 0 ? [] : list.slice(-count))

const optional = (value: unknown): Fields | null => (isFields(value) ? value : null)

const emptyLive = (): LiveText => ({ tail: '', bytes: 0, whole: '' })

const extended = ({ tail, bytes, whole }: LiveText, text: string): LiveText => ({
  tail: tailOf(tail + text, LIVE_BYTES),
  bytes: bytes + byteLength(text),
  whole: whole === null ? null : whole + text,
})

function toTurn(turn: Fields): Turn {
  const live = fieldsOf(turn.live_response)
  const tail = String(live.text)
  return {
    id: String(turn.turn_id),
    live: { tail, bytes: Number(live.total_bytes), whole: live.truncated === true ? null : tail },
    startedAt: undefined,
    workMs: 0,
  }
}

const wordsOf = (item: Item): string => (item.kind === 'assistant' ? item.text.head : '')

/** Whether an item is the same one as before, or what an open tool has become. */
function isLaterOf(later: Item, before: Item): boolean {
  if (before.kind === 'tool') {
    if (later.kind !== 'tool' || later.id !== before.id) return false
    return before.state === 'open' || JSON.stringify(later) === JSON.stringify(before)
  }
  if (later.kind === 'tool' || later.kind !== before.kind) return false
  if (before.text.head === UNKNOWN) return later.text.bytes === before.text.bytes
  return later.text.bytes === before.text.bytes && later.text.head === before.text.head
}
