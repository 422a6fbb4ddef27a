import { type Candidate, collapseDoubles, makeCandidate, recency, SCORE } from './context.ts'
import { shownPaths } from './diff-paths.ts'
import { readImage } from './image.ts'
import { recall } from './memory.ts'
import { normalisePath } from './paths.ts'
import type { PrivacyGuard } from './privacy.ts'
import { estimateTokensOf } from './tokens.ts'
import { firstLine } from './tools.ts'
import { mentionedPaths, type TranscriptCall, type TranscriptMessage } from './transcript.ts'
import { pastCallsOf, type TurnView } from './turn-view.ts'

/** Tests of a path as the client sent it. */
export type PathTests = {
  guard: PrivacyGuard
  isReferenced(path: string): boolean
  inFocus(path: string): boolean
}

/** What a message costs in a prompt: its text, and a line for each of its calls with the result. */
export function messageTokens({ text, calls }: TranscriptMessage): number {
  return estimateTokensOf([
    text,
    ...calls.flatMap((call) => ['\n', call.name, JSON.stringify(call.arguments), call.result ?? '']),
  ])
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
    candidates.push(
      makeCandidate({
        key: `file:${index}`,
        kind: readImage(file.content) === null ? 'file' : 'image',
        label: file.path,
        path: normalisePath(file.path, workspace.root),
        content: file.content,
        required: file.required || focus,
        constrained: guard.isConstrained(file.path),
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
        content: instruction.content,
        required: true,
        constrained: guard.isConstrained(instruction.source),
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
        content: skill.content,
        required: true,
        constrained: false,
        score: SCORE.attached,
      }),
    )
  }
  if (workspace.git_diff) {
    candidates.push(
      makeCandidate({
        key: 'git_diff',
        kind: 'git_diff',
        label: 'current git diff',
        content: workspace.git_diff,
        required: false,
        constrained: showsConstrained(workspace.git_diff, guard),
        score: SCORE.diff,
      }),
    )
  }
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
        content: `${skill.name}: ${firstLine(skill.content)}`,
        required: false,
        constrained: false,
        score: SCORE.availableSkill,
      }),
    )
  }
  return collapseDoubles(candidates)
}

/** A diff is one piece: it is constrained if any of it is, or if nothing says what it shows. */
function showsConstrained(diff: string, guard: PrivacyGuard): boolean {
  const paths = shownPaths(diff)
  return paths === null ? guard.constrainsSome : paths.some((path) => guard.isConstrained(path))
}

/**
 * Earlier runs and the older rounds of this one. A round that touched a constrained path is constrained itself, and so is
 * what the model said after it in that run: it may repeat what it read.
 */
function historyCandidates(view: TurnView, guard: PrivacyGuard): Candidate[] {
  const { droppable } = runUnits(view)
  const messages = [...view.transcript.filter(({ runId }) => runId !== view.runId), ...droppable]
  const touches = (calls: readonly TranscriptCall[]) =>
    calls.flatMap(mentionedPaths).some((path) => guard.touchesConstrained(path))
  const touched = new Set<string>()
  const first = view.transcript[0]?.runId
  if (first !== undefined && touches(pastCallsOf(view, first))) touched.add(first)
  return messages.map((message, index) => {
    if (touches(message.calls)) touched.add(message.runId)
    return makeCandidate({
      key: `message:${message.seq}`,
      kind: 'message',
      label: `${message.role} message`,
      // The text alone, which is shared: a message goes into the prompt as it stands in the transcript.
      content: message.text,
      tokens: messageTokens(message),
      required: false,
      constrained: message.role === 'assistant' && (message.localOnly === true || touched.has(message.runId)),
      score:
        SCORE.history + recency(index, messages.length) + (message.runId === view.runId ? SCORE.focus : 0),
    })
  })
}
