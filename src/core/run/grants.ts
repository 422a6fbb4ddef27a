import { failure } from '../../protocol/execution/errors.ts'
import type { Grant } from '../../protocol/execution/turn.ts'
import { type CostGrant, type Disclosure, type GivenDisclosure, isOver, type RunState } from './state.ts'
import type { Refusal, Step } from './step.ts'

/** A grant has an id, by which it is listed and revoked; what an older release stored without one is none. */
type GrantedDisclosure = GivenDisclosure & { id: string }

const isGrant = (given: GivenDisclosure): given is GrantedDisclosure => given.id !== undefined

/** One grant holds for all models of a provider that are of one locality. */
const sameReach = (a: Disclosure, b: Disclosure): boolean => a.provider === b.provider && a.local === b.local

/** Everything that would be shown has been allowed: to this provider, in this run (EC 13, U23). */
export const isGranted = (given: readonly GivenDisclosure[], asked: Disclosure): boolean =>
  given.some((one) => {
    if (!isGrant(one) || !sameReach(one, asked)) return false
    const allowed = new Set(one.paths)
    return asked.paths.every((path) => allowed.has(path))
  })

/** What is allowed once `approved` is: the grant of its provider grows and keeps its id, or begins under `newId`. */
export function withGrant(
  given: readonly GivenDisclosure[],
  approved: Disclosure,
  newId: () => string,
): GivenDisclosure[] {
  const others = given.filter((one) => !sameReach(one, approved))
  const known = given.find((one) => isGrant(one) && sameReach(one, approved))
  return [
    ...others,
    known === undefined
      ? { ...approved, id: newId() }
      : { ...known, paths: [...new Set([...known.paths, ...approved.paths])] },
  ]
}

/** What the user has allowed for the rest of the run, as it is listed (U23). A grant ends with its run. */
export const grantsOf = (state: RunState): Grant[] =>
  isOver(state)
    ? []
    : [...state.disclosed.filter(isGrant).map(listDisclosure), ...(state.costs ?? []).map(listCost)]

const listDisclosure = ({ id, provider, model, paths, local }: GrantedDisclosure): Grant => ({
  id,
  kind: 'remote_disclosure',
  provider,
  model,
  paths,
  ...(local ? { local } : {}),
})

const listCost = ({ id, rule, provider, model, upTo }: CostGrant): Grant => ({
  id,
  kind: 'cost_limit',
  provider,
  model,
  paths: [],
  rule,
  ...(upTo === undefined ? {} : { up_to: upTo }),
})

/**
 * Takes a grant back (U23). A call that is under way has been sent; what comes after it is asked for again.
 * @returns a refusal with `grant_id` when the run holds no such grant, or is over
 */
export function revokeGrant(state: RunState | null, grantId: string): Step | Refusal {
  if (state === null || !grantsOf(state).some(({ id }) => id === grantId)) {
    const unknown = failure('invalid_request', 'the current run has no such grant', { grant_id: grantId })
    return { refused: { ...unknown, status: 404 } }
  }
  const { costs = [], ...rest } = state
  const kept = costs.filter(({ id }) => id !== grantId)
  const next: RunState = {
    ...rest,
    disclosed: state.disclosed.filter(({ id }) => id !== grantId),
    ...(kept.length === 0 ? {} : { costs: kept }),
  }
  return { state: next, writes: [], events: [], effects: [] }
}
