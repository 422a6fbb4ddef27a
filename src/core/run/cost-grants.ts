import type { Decimal } from '../../protocol/execution/ids.ts'
import { addMoney, compareMoney } from '../cost.ts'
import type { AskedCost, CostGrant } from './state.ts'

/**
 * What one call may cost once this estimate was accepted: twice what was shown, so that a run whose prompt grows from turn
 * to turn is not asked about each of them.
 */
export const acceptedUpTo = ({ max }: NonNullable<AskedCost['estimate']>): Decimal => addMoney(max, max)

/** A price that is known and one that nobody knows are accepted apart. */
const sameReach = (given: CostGrant, { rule, provider, model, estimate }: AskedCost): boolean =>
  given.rule === rule &&
  given.provider === provider &&
  given.model === model &&
  (given.upTo === undefined) === (estimate === null)

/** What the call may cost has been accepted: by this rule, for this model, in this run (EC 13, U23). */
export const isCostGranted = (given: readonly CostGrant[], asked: AskedCost): boolean =>
  given.some(
    (one) =>
      sameReach(one, asked) &&
      (one.upTo === undefined || asked.estimate === null || compareMoney(asked.estimate.max, one.upTo) <= 0),
  )

/** What is accepted once `approved` is: the grant of its rule and model is widened and keeps its id, or begins under `newId`. */
export function withCostGrant(
  given: readonly CostGrant[],
  approved: AskedCost,
  newId: () => string,
): CostGrant[] {
  const { rule, provider, model, estimate } = approved
  const known = given.find((one) => sameReach(one, approved))
  const upTo = estimate === null ? {} : { upTo: acceptedUpTo(estimate) }
  return [
    ...given.filter((one) => one !== known),
    { id: known?.id ?? newId(), rule, provider, model, ...upTo },
  ]
}
