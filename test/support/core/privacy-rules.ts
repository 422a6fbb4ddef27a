/** Serves a turn the way the router does, with every fallback, and holds each prepared request against the truth. */

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
import { makePrivateTurn } from './private-turns.ts'
import { makeRandom } from './random.ts'

/** How often each thing happened: a property that never meets a remote model proves nothing. */
export type Seen = {
  remote: number
  remoteBesideSecrets: number
  localWithSecrets: number
  bound: number
  refused: number
  /** Recorded facts that every model may see. */
  rememberedForAll: number
}

export const nothingSeen = (): Seen => ({
  remote: 0,
  remoteBesideSecrets: 0,
  localWithSecrets: 0,
  bound: 0,
  refused: 0,
  rememberedForAll: 0,
})

/** What a bound turn may come to without a model; an explicit local one may also be missing or unfit. */
const REFUSALS = ['no_route', 'override_not_allowed']

/** Throws, with the seed, when a byte of constrained content is on its way to a remote model. */
export function checkPrivacy(seed: number, seen: Seen): void {
  const { view, models, secret, open, bound } = makePrivateTurn(makeRandom(seed))
  const broken = (what: string): Error => new Error(`seed ${seed}: ${what}\n${JSON.stringify(view, null, 1)}`)
  const planned = planTurn(view)
  if (!planned.ok) throw broken(`no plan: ${planned.error.message}`)
  if (bound) seen.bound++
  const explicit = view.runInput.input.explicit_model ?? null
  const failed = new Set<string>()
  for (;;) {
    const choice = chooseModel(planned.value.demands, makeCatalogue(models), failed)
    if (choice.k === 'list') throw broken('nothing is left to list')
    if (choice.k === 'none') {
      if (bound && failed.size === 0 && explicit === null && !REFUSALS.includes(choice.failure.code))
        throw broken(`refused with ${choice.failure.code}`)
      if (
        bound &&
        explicit !== null &&
        !explicit.startsWith('ollama/') &&
        choice.failure.code !== 'override_not_allowed'
      )
        throw broken(`the override was refused with ${choice.failure.code}`)
      seen.refused++
      return
    }
    const { model } = choice
    if (bound && !model.local) throw broken(`${choice.reference} serves a turn that is bound to local models`)
    const prepared = prepareCall(planned.value, model)
    const text = JSON.stringify(prepared.request)
    const leaked = secret.filter((marker) => text.includes(marker))
    if (model.local) {
      if (leaked.length > 0) seen.localWithSecrets++
    } else {
      if (leaked.length > 0) throw broken(`${choice.reference} would see ${leaked.join(' ')}`)
      if (open.some((marker) => text.includes(marker))) seen.remote++
      if (secret.length > 0) seen.remoteBesideSecrets++
    }
    const isShared = !remembered(planned.value, prepared).localOnly
    if (isShared && (bound || leaked.length > 0 || planned.value.demands.localBecause !== null))
      throw broken('what a turn remembers that is bound to local models is shown to others')
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
