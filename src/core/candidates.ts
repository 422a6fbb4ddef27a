import type { Skill } from '../protocol/execution/execute.ts'
import { type Candidate, collapseDoubles, makeCandidate, recency, SCORE } from './context.ts'
import { type DiffPart, diffParts } from './diff-paths.ts'
import { IMAGE_TOKENS, readImage } from './image.ts'
import { recall } from './memory.ts'
import { normalisePath } from './paths.ts'
import { type Constraint, type PrivacyGuard, sayConstraint } from './privacy/guard.ts'
import { messageConstraints } from './privacy/history.ts'
import { estimateTokensOf } from './tokens.ts'
import { firstLine } from './tools.ts'
import { ANY_FILE, type TranscriptMessage } from './transcript.ts'
import type { TurnView } from './turn-view.ts'

/** The keys of the current diff: what every model may see of it, and the rest. */
export const DIFF_KEY = 'git_diff'
export const PRIVATE_DIFF_KEY = 'git_diff:private'

/** Tests of a path as the client sent it. */
export type PathTests = {
  guard: PrivacyGuard
  isReferenced(path: string): boolean
  inFocus(path: string): boolean
}

/** Of messages that stay the same object from turn to turn: a long history is not counted anew each time. */
const KNOWN_TOKENS = new WeakMap<TranscriptMessage, number>()

/** What a message costs in a prompt: its text and pictures, and a line for each of its calls with the result. */
export function messageTokens(message: TranscriptMessage): number {
  const known = KNOWN_TOKENS.get(message)
  if (known !== undefined) return known
  const words = estimateTokensOf([
    message.text,
    ...message.calls.flatMap((call) => ['\n', call.name, JSON.stringify(call.arguments), call.result ?? '']),
  ])
  const tokens = words + (message.images?.length ?? 0) * IMAGE_TOKENS
  KNOWN_TOKENS.set(message, tokens)
  return tokens
}

/**
 * Splits the current run: `fixed` is always in the prompt (what the user said, and the newest round of tool calls,
 * which the model is about to answer); the older rounds may be dropped. A call and its result stay together.
 */
export function runUnits({ transcript, runId }: TurnView): {
  fixed: { message: TranscriptMessage; tokens: number }[]
  droppable: TranscriptMessage[]
} {
  const current = transcript.filter((message) => message.runId === runId)
  const newest = current.at(-1)
  const fixed: { message: TranscriptMessage; tokens: number }[] = []
  const droppable: TranscriptMessage[] = []
  for (const message of current) {
    if (message.role === 'user' || message === newest) fixed.push({ message, tokens: messageTokens(message) })
    else droppable.push(message)
  }
  return { fixed, droppable }
}

/** Every candidate of a turn with its rank and its locality (EC 10.1, EC 9). The router ranks what it holds and looks nowhere else. */
export function gatherCandidates(view: TurnView, { guard, isReferenced, inFocus }: PathTests): Candidate[] {
  const { attachments, workspace } = view.runInput
  const candidates: Candidate[] = []
  for (const [index, file] of attachments.files.entries()) {
    const focus = isReferenced(file.path) || inFocus(file.path)
    const path = normalisePath(file.path, workspace.root)
    candidates.push(
      makeCandidate({
        key: `file:${index}`,
        kind: readImage(file.content) === null ? 'file' : 'image',
        label: file.path,
        path,
        shows: [path],
        content: file.content,
        required: file.required || focus,
        ...bound(guard.constraintOf(file.path)),
        score: SCORE.attached + (focus ? SCORE.focus : 0),
      }),
    )
  }
  for (const [index, instruction] of attachments.instructions.entries()) {
    candidates.push(
      makeCandidate({
        key: `instruction:${index}`,
        kind: 'instruction',
        label: instruction.source,
        shows: [normalisePath(instruction.source, workspace.root)],
        content: instruction.content,
        required: true,
        ...bound(guard.constraintOf(instruction.source)),
        score: SCORE.attached,
      }),
    )
  }
  for (const [index, skill] of attachments.invoked_skills.entries()) {
    candidates.push(
      makeCandidate({
        key: `invoked_skill:${index}`,
        kind: 'skill',
        label: `skill ${skill.name}`,
        shows: [normalisePath(skillPath(skill), workspace.root)],
        content: skill.content,
        required: true,
        ...bound(skillConstraint(skill, guard)),
        score: SCORE.attached,
      }),
    )
  }
  candidates.push(...diffCandidates(view, guard))
  candidates.push(...historyCandidates(view, guard))
  for (const fact of recall(view.memories).recalled) {
    candidates.push(
      makeCandidate({
        key: `${fact.scope}_memory:${fact.id}`,
        kind: 'memory',
        label: fact.key === undefined ? `${fact.scope} memory` : `memory ${fact.key}`,
        content: fact.key === undefined ? fact.content : `${fact.key}: ${fact.content}`,
        required: false,
        constrained: fact.localOnly === true,
        ...(fact.localOnly === true ? { constraint: 'it was recorded for local models' } : {}),
        score: SCORE.memory,
      }),
    )
  }
  for (const [index, skill] of attachments.available_skills.entries()) {
    candidates.push(
      makeCandidate({
        key: `available_skill:${index}`,
        kind: 'skill',
        label: `skill ${skill.name}`,
        shows: [normalisePath(skillPath(skill), workspace.root)],
        content: `${skill.name}: ${firstLine(skill.content)}`,
        required: false,
        ...bound(skillConstraint(skill, guard)),
        score: SCORE.availableSkill,
      }),
    )
  }
  return collapseDoubles(candidates)
}

const bound = (constraint: Constraint | null): Pick<Candidate, 'constrained' | 'constraint'> =>
  constraint === null ? { constrained: false } : { constrained: true, constraint: sayConstraint(constraint) }

/** A diff is judged file by file: what it shows of a constrained one is a candidate of its own. */
function diffCandidates({ runInput: { workspace } }: TurnView, guard: PrivacyGuard): Candidate[] {
  if (!workspace.git_diff) return []
  const open: DiffPart[] = []
  const withheld: { part: DiffPart; constraint: string }[] = []
  for (const part of diffParts(workspace.git_diff)) {
    const constraint = diffConstraint(part, guard)
    if (constraint === null) open.push(part)
    else withheld.push({ part, constraint })
  }
  const normalised = (paths: string[]) => unique(paths.map((path) => normalisePath(path, workspace.root)))
  // A part that names no file, or in too many ways, may be of any.
  const named = (parts: DiffPart[]): Pick<Candidate, 'shows' | 'mayShow'> => ({
    shows: parts.some(({ names }) => names.length === 0)
      ? [...normalised(parts.flatMap(({ names }) => names)), ANY_FILE]
      : normalised(parts.flatMap(({ names }) => names)),
    mayShow: parts.some(({ paths }) => paths === null)
      ? [ANY_FILE]
      : normalised(parts.flatMap(({ paths }) => paths ?? [])),
  })
  const base = { kind: 'git_diff' as const, required: false, score: SCORE.diff }
  const text = (parts: DiffPart[]) => parts.map((part) => part.text).join('\n')
  const [first] = withheld
  return [
    ...(open.length === 0
      ? []
      : [
          makeCandidate({
            ...base,
            key: DIFF_KEY,
            label: 'current git diff',
            ...named(open),
            content: text(open),
            constrained: false,
          }),
        ]),
    ...(first === undefined
      ? []
      : [
          makeCandidate({
            ...base,
            key: PRIVATE_DIFF_KEY,
            label: open.length === 0 ? 'current git diff' : 'current git diff of private files',
            ...named(withheld.map(({ part }) => part)),
            content: text(withheld.map(({ part }) => part)),
            constrained: true,
            constraint: first.constraint,
          }),
        ]),
  ]
}

function diffConstraint({ paths }: DiffPart, guard: PrivacyGuard): string | null {
  if (paths === null) return guard.constrainsSome ? 'nothing says which files it shows' : null
  for (const path of paths) {
    const constraint = guard.constraintOf(path)
    if (constraint !== null) return sayConstraint(constraint)
  }
  return null
}

/** Where a skill lies unless the client says (EC 24.4). */
const skillPath = ({ name, path }: Skill): string => path ?? `.agents/skills/${name}/SKILL.md`

/** A skill is known by the path of its file and by its name. */
export const skillConstraint = (skill: Skill, guard: PrivacyGuard): Constraint | null =>
  guard.constraintOf(skillPath(skill)) ?? guard.constraintOf(skill.name)

/** Earlier runs and the older rounds of this one, with what of them only local models may see. */
function historyCandidates(view: TurnView, guard: PrivacyGuard): Candidate[] {
  const { droppable } = runUnits(view)
  const messages = [...view.transcript.filter(({ runId }) => runId !== view.runId), ...droppable]
  const constraints = messageConstraints(view, guard)
  return messages.map((message, index) => {
    const constraint = constraints.get(message.seq)
    return makeCandidate({
      key: `message:${message.seq}`,
      kind: 'message',
      label: `${message.role} message`,
      // The text alone, which is shared: a message goes into the prompt as it stands in the transcript.
      content: message.text,
      tokens: messageTokens(message),
      required: false,
      constrained: constraint !== undefined,
      ...(constraint === undefined ? {} : { constraint }),
      score:
        SCORE.history + recency(index, messages.length) + (message.runId === view.runId ? SCORE.focus : 0),
    })
  })
}

const unique = (paths: string[]): string[] => [...new Set(paths)]
