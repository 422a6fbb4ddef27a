import { assert } from '../protocol/assert.ts'
import type { Failure } from '../protocol/execution/errors.ts'
import type { ModelDescriptor } from '../protocol/execution/models.ts'
import type { Effort } from '../protocol/execution/policy.ts'
import type { ClassificationInputs, LocalReason } from '../protocol/execution/trace.ts'
import type { Classification, ContextOutcome } from '../protocol/execution/turn.ts'
import { ok, type Result } from '../protocol/result.ts'
import { assemble, BASE_INSTRUCTION, PLANNING_INSTRUCTION } from './assemble.ts'
import { gatherCandidates, runUnits, skillConstraint } from './candidates.ts'
import { classificationInputs, classifyFrom } from './classify.ts'
import { type Candidate, contextOutcome, selectContext, type Verdict } from './context.ts'
import { resultTokens, shortenedCalls, sparableTokens, withFittingResults } from './context-results.ts'
import { diffPaths } from './diff-paths.ts'
import { readImage } from './image.ts'
import { recall } from './memory.ts'
import { normalisePath } from './paths.ts'
import { narrowPermissions, type PermissionMap } from './permissions.ts'
import { makePrivacyGuard, type PrivacyGuard, sayConstraint } from './privacy/guard.ts'
import { callsConstraint, seenIn } from './privacy/history.ts'
import type { ModelRequest } from './prompt.ts'
import { planRoute, type RoutePlan } from './route.ts'
import { type Demands, type LocalCause, promptBudget } from './select.ts'
import { estimateTokens } from './tokens.ts'
import { type TurnTool, toolsFor, turnTools } from './tools.ts'
import { callPaths, type Seen, type TranscriptCall, type TranscriptMessage } from './transcript.ts'
import { pastCallsOf, type TurnView } from './turn-view.ts'

/** A turn that is decided up to the question which of its models are usable. */
export type TurnPlan = {
  view: TurnView
  classification: Classification
  /** What it was decided from, for the trace. */
  classificationInputs: ClassificationInputs
  route: RoutePlan
  permissions: PermissionMap
  tools: TurnTool[]
  guard: PrivacyGuard
  /** The paths that rules were held against, normalised. */
  candidatePaths: readonly string[]
  candidates: Candidate[]
  /** Everything that binds the turn to local models; `demands.localBecause` is the first. */
  localReasons: LocalReason[]
  demands: Demands
}

/** A planned turn made ready for one model of its route. */
export type PreparedCall = {
  request: ModelRequest
  verdicts: Verdict[]
  /** The tools that this model is offered. */
  tools: TurnTool[]
  outcome: ContextOutcome
  /** What goes in by the estimate: the included candidates and what was said in the run (EC 20.3). */
  inputTokens: number
}

/**
 * Steps 1 to 3 of a turn: classify, match the policy, gather context, derive what the model must be able to do.
 * @param options.looseRules a rule that tries to loosen a permission: `refuse` the turn (EC 12.3), or `ignore` what it
 *   says of permissions, as a preview does (EC 2.13)
 */
export function planTurn(
  view: TurnView,
  { looseRules = 'refuse' }: { looseRules?: 'refuse' | 'ignore' } = {},
): Result<TurnPlan, Failure> {
  const { policy, workspace, input, attachments, local_preferences } = view.runInput
  const current = view.transcript.filter(({ runId }) => runId === view.runId)
  const calls = [...pastCallsOf(view, view.runId), ...current.flatMap((message) => message.calls)]
  const inputs = classificationInputs({
    text: current.findLast(({ role }) => role === 'user')?.text ?? input.text,
    command: view.firstTurn ? (input.command ?? null) : null,
    contextKinds: contextKinds(view, current, calls),
    config: policy.classification,
  })
  const classification = classifyFrom(inputs, policy.classification)
  const guard = makePrivacyGuard(policy.privacy, policy.routing.rules, workspace.root)
  const pointedAt = [...workspace.referenced_paths, ...(workspace.active_file ? [workspace.active_file] : [])]
  const referenced = new Set(pointedAt.map((path) => normalisePath(path, workspace.root)))
  const called = calls.flatMap(callPaths).map((path) => normalisePath(path, workspace.root))
  const candidatePaths = unique([
    ...referenced,
    ...diffPaths(workspace.git_diff ?? '').map((path) => normalisePath(path, workspace.root)),
    ...attachments.files.map(({ path }) => normalisePath(path, workspace.root)),
    ...called,
  ])
  const route = planRoute({
    intent: classification.intent,
    candidatePaths,
    explicitModel: input.explicit_model ?? null,
    routing: policy.routing,
  })
  if (!route.ok) return route
  const narrowed = narrowPermissions(
    policy.tools.permissions,
    route.value.rule?.required_permissions ?? undefined,
  )
  if (!narrowed.ok && looseRules === 'refuse') return narrowed
  const permissions = narrowed.ok ? narrowed.value : policy.tools.permissions
  const tools = turnTools({
    attachments,
    permissions,
    planning: view.planning,
    noNetwork: local_preferences.no_network,
    isPrivateSkill: (skill) => skillConstraint(skill, guard) !== null,
    ...(view.driver === undefined ? {} : { driver: view.driver }),
  })
  if (!tools.ok) return tools
  const candidates = gatherCandidates(view, {
    guard,
    isReferenced: (path) => referenced.has(normalisePath(path, workspace.root)),
    inFocus: (path) => route.value.inFocus(normalisePath(path, workspace.root)),
  })
  // A folder that the user points at stands for what is in it.
  const constraintOf = (path: string): string | null => {
    const constraint = guard.constraintOfFolder(path)
    return constraint === null ? null : sayConstraint(constraint)
  }
  // What drove the route cannot be left out any more than what the user referenced ("Privacy and model locality").
  const drove = candidatePaths.filter(route.value.inFocus)
  const about =
    candidates.find(({ required, constrained }) => required && constrained)?.constraint ??
    firstOf([...pointedAt, ...drove], constraintOf) ??
    callsConstraint(calls, guard)
  const localReasons = localReasonsOf(view, route.value, about)
  const demands: Demands = {
    references: route.value.references,
    overrideUsed: route.value.overrideUsed,
    localBecause: localReasons[0]?.cause ?? null,
    ...(localReasons[0]?.about === undefined ? {} : { localAbout: localReasons[0].about }),
    localDenied: policy.privacy.local?.mode === 'deny' || view.localDeclined === true,
    capabilities: route.value.rule?.requires_capabilities ?? {},
    derived: {
      ...(candidates.some(({ kind, required }) => kind === 'image' && required) || current.some(hasImages)
        ? { images: true }
        : {}),
      ...(isHard(route.value.effort) ? { reasoning: true } : {}),
    },
    // Memory and questions are conveniences: no model is passed over because it has none.
    mayCallTools: tools.value.some(({ executor }) => executor !== 'memory' && executor !== 'user'),
    requiredTokens: fixedTokens(view, tools.value) + requiredTokens(candidates) - sparableTokens(view),
  }
  return ok({
    view,
    classification,
    classificationInputs: inputs,
    route: route.value,
    permissions,
    tools: tools.value,
    guard,
    candidatePaths,
    candidates,
    localReasons,
    demands,
  })
}

/** Everything that binds the turn to local models, the weightiest first. */
function localReasonsOf(view: TurnView, { rule }: RoutePlan, requiredContent: string | null): LocalReason[] {
  const {
    runInput: { policy, local_preferences: preferences },
    remoteDeclined,
  } = view
  const reasons: LocalReason[] = []
  if (requiredContent !== null) reasons.push({ cause: 'required_content', about: requiredContent })
  if (preferences.local_only) reasons.push({ cause: 'preference', about: 'local_only' })
  if (preferences.no_network) reasons.push({ cause: 'preference', about: 'no_network' })
  if (rule?.local_only) reasons.push({ cause: 'rule', about: rule.name })
  if (policy.privacy.remote?.mode === 'deny') reasons.push({ cause: 'remote_denied' })
  if (remoteDeclined) reasons.push({ cause: 'remote_declined' })
  // What else keeps the run at home says why better; only what nothing else explains is told by the mark alone.
  const answersKept = runUnits(view).fixed.some(
    ({ message }) => message.role === 'assistant' && message.localOnly === true,
  )
  if (answersKept && !reasons.some(({ cause }) => KEPT_LOCAL.has(cause)))
    reasons.push({ cause: 'required_content', about: 'it answers what was kept with local models' })
  return reasons
}

function firstOf<T, Found>(items: readonly T[], find: (item: T) => Found | null): Found | null {
  for (const item of items) {
    const found = find(item)
    if (found !== null) return found
  }
  return null
}

/** Step 4 of a turn: trims the context to the model's window and builds the request. The model is one of `chooseModel`. */
export function prepareCall(turn: TurnPlan, model: ModelDescriptor): PreparedCall {
  assert(model.local || turn.demands.localBecause === null, 'a turn bound to local models got a remote one')
  const tools = toolsFor(turn.tools, model)
  const budget = promptBudget(model)
  const besideResults =
    fixedTokens(turn.view, tools) - resultTokens(turn.view) + requiredTokens(turn.candidates)
  const view = withFittingResults(turn.view, budget - besideResults)
  const verdicts = selectContext(turn.candidates, {
    budgetTokens: budget - fixedTokens(view, tools),
    local: model.local,
    images: model.capabilities.images === true,
  })
  return {
    request: {
      model,
      messages: assemble(view, verdicts, {
        provider: model.provider,
        tools,
        sees: model.capabilities.images === true,
      }),
      tools: tools.map(({ name, description, parameters }) => ({ name, description, parameters })),
      effort: turn.route.effort,
    },
    verdicts,
    tools,
    inputTokens:
      saidTokens(view) +
      verdicts.reduce((sum, { candidate, included }) => sum + (included ? candidate.tokens : 0), 0),
    outcome: contextOutcome(
      verdicts,
      view.olderMessages,
      recall(view.memories).older,
      shortenedCalls(turn.view, view).map(({ name }) => name),
    ),
  }
}

/** The model sees something that only local ones may see: what it answers may repeat it (U37). */
export const isPrivate = ({ localReasons }: TurnPlan, { verdicts, tools }: PreparedCall): boolean =>
  localReasons.some(({ cause }) => KEPT_LOCAL.has(cause)) ||
  verdicts.some(({ candidate, included }) => included && candidate.constrained) ||
  tools.some((tool) => tool.isPrivate === true)

/**
 * What is said under these stays with local models for good. A rule that is local-only is a choice of models: it constrains
 * the paths that it names, and nothing else (EC 9).
 */
const KEPT_LOCAL: ReadonlySet<LocalCause> = new Set([
  'required_content',
  'preference',
  'remote_denied',
  'remote_declined',
])

/** What this prompt holds that a later policy may make private, beyond what the run tells already (U37). */
export function seenBy({ view, guard }: TurnPlan, { verdicts }: PreparedCall): Seen {
  const kept = verdicts.filter(({ included }) => included)
  const messages = new Set(kept.map(({ candidate }) => candidate.key))
  return seenIn(
    view,
    guard,
    kept.flatMap(({ candidate }) => candidate.shows ?? []),
    ({ seq }) => messages.has(`message:${seq}`),
    kept.flatMap(({ candidate }) => candidate.mayShow ?? []),
  )
}

/**
 * What the turn remembers is for local models alone: it outlives the run, and with it the rule, the preference or the
 * answer that kept the turn from remote ones (U37).
 */
export const remembersPrivately = (turn: TurnPlan, call: PreparedCall): boolean =>
  turn.demands.localBecause !== null || isPrivate(turn, call)

/** What every prompt of the turn holds whatever is dropped: instruction, tools, the user's words of this run. */
function fixedTokens(view: TurnView, tools: readonly TurnTool[]): number {
  return (
    estimateTokens(view.planning ? `${BASE_INSTRUCTION}${PLANNING_INSTRUCTION}` : BASE_INSTRUCTION) +
    tools.reduce((sum, { name, description, parameters }) => {
      return sum + estimateTokens(name + description + JSON.stringify(parameters))
    }, 0) +
    saidTokens(view)
  )
}

/** The user's words of this run, and the round of calls that is about to be answered. */
const saidTokens = (view: TurnView): number =>
  runUnits(view).fixed.reduce((sum, { tokens }) => sum + tokens, 0)

const requiredTokens = (candidates: readonly Candidate[]): number =>
  candidates.reduce((sum, { required, tokens }) => sum + (required ? tokens : 0), 0)

/** What is present, of the workspace (EC 7) and of the run's state (D11). */
function contextKinds(
  { runInput: { workspace, attachments }, planApproved }: TurnView,
  current: readonly TranscriptMessage[],
  calls: readonly TranscriptCall[],
): Set<string> {
  const kinds = new Set<string>()
  const add = (present: unknown, kind: string) => present && kinds.add(kind)
  const fileChanged = calls.some((call) => call.changesFiles && call.result !== undefined && !call.isError)
  const latest = current.at(-1)?.role === 'assistant' ? (current.at(-1)?.calls ?? []) : []
  add(typeof workspace.git_diff === 'string' || fileChanged, 'git_diff')
  add(typeof workspace.git_branch === 'string', 'git_branch')
  add(typeof workspace.active_file === 'string', 'active_file')
  add(
    workspace.referenced_paths.length > 0 || calls.some((call) => callPaths(call).length > 0),
    'referenced_paths',
  )
  add(
    latest.some((call) => call.result !== undefined),
    'tool_results',
  )
  add(
    latest.some((call) => call.isError),
    'tool_error',
  )
  add(fileChanged, 'file_changed')
  add(planApproved, 'plan_approved')
  add(attachments.invoked_skills.length > 0, 'invoked_skill')
  add(
    current.some(hasImages) || attachments.files.some(({ content }) => readImage(content) !== null),
    'image',
  )
  return kinds
}

/** The user's words in it came with pictures. */
const hasImages = ({ images = [] }: TranscriptMessage): boolean => images.length > 0

/** A high effort asks for a model that can think (EC 8.5). */
const isHard = (effort: Effort): boolean => effort === 'high' || effort === 'xhigh'

const unique = (paths: string[]): string[] => [...new Set(paths)]
