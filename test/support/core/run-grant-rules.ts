/** The rules of what a user decides in a run: it is settled once, and what it allows ends with the run. */

import { isDeepStrictEqual } from 'node:util'
import { grantsOf } from '../../../src/core/run/grants.ts'
import type { RunInputEvent } from '../../../src/core/run/inputs.ts'
import type { AskedCost, Disclosure, RunPhase, RunState } from '../../../src/core/run/state.ts'
import type { SettledOutcome } from '../../../src/core/run/writes.ts'
import type { ApprovalDecision } from '../../../src/protocol/execution/continue.ts'
import type { Machine } from './run-machine.ts'

export function must(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`broken: ${message}`)
}

const reach = ({ provider, local }: Disclosure): string => `${provider} ${local ? 'local' : 'remote'}`

/** A price that nobody knows is accepted apart from those that are known. */
const priced = ({ rule, provider, model, estimate }: AskedCost): string =>
  JSON.stringify([rule, provider, model, estimate === null ? 'unknown' : 'known'])

/** What an input makes of the approval that waited before it; null where it goes on waiting. */
function outcomeOf(input: RunInputEvent, approvalId: string): SettledOutcome | null {
  if (input.type === 'execute_requested') return 'superseded'
  if (input.type === 'device_decided') return input.batchId === approvalId ? input.decision : null
  if (input.type !== 'continuation_received') return null
  const { message } = input
  if (message.type === 'break') return 'cancelled'
  if (message.type === 'inject') return 'superseded'
  if (message.type !== 'approval_decisions') return null
  return message.data.decisions.find(({ approval_id: id }) => id === approvalId)?.decision ?? null
}

export class GrantRules {
  readonly #machine: Machine
  /** What the user has allowed for the rest of the run, by whom it reaches. */
  readonly #given = new Map<string, { id: string | null; paths: Set<string> }>()
  /** What calls may cost for the rest of the run, by rule and model: the most of one, in money; 0 at an unknown price. */
  readonly #accepted = new Map<string, { id: string | null; upTo: number }>()
  /** What became of each gate and plan that waits no more. */
  readonly #settled: [id: string, outcome: SettledOutcome][] = []

  constructor(machine: Machine) {
    this.#machine = machine
  }

  /** All that would be shown has been allowed, in this run and not taken back since. */
  allows(shown: Disclosure): boolean {
    const grant = this.#given.get(reach(shown))
    return grant !== undefined && shown.paths.every((path) => grant.paths.has(path))
  }

  /** As much has been accepted of this rule and model, in this run and not taken back since. */
  accepts(cost: AskedCost): boolean {
    const grant = this.#accepted.get(priced(cost))
    return grant !== undefined && Number(cost.estimate?.max ?? 0) <= grant.upTo
  }

  holds(grantId: string): boolean {
    return [...this.#given.values(), ...this.#accepted.values()].some(({ id }) => id === grantId)
  }

  /** An input was accepted. */
  follow(input: RunInputEvent, before: RunState | null): void {
    if (before?.runId !== this.#machine.state?.runId) {
      this.#given.clear()
      this.#accepted.clear()
    }
    if (input.type === 'grant_revoked') {
      for (const held of [this.#given, this.#accepted])
        for (const [key, { id }] of held) if (id === input.grantId) held.delete(key)
    }
    const phase = before?.phase
    if (phase?.k !== 'AwaitingApproval' || phase.decided !== null) return
    const outcome = outcomeOf(input, phase.approvalId)
    if (outcome === null) return
    const { byDevice } = phase
    if (byDevice === undefined) this.#settle(phase, outcome, before?.runId)
    // The decision of a device that waits for its driver brings nothing before that goes on with it, whatever it says (D06).
    const isDecision = outcome === 'approved' || outcome === 'rejected'
    if (isDecision && this.#machine.state?.active) this.#bring(phase, byDevice?.decision ?? outcome)
  }

  #settle(
    { approvalId, disclosure }: Extract<RunPhase, { k: 'AwaitingApproval' }>,
    outcome: SettledOutcome,
    runId: string | undefined,
  ): void {
    this.#settled.push([approvalId, outcome])
    if (disclosure === undefined || disclosure.local || outcome !== 'rejected') return
    const said = this.#machine.store.messages.filter((message) => message.runId === runId)
    must(
      said.every(({ localOnly }) => localOnly),
      'what was said before the user declined may leave',
    )
  }

  #bring(
    { disclosure, cost }: Extract<RunPhase, { k: 'AwaitingApproval' }>,
    outcome: ApprovalDecision,
  ): void {
    if (outcome !== 'approved') return
    if (cost !== undefined) {
      const id = this.#accepted.get(priced(cost))?.id ?? null
      this.#accepted.set(priced(cost), { id, upTo: 2 * Number(cost.estimate?.max ?? 0) })
    }
    if (disclosure === undefined) return
    const known = this.#given.get(reach(disclosure))
    const paths = new Set([...(known?.paths ?? []), ...disclosure.paths])
    this.#given.set(reach(disclosure), { id: known?.id ?? null, paths })
  }

  check(over: boolean): void {
    this.#checkGrants(over)
    this.#checkApprovals()
  }

  /** Grants are listed as they were given, keep their id, and end with their run (U23). */
  #checkGrants(over: boolean): void {
    const { state } = this.#machine
    const listed = state === null ? [] : grantsOf(state)
    if (over) {
      must(listed.length === 0, 'a grant outlives its run')
      return
    }
    const held = this.#given.size + this.#accepted.size
    must(listed.length === held, `grants: listed ${listed.length}, given ${held}`)
    must(new Set(listed.map(({ id }) => id)).size === held, 'two grants have one id')
    for (const { id, kind, paths, rule, provider, model, up_to: upTo } of listed) {
      if (kind === 'cost_limit') {
        const known = upTo === undefined ? 'unknown' : 'known'
        const accepted = this.#accepted.get(JSON.stringify([rule, provider, model, known]))
        must(accepted?.upTo === Number(upTo ?? 0), `grant ${id} lists a cost that was not accepted`)
        must(accepted.id === null || accepted.id === id, `grant ${id} was another one before`)
        must(paths.length === 0, 'a cost lists files')
        accepted.id = id
        continue
      }
      const given = [...this.#given.values()].find(
        (one) => one.id === id || (one.id === null && isDeepStrictEqual([...one.paths], paths)),
      )
      must(given && isDeepStrictEqual([...given.paths], paths), `grant ${id} lists what was not allowed`)
      given.id = id
    }
  }

  /** Each approval is settled once, as it was ended, and never changes after (U21, U22). */
  #checkApprovals(): void {
    const rows = this.#machine.store.approvals
      .filter(({ targetType }) => targetType !== 'tool_call')
      .map(({ id, outcome }) => [id, outcome])
    must(
      rows.length === this.#settled.length && isDeepStrictEqual(rows.slice(-3), this.#settled.slice(-3)),
      `approvals: stored ${JSON.stringify(rows)}, expected ${JSON.stringify(this.#settled)}`,
    )
    if (this.#machine.sealed !== null) {
      this.#checkSealedTraces()
      return
    }
    const traced = [...this.#machine.store.turns.values()].flatMap(({ trace }) =>
      trace.filter(({ payload }) => payload.type === 'approval' && payload.target_type !== 'tool_call'),
    )
    must(traced.length === rows.length, `${rows.length} approvals are settled, ${traced.length} are traced`)
  }

  /** Of a sealed trace the kind of each event is in clear, and no more (EC 19). */
  #checkSealedTraces(): void {
    const { turns, approvals } = this.#machine.store
    const traced = [...turns.values()].flatMap(({ trace }) =>
      trace.filter(({ payload }) => payload.type === 'sealed' && payload.event_type === 'approval'),
    )
    must(traced.length === approvals.length, `${approvals.length} are settled, ${traced.length} are traced`)
  }
}
