/** Serves a turn the way the router does, with every fallback, and holds each prepared request against the truth. */

import fc from 'fast-check'
import { mediate } from '../../../src/core/mediate.ts'
import type { MemoryOp } from '../../../src/core/memory.ts'
import {
  type PreparedCall,
  planTurn,
  prepareCall,
  remembersPrivately,
  type TurnPlan,
} from '../../../src/core/resolve.ts'
import { chooseModel } from '../../../src/core/select.ts'
import { makeCatalogue } from './builders.ts'
import { makePrivateTurn, type PrivateTurn } from './private-turns.ts'
import { madeAtRandom } from './random.ts'

/** How often each thing happened: a property that never meets a remote model proves nothing. */
export type Seen = {
  remote: number
  remoteBesideSecrets: number
  remoteWithPartOfDiff: number
  remoteWithOpenSkill: number
  remoteAfterCalls: number
  localWithSecrets: number
  bound: number
  boundWithoutLocal: number
  remoteForbidden: number
  localForbidden: number
  overrideRefused: number
  refused: number
  /** Recorded facts that every model may see. */
  rememberedForAll: number
}

export const nothingSeen = (): Seen => ({
  remote: 0,
  remoteBesideSecrets: 0,
  remoteWithPartOfDiff: 0,
  remoteWithOpenSkill: 0,
  remoteAfterCalls: 0,
  localWithSecrets: 0,
  bound: 0,
  boundWithoutLocal: 0,
  remoteForbidden: 0,
  localForbidden: 0,
  overrideRefused: 0,
  refused: 0,
  rememberedForAll: 0,
})

/** What a bound turn may come to without a model; an explicit local one may also be missing or unfit. */
const REFUSALS = ['no_route', 'override_not_allowed']

/**
 * Decides on `count` turns; throws, with what repeats the case, when a byte of constrained content is on its way to a
 * remote model. Gives how often each thing happened.
 */
export function checkTurns(count: number, seed: number): Seen {
  const seen = nothingSeen()
  const holds = fc.property(madeAtRandom(makePrivateTurn), (turn) => checkPrivacy(turn, seen))
  fc.assert(holds, { numRuns: count, seed })
  return seen
}

/** Throws when a byte of constrained content is on its way to a remote model. */
export function checkPrivacy(turn: PrivateTurn, seen: Seen): void {
  const { view, models, secret, open, bound, remoteForbidden, localForbidden } = turn
  const planned = planTurn(view)
  if (!planned.ok) throw new Error(`no plan: ${planned.error.message}`)
  const { demands } = planned.value
  if (bound) seen.bound++
  if (bound && models.every(({ local }) => !local)) seen.boundWithoutLocal++
  if (remoteForbidden) seen.remoteForbidden++
  if (localForbidden) seen.localForbidden++
  const explicit = view.runInput.input.explicit_model ?? null
  const isRemoteOverride = explicit !== null && !explicit.startsWith('ollama/')
  const failed = new Set<string>()
  for (;;) {
    const choice = chooseModel(demands, makeCatalogue(models), failed)
    if (choice.k === 'list') throw new Error('nothing is left to list')
    if (choice.k === 'none') {
      const { code } = choice.failure
      if (bound && failed.size === 0 && explicit === null && !REFUSALS.includes(code))
        throw new Error(`refused with ${code}`)
      // What the user declined is no matter of the policy: the code for it is another one.
      if (bound && isRemoteOverride && !view.remoteDeclined && code !== 'override_not_allowed')
        throw new Error(`the override was refused with ${code}`)
      if (code === 'override_not_allowed') seen.overrideRefused++
      seen.refused++
      return
    }
    const { model } = choice
    if (!model.local && bound)
      throw new Error(`${choice.reference} serves a turn that is bound to local models`)
    if (!model.local && remoteForbidden)
      throw new Error(`${choice.reference} serves a turn without remote models`)
    if (model.local && localForbidden)
      throw new Error(`${choice.reference} serves a turn without local models`)
    const prepared = prepareCall(planned.value, model)
    const text = JSON.stringify(prepared.request)
    const leaked = secret.filter((marker) => text.includes(marker))
    if (model.local) {
      if (leaked.length > 0) seen.localWithSecrets++
    } else {
      if (leaked.length > 0) throw new Error(`${choice.reference} would see ${leaked.join(' ')}`)
      if (open.some((marker) => text.includes(marker))) seen.remote++
      if (secret.length > 0) seen.remoteBesideSecrets++
      if (turn.openBesideSecrets.some((marker) => text.includes(marker))) seen.remoteWithPartOfDiff++
      if (text.includes('offered <<')) seen.remoteWithOpenSkill++
      if (text.includes('"role":"tool"')) seen.remoteAfterCalls++
    }
    const isShared = !remembered(planned.value, prepared).localOnly
    if (isShared && (bound || leaked.length > 0 || demands.localBecause !== null))
      throw new Error('what a turn remembers that is bound to local models is shown to others')
    if (isShared) seen.rememberedForAll++
    failed.add(choice.reference)
  }
}

/** What becomes of a fact that the model of this call records. */
function remembered(plan: TurnPlan, prepared: PreparedCall): Extract<MemoryOp, { op: 'record' }> {
  const asked = { name: 'memory', arguments: { op: 'record', scope: 'user', key: 'k', value: 'v' } }
  const at = { facts: plan.view.memories, localOnly: remembersPrivately(plan, prepared) }
  const [answer] = mediate([asked], plan.tools, plan.permissions, at)
  if (answer?.to !== 'model' || answer.memory?.op !== 'record') throw new Error('nothing was recorded')
  return answer.memory
}
