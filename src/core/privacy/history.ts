import { spell } from '../paths.ts'
import { ANY_FILE, type Seen, type TranscriptCall, type TranscriptMessage } from '../transcript.ts'
import { pastCallsOf, type TurnView } from '../turn-view.ts'
import { type PrivacyGuard, sayConstraint } from './guard.ts'
import { formatRanges, parseRanges } from './seq-ranges.ts'

/** More files than this are not told one by one: any file may then be among them. */
const MAX_SEEN_FILES = 500

const SAID_IN_BOUND_TURN = 'what was said there was kept with local models'
const UNNAMED_FILES = 'its prompt held files that nothing names'
const TOO_LONG_AGO = 'it builds on what is too long ago to be held against the policy of now'

/**
 * Which messages only local models may see, by `seq`, and why (U37). A call that touches a constrained path marks its
 * message and what the model says after it in that run: it may repeat what it read. What was marked when it was said stays
 * marked, the user's words included. An answer that was judged by another policy is judged again by the policy of now: by
 * the files that its prompt held, and by the messages that were in it. Where that cannot be known any more, it fails closed.
 */
export function messageConstraints(view: TurnView, guard: PrivacyGuard): Map<number, string> {
  const constraints = new Map<number, string>()
  const touched = new Map<string, string>()
  const { transcript, olderMessages } = view
  const first = transcript[0]?.runId
  if (first !== undefined) touch(touched, first, callsConstraint(pastCallsOf(view, first), guard))
  const oldest = oldestWithoutGap(transcript)
  for (const message of transcript) {
    if (message.role === 'assistant') {
      touch(touched, message.runId, callsConstraint(message.calls, guard, foreignRoot(message, view)))
      const { seen } = message
      if (guard.constrainsSome && seen !== undefined && seen.under !== guard.key) {
        const beginsBefore = olderMessages > 0 && message.runId === first
        touch(
          touched,
          message.runId,
          beginsBefore ? TOO_LONG_AGO : seenConstraint(seen, guard, constraints, oldest),
        )
      }
    }
    const found = message.role === 'assistant' ? touched.get(message.runId) : undefined
    const constraint = found ?? (message.localOnly === true ? SAID_IN_BOUND_TURN : undefined)
    if (constraint !== undefined) constraints.set(message.seq, constraint)
  }
  return constraints
}

function touch(touched: Map<string, string>, runId: string, constraint: string | null): void {
  if (constraint !== null && !touched.has(runId)) touched.set(runId, constraint)
}

/** What was found out about calls that have their results, while they stay the same objects from turn to turn. */
const KNOWN_CALLS = new WeakMap<TranscriptCall, { under: string; constraint: string | null }>()

/**
 * What the first of these calls that touches a constrained path touches.
 * @param root of the workspace that they were made in, where that is another one than the guard's
 */
export function callsConstraint(
  calls: readonly TranscriptCall[],
  guard: PrivacyGuard,
  root: string | null = null,
): string | null {
  const under = root === null ? guard.key : `${guard.key} ${root}`
  for (const call of calls) {
    const known = KNOWN_CALLS.get(call)
    const constraint = known?.under === under ? known.constraint : callConstraint(call, guard, root, under)
    if (constraint !== null) return constraint
  }
  return null
}

/** The workspace of an answer, if the current run has another. */
const foreignRoot = ({ seen }: TranscriptMessage, { runInput }: TurnView): string | null =>
  seen === undefined || seen.root === runInput.workspace.root ? null : seen.root

function callConstraint(
  call: TranscriptCall,
  guard: PrivacyGuard,
  root: string | null,
  under: string,
): string | null {
  // Of another workspace the call names files as if it had gone there first.
  const { cwd, ...rest } = call.arguments
  const there = typeof cwd === 'string' ? `${root}/${cwd}` : root
  const found =
    guard.constraintOfCall(call) ??
    (root === null ? null : guard.constraintOfCall({ ...call, arguments: { ...rest, cwd: there } }))
  const constraint = found === null ? null : sayConstraint(found)
  if (call.result !== undefined) KNOWN_CALLS.set(call, { under, constraint })
  return constraint
}

function seenConstraint(
  { files = [], readings = [], messages = '' }: Seen,
  guard: PrivacyGuard,
  constraints: ReadonlyMap<number, string>,
  oldest: number,
): string | null {
  for (const path of [...files, ...readings]) {
    if (path === ANY_FILE) return UNNAMED_FILES
    const constraint = guard.constraintOf(path)
    if (constraint !== null) return sayConstraint(constraint)
  }
  const ranges = parseRanges(messages)
  for (const [seq, constraint] of constraints) {
    if (ranges.some(([from, to]) => from <= seq && seq <= to)) return constraint
  }
  return ranges.some(([from]) => from < oldest) ? TOO_LONG_AGO : null
}

/** From here on the transcript has no gap. */
function oldestWithoutGap(transcript: readonly TranscriptMessage[]): number {
  let oldest = transcript.at(-1)?.seq ?? 0
  for (const { seq } of transcript.toReversed()) {
    if (seq < oldest - 1) break
    oldest = seq
  }
  return oldest
}

/** A path as it is known in every workspace. */
const fromAnywhere = (path: string, root: string): string =>
  path === ANY_FILE ? path : (spell(path, root).absolute ?? path)

/**
 * What a prompt of these messages holds, beyond what earlier answers of its run tell. `shown`: files that its context
 * shows; `read`: other readings of what names them; `included`: whether a message of the transcript is in it.
 */
export function seenIn(
  { transcript, runId, runInput }: TurnView,
  guard: PrivacyGuard,
  shown: readonly string[],
  included: (message: TranscriptMessage) => boolean,
  read: readonly string[] = [],
): Seen {
  const toldFiles = new Set<string>()
  const toldMessages: [number, number][] = []
  for (const message of transcript) {
    if (message.runId !== runId || message.seen?.under !== guard.key) continue
    for (const file of [...(message.seen.files ?? []), ...(message.seen.readings ?? [])]) toldFiles.add(file)
    toldMessages.push(...parseRanges(message.seen.messages ?? ''))
  }
  const isTold = (seq: number) => toldMessages.some(([from, to]) => from <= seq && seq <= to)
  const { root } = runInput.workspace
  const fresh = (paths: readonly string[]): string[] => {
    if (toldFiles.has(ANY_FILE)) return []
    const kept = [...new Set(paths.map((path) => fromAnywhere(path, root)))].filter(
      (path) => !toldFiles.has(path),
    )
    return kept.length > MAX_SEEN_FILES ? [ANY_FILE] : kept
  }
  const files = fresh(shown)
  const readings = fresh(read).filter((path) => !files.includes(path))
  const messages = transcript.filter((message) => included(message) && !isTold(message.seq))
  return {
    under: guard.key,
    root,
    ...(files.length === 0 ? {} : { files }),
    ...(readings.length === 0 ? {} : { readings }),
    ...(messages.length === 0 ? {} : { messages: formatRanges(messages.map(({ seq }) => seq)) }),
  }
}
