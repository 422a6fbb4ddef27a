import { assert } from '../protocol/assert.ts'
import type { Failure } from '../protocol/execution/errors.ts'
import type { ModelDescriptor } from '../protocol/execution/models.ts'
import type { Effort } from '../protocol/execution/policy.ts'
import type { Classification, ContextOutcome } from '../protocol/execution/turn.ts'
import { ok, type Result } from '../protocol/result.ts'
import { assemble, BASE_INSTRUCTION } from './assemble.ts'
import { gatherCandidates, runUnits } from './candidates.ts'
import { classify } from './classify.ts'
import { type Candidate, contextOutcome, selectContext, type Verdict } from './context.ts'
import { diffPaths } from './diff-paths.ts'
import { readImage } from './image.ts'
import { recall } from './memory.ts'
import { normalisePath } from './paths.ts'
import { narrowPermissions, type PermissionMap } from './permissions.ts'
import { makePrivacyGuard } from './privacy.ts'
import type { ModelRequest } from './prompt.ts'
import { planRoute, type RoutePlan } from './route.ts'
import { type Demands, promptBudget } from './select.ts'
import { estimateTokens } from './tokens.ts'
import { type TurnTool, toolsFor, turnTools } from './tools.ts'
import { callPaths, mentionedPaths, type TranscriptCall, type TranscriptMessage } from './transcript.ts'
import { pastCallsOf, type TurnView } from './turn-view.ts'

/** A turn that is decided up to the question which of its models are usable. */
export type TurnPlan = {
  view: TurnView
  classification: Classification
  route: RoutePlan
  permissions: PermissionMap
  /** Why the rule's own permissions do not count: it tries to loosen one. Only where that is not refused. */
  loosenedBy: string | null
  tools: TurnTool[]
  candidates: Candidate[]
  demands: Demands
}

/** A planned turn made ready for one model of its route. */
export type PreparedCall = {
  request: ModelRequest
  verdicts: Verdict[]
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
  const classification = classify({
    text: current.findLast(({ role }) => role === 'user')?.text ?? input.text,
    command: view.firstTurn ? (input.command ?? null) : null,
    contextKinds: contextKinds(view, current, calls),
    config: policy.classification,
  })
  const guard = makePrivacyGuard(policy.privacy, policy.routing.rules, workspace.root)
  const referenced = new Set(
    [...workspace.referenced_paths, ...(workspace.active_file ? [workspace.active_file] : [])].map((path) =>
      normalisePath(path, workspace.root),
    ),
  )
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
  })
  if (!tools.ok) return tools
  const candidates = gatherCandidates(view, {
    guard,
    isReferenced: (path) => referenced.has(normalisePath(path, workspace.root)),
    inFocus: (path) => route.value.inFocus(normalisePath(path, workspace.root)),
  })
  const requiredConstrained =
    candidates.some(({ required, constrained }) => required && constrained) ||
    [...referenced].some((path) => guard.isConstrained(path)) ||
    calls.flatMap(mentionedPaths).some((path) => guard.touchesConstrained(path)) ||
    runUnits(view).fixed.some(({ message }) => message.localOnly === true)
  const mode = policy.privacy.remote?.mode ?? 'ask'
  const demands: Demands = {
    references: route.value.references,
    overrideUsed: route.value.overrideUsed,
    localBecause: requiredConstrained
      ? 'required_content'
      : local_preferences.local_only || local_preferences.no_network
        ? 'preference'
        : route.value.rule?.local_only
          ? 'rule'
          : mode === 'deny' || view.remoteDeclined
            ? 'remote_denied'
            : null,
    capabilities: route.value.rule?.requires_capabilities ?? {},
    derived: {
      ...(candidates.some(({ kind, required }) => kind === 'image' && required) ? { images: true } : {}),
      ...(isHard(route.value.effort) ? { reasoning: true } : {}),
    },
    // Memory is a convenience: no model is passed over because it has none.
    mayCallTools: tools.value.some(({ executor }) => executor !== 'memory'),
    requiredTokens:
      fixedTokens(view, tools.value) +
      candidates.reduce((sum, { required, tokens }) => sum + (required ? tokens : 0), 0),
  }
  return ok({
    view,
    classification,
    route: route.value,
    permissions,
    loosenedBy: narrowed.ok ? null : narrowed.error.message,
    tools: tools.value,
    candidates,
    demands,
  })
}

/** Step 4 of a turn: trims the context to the model's window and builds the request. The model is one of `chooseModel`. */
export function prepareCall(turn: TurnPlan, model: ModelDescriptor): PreparedCall {
  assert(model.local || turn.demands.localBecause === null, 'a turn bound to local models got a remote one')
  const tools = toolsFor(turn.tools, model.capabilities)
  const verdicts = selectContext(turn.candidates, {
    budgetTokens: promptBudget(model) - fixedTokens(turn.view, tools),
    local: model.local,
    images: model.capabilities.images === true,
  })
  return {
    request: {
      model,
      messages: assemble(turn.view, verdicts, { provider: model.provider, tools }),
      tools: tools.map(({ name, description, parameters }) => ({ name, description, parameters })),
      effort: turn.route.effort,
    },
    verdicts,
    inputTokens:
      saidTokens(turn.view) +
      verdicts.reduce((sum, { candidate, included }) => sum + (included ? candidate.tokens : 0), 0),
    outcome: contextOutcome(verdicts, turn.view.olderMessages, recall(turn.view.memories).older),
  }
}

/** The model sees something that only local ones may see: what it answers may repeat it (U37). */
export const isPrivate = ({ demands }: TurnPlan, { verdicts }: PreparedCall): boolean =>
  demands.localBecause === 'required_content' ||
  verdicts.some(({ candidate, included }) => included && candidate.constrained)

/**
 * What the turn remembers is for local models alone: it outlives the run, and with it the rule, the preference or the
 * answer that kept the turn from remote ones (U37).
 */
export const remembersPrivately = (turn: TurnPlan, call: PreparedCall): boolean =>
  turn.demands.localBecause !== null || isPrivate(turn, call)

/** What every prompt of the turn holds whatever is dropped: instruction, tools, the user's words of this run. */
function fixedTokens(view: TurnView, tools: readonly TurnTool[]): number {
  return (
    estimateTokens(BASE_INSTRUCTION) +
    tools.reduce((sum, { name, description, parameters }) => {
      return sum + estimateTokens(name + description + JSON.stringify(parameters))
    }, 0) +
    saidTokens(view)
  )
}

/** The user's words of this run, and the round of calls that is about to be answered. */
const saidTokens = (view: TurnView): number =>
  runUnits(view).fixed.reduce((sum, { tokens }) => sum + tokens, 0)

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
    attachments.files.some(({ content }) => readImage(content) !== null),
    'image',
  )
  return kinds
}

/** A high effort asks for a model that can think (EC 8.5). */
const isHard = (effort: Effort): boolean => effort === 'high' || effort === 'xhigh'

const unique = (paths: string[]): string[] => [...new Set(paths)]
