/**
 * Routing once more, slowly and from the words of the contract and the rulings alone (EC 8, 9, 10): which rule wins, which
 * model serves, or which refusal, and what goes into the prompt. It shares nothing with the router but the texts that every
 * prompt holds and the estimate of what a text costs. Paths come under the names that the project knows them by.
 */

import type { TranscriptCall, TranscriptMessage } from '../../../src/core/transcript.ts'
import type { TurnView } from '../../../src/core/turn-view.ts'
import type { RoutingRule } from '../../../src/protocol/execution/policy.ts'
import { type NaiveClassification, naiveClassify } from './naive-classify.ts'
import { diffFiles, gather, type NaiveCase, pathsOf, promptTokens, trim } from './naive-context.ts'
import { naiveGlob } from './naive-glob.ts'
import { judge, modelNamed, type Needs, refusal } from './naive-selection.ts'

export type NaiveDecision =
  | { classification: NaiveClassification; refused: string }
  | {
      classification: NaiveClassification
      rule: string | null
      overrideUsed: boolean
      attempts: NaiveAttempt[]
    }

/** The models of the route in the order in which they are tried, each after all before it have failed. */
export type NaiveAttempt =
  | { model: string; fallbackUsed: boolean; included: string[]; excluded: string[] }
  | { refused: string }

export function decideNaively(given: NaiveCase): NaiveDecision {
  const { view, nameOf } = given
  const { policy, workspace, input, attachments, local_preferences: preferences } = view.runInput
  const current = view.transcript.filter(({ runId }) => runId === view.runId)
  const calls = current.flatMap((message) => message.calls)
  const called = calls.flatMap(pathsOf).map(nameOf)
  const classification = naiveClassify({
    text: current.filter(({ role }) => role === 'user').at(-1)?.text ?? '',
    command: view.firstTurn ? (input.command ?? null) : null,
    kinds: kindsOf(view, current, calls),
    defaultIntent: policy.classification.default_intent,
    rules: policy.classification.rules,
  })
  const referenced = [
    ...workspace.referenced_paths,
    ...(workspace.active_file ? [workspace.active_file] : []),
  ].map(nameOf)
  const diff = diffFiles(workspace.git_diff ?? '')
  const paths = [
    ...referenced,
    ...diff.map(({ path }) => path),
    ...attachments.files.map(({ path }) => nameOf(path)),
    ...called,
  ]
  const explicit = input.explicit_model ?? null
  const rule = explicit === null ? winner(policy.routing.rules, classification.intent, paths) : null
  const route =
    explicit === null ? (rule ?? policy.routing.default ?? null) : { model: explicit, fallbacks: [] }
  if (route === null) return { classification, refused: 'no_route' }
  if (rule !== null && loosens(rule, policy.tools.permissions))
    return { classification, refused: 'permission_expansion' }

  const inFocus = (name: string): boolean => rule !== null && matchesAny(rule.paths, [name])
  const items = gather(given, diff, (name) => referenced.includes(name) || inFocus(name))
  const bound =
    items.some((item) => item.required && item.isPrivate) ||
    [...referenced, ...called, ...paths.filter(inFocus)].some(given.isPrivate)
  const remoteMode = policy.privacy.remote?.mode ?? 'ask'
  const restricted = bound || preferences.local_only || preferences.no_network || remoteMode === 'deny'
  const needs: Needs = {
    localOnly: restricted || view.remoteDeclined || (rule?.local_only ?? false),
    remoteOnly: policy.privacy.local?.mode === 'deny',
    capabilities: Object.entries(rule?.requires_capabilities ?? {}).flatMap(([name, wanted]) =>
      wanted ? [name] : [],
    ),
    thinks: rule?.effort === 'high' || rule?.effort === 'xhigh',
    // A turn in which tools may be called goes to a model that can call them where the route has one that serves.
    prefersTools: given.tools.some(({ executor }) => executor !== 'memory'),
    tokens:
      promptTokens(given.tools, current) +
      items.reduce((sum, item) => sum + (item.required ? item.tokens : 0), 0),
  }
  const references = [...new Set([route.model, ...route.fallbacks])]
  const attempts: NaiveAttempt[] = []
  const failed = new Set<string>()
  for (;;) {
    const known = explicit === null ? undefined : modelNamed(given, explicit)
    if (known !== undefined && !known.local && (restricted || view.remoteDeclined)) {
      // What the policy forbids is forbidden; what the user declined leaves no way (EC 13).
      attempts.push({ refused: restricted ? 'override_not_allowed' : 'no_route' })
      break
    }
    const verdicts = references
      .filter((reference) => !failed.has(reference))
      .map((reference) => ({ reference, verdict: judge(given, reference, needs) }))
    const usable = verdicts.flatMap(({ reference, verdict }) =>
      verdict.k === 'usable' ? [{ reference, model: verdict.model }] : [],
    )
    const chosen =
      (needs.prefersTools ? usable.find(({ model }) => model.capabilities.tools) : undefined) ?? usable[0]
    if (chosen === undefined) {
      attempts.push({
        refused: refusal(
          verdicts.map(({ verdict }) => verdict),
          needs,
          explicit !== null,
        ),
      })
      break
    }
    attempts.push({
      model: chosen.reference,
      fallbackUsed: chosen.reference !== route.model || attempts.length > 0,
      ...trim(given, items, chosen.model, current),
    })
    failed.add(chosen.reference)
  }
  return { classification, rule: rule?.name ?? null, overrideUsed: explicit !== null, attempts }
}

/** What is there, of the workspace and of the run's state (EC 7, D11). */
function kindsOf(
  { runInput: { workspace, attachments }, planApproved }: TurnView,
  current: readonly TranscriptMessage[],
  calls: readonly TranscriptCall[],
): string[] {
  const newest = current.at(-1)
  const latest = newest?.role === 'assistant' ? newest.calls.filter(({ result }) => result !== undefined) : []
  const changed = calls.some((call) => call.changesFiles && call.result !== undefined && !call.isError)
  const kinds: Record<string, boolean> = {
    git_diff: typeof workspace.git_diff === 'string' || changed,
    git_branch: typeof workspace.git_branch === 'string',
    active_file: typeof workspace.active_file === 'string',
    referenced_paths: workspace.referenced_paths.length > 0 || calls.flatMap(pathsOf).length > 0,
    tool_results: latest.length > 0,
    tool_error: latest.some(({ isError }) => isError),
    file_changed: changed,
    plan_approved: planApproved,
    invoked_skill: attachments.invoked_skills.length > 0,
  }
  return Object.keys(kinds).filter((kind) => kinds[kind])
}

const matchesAny = (patterns: readonly string[], paths: readonly string[]): boolean => {
  const globs = patterns.map(naiveGlob)
  if (globs.includes(null)) return false
  return globs.some((glob) => paths.some((path) => glob?.test(path)))
}

function winner(rules: readonly RoutingRule[], intent: string, paths: readonly string[]): RoutingRule | null {
  const weight = (rule: RoutingRule): number => (rule.paths.length > 0 ? 2 : 0) + (rule.intent ? 1 : 0)
  const matching = rules.filter(
    (rule) =>
      (!rule.intent || rule.intent === intent) && (rule.paths.length === 0 || matchesAny(rule.paths, paths)),
  )
  return matching.toSorted((a, b) => a.priority - b.priority || weight(b) - weight(a))[0] ?? null
}

const STRICTNESS = ['allow', 'ask', 'deny']

const loosens = (rule: RoutingRule, base: Readonly<Record<string, string>>): boolean =>
  Object.entries(rule.required_permissions?.permissions ?? {}).some(([tool, mode]) => {
    const set = base[tool]
    return set !== undefined && STRICTNESS.indexOf(mode) < STRICTNESS.indexOf(set)
  })
