import type { ContextExclusion, ContextOutcome } from '../protocol/execution/turn.ts'
import { IMAGE_TOKENS } from './image.ts'
import { estimateTokens } from './tokens.ts'

export type CandidateKind = 'file' | 'instruction' | 'skill' | 'git_diff' | 'message' | 'memory' | 'image'

/** One piece of context that may go into a prompt. */
export type Candidate = {
  /** Where the content is found again; unique within a turn. */
  key: string
  kind: CandidateKind
  /** What reports show; never content. */
  label: string
  path?: string
  content: string
  required: boolean
  /** May only be shown to local models (EC 9). */
  constrained: boolean
  /** What makes it so, for reports: a path and the pattern that it matches. */
  constraint?: string
  /** The files whose content it shows, for telling. */
  shows?: readonly string[]
  /** Besides them every other reading of what names them, for judging by a later policy. */
  mayShow?: readonly string[]
  score: number
  tokens: number
}

export type Verdict = { candidate: Candidate; included: boolean; reason: string }

/** Base scores by source: what is kept first when the window is short (EC 10.1). */
export const SCORE = {
  attached: 5000,
  diff: 4000,
  history: 3000,
  memory: 2000,
  availableSkill: 1000,
  focus: 500,
} as const
/** How much the newest history message gains over the oldest (EC 10.1). */
const RECENCY_SPAN = 499

export const recency = (index: number, count: number): number =>
  count <= 1 ? 0 : Math.floor((index * RECENCY_SPAN) / (count - 1))

/** `tokens`: where the content alone does not tell them. */
export function makeCandidate(fields: Omit<Candidate, 'tokens'> & { tokens?: number }): Candidate {
  const { tokens = fields.kind === 'image' ? IMAGE_TOKENS : estimateTokens(fields.content) } = fields
  return { ...fields, tokens }
}

/** Collapses doubles: same path, or without a path same content. The required or higher-scored copy stays, in the first one's place (EC 10.1). */
export function collapseDoubles(candidates: readonly Candidate[]): Candidate[] {
  const kept = new Map<string, Candidate>()
  for (const candidate of candidates) {
    const key =
      candidate.kind === 'message'
        ? candidate.key
        : candidate.path === undefined
          ? `content:${candidate.kind}:${candidate.content}`
          : `path:${candidate.path}`
    const known = kept.get(key)
    if (!known) kept.set(key, candidate)
    else {
      const better =
        candidate.required !== known.required ? candidate.required : candidate.score > known.score
      const winner = better ? candidate : known
      const constraint = candidate.constraint ?? known.constraint
      kept.set(key, {
        ...winner,
        constrained: candidate.constrained || known.constrained,
        ...(constraint === undefined ? {} : { constraint }),
      })
    }
  }
  return [...kept.values()]
}

/**
 * Decides what goes in. Required candidates always do; on a remote model discardable constrained ones never, nor a
 * picture on a model that sees none; the rest in descending score as long as each fits (first-fit, EC 10.3).
 */
export function selectContext(
  candidates: readonly Candidate[],
  { budgetTokens, local, images }: { budgetTokens: number; local: boolean; images: boolean },
): Verdict[] {
  let left = budgetTokens - candidates.reduce((sum, { required, tokens }) => sum + (required ? tokens : 0), 0)
  const verdicts = new Map<string, Verdict>()
  for (const candidate of candidates) {
    if (candidate.required) verdicts.set(candidate.key, { candidate, included: true, reason: 'required' })
    else if (candidate.constrained && !local) {
      verdicts.set(candidate.key, { candidate, included: false, reason: onlyLocal(candidate) })
    } else if (candidate.kind === 'image' && !images) {
      verdicts.set(candidate.key, { candidate, included: false, reason: 'this model sees no pictures' })
    }
  }
  const discardable = candidates
    .filter(({ key }) => !verdicts.has(key))
    .map((candidate, index) => ({ candidate, index }))
    .sort((a, b) => b.candidate.score - a.candidate.score || a.index - b.index)
  for (const { candidate } of discardable) {
    const included = candidate.tokens <= left
    if (included) left -= candidate.tokens
    verdicts.set(candidate.key, {
      candidate,
      included,
      reason: included ? 'relevant and fits the window' : 'does not fit the window',
    })
  }
  return candidates.flatMap(({ key }) => verdicts.get(key) ?? [])
}

const onlyLocal = ({ constraint }: Candidate): string =>
  constraint === undefined ? 'only local models may see it' : `only local models may see it: ${constraint}`

/**
 * The labels of what went in and what did not, with the reasons (EC 10.4). Messages are one label with a count, or two
 * where some of them are withheld for one reason; so are older facts. `shortened`: tools whose result is shown in part.
 */
export function contextOutcome(
  verdicts: readonly Verdict[],
  olderMessages: number,
  olderFacts = 0,
  shortened: readonly string[] = [],
): ContextOutcome {
  const named = verdicts.filter(({ candidate }) => candidate.kind !== 'message')
  const messages = verdicts.filter(({ candidate }) => candidate.kind === 'message')
  const kept = messages.filter(({ included }) => included).length
  const withheld = messages.filter(
    ({ candidate, included, reason }) => !included && reason === onlyLocal(candidate),
  )
  const unfit = messages.length - kept - withheld.length + olderMessages
  const exclusions: ContextExclusion[] = [
    ...named
      .filter(({ included }) => !included)
      .map(({ candidate, reason }) => ({ item: candidate.label, reason })),
    ...byReason(withheld).map(({ count, reason }) => ({
      item: `${earlier(count)} (only local models may see ${count === 1 ? 'it' : 'them'})`,
      reason,
    })),
    ...(unfit === 0 ? [] : [{ item: earlier(unfit), reason: 'too long ago, or too long for the window' }]),
    ...(olderFacts === 0
      ? []
      : [
          {
            item: olderFacts === 1 ? '1 older fact' : `${olderFacts} older facts`,
            reason: 'newer facts come first',
          },
        ]),
    ...shortened.map((tool) => ({
      item: `the middle of what ${tool} gave`,
      reason: 'too long for the window',
    })),
  ]
  return {
    included: [
      ...named.filter(({ included }) => included).map(({ candidate }) => candidate.label),
      ...(kept === 0 ? [] : [earlier(kept)]),
    ],
    excluded: exclusions.map(({ item }) => item),
    ...(exclusions.length === 0 ? {} : { exclusions }),
  }
}

/** So many reasons are told apart. */
const MAX_REASONS = 10

/** How many were withheld for each reason; the last one stands for further ones, too. */
function byReason(withheld: readonly Verdict[]): { count: number; reason: string }[] {
  const counts = new Map<string, number>()
  for (const { reason } of withheld) {
    const told = counts.has(reason) || counts.size < MAX_REASONS ? reason : 'for other such reasons'
    counts.set(told, (counts.get(told) ?? 0) + 1)
  }
  return [...counts].map(([reason, count]) => ({ count, reason }))
}

const earlier = (count: number): string => (count === 1 ? '1 earlier message' : `${count} earlier messages`)

/** A block of a prompt with its heading. */
export const contextBlock = (heading: string, content: string): string => `# ${heading}\n${content}`
