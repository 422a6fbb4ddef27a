import { callsRef, messageRef, resultRef } from '../../protocol/execution/content-refs.ts'
import type { ContentRef } from '../../protocol/execution/ids.ts'
import type { Seen, TranscriptMessage } from '../transcript.ts'
import type { RunInput } from '../turn-view.ts'
import type { NewCall, Write } from './writes.ts'

/**
 * The texts of a sealed session: what stands under each reference, and how a turn gets it back from there (EC 17.2). What
 * is not among them stays clear by the contract.
 */

/** What of a run's input stays clear: policy, preferences and the paths of the workspace (EC 5.1). */
export type ClearInput = Pick<RunInput, 'policy' | 'local_preferences' | 'workspace'>

export function clearInput({ policy, local_preferences, workspace }: RunInput): ClearInput {
  const { git_diff: _, ...paths } = workspace
  return { policy, local_preferences, workspace: paths }
}

/** The sealable part of a run's input (EC 5.1). */
export function bundleOf({ input, attachments, workspace }: RunInput): string {
  return JSON.stringify({
    version: 1,
    input,
    attachments,
    ...(workspace.git_diff == null ? {} : { git_diff: workspace.git_diff }),
  })
}

/** What `bundleOf` has made. */
export const isBundle = (text: string): boolean => parseObject(text).version === 1

/** The input of a turn that starts from injected text alone (EC 15). The client can still run the tools it declared. */
export const withoutAttachments = (input: RunInput): RunInput => ({
  ...input,
  input: { text: input.input.text },
  workspace: { ...input.workspace, git_diff: null },
  attachments: {
    ...input.attachments,
    files: [],
    instructions: [],
    invoked_skills: [],
    available_skills: [],
  },
})

/** An input before it is checked against its type; `bundle` null: it was lost before anybody sealed it. */
export function joinInput(clear: ClearInput, bundle: string | null): unknown {
  const {
    input = { text: '' },
    attachments = { files: [], instructions: [] },
    git_diff,
  } = bundle === null ? {} : parseObject(bundle)
  return {
    ...clear,
    input,
    workspace: { ...clear.workspace, ...(git_diff === undefined ? {} : { git_diff }) },
    attachments,
  }
}

type AssistantMessage = Extract<Write, { w: 'assistant_message' }>

type SealedCall = Pick<NewCall, 'id' | 'arguments' | 'providerCallId' | 'opaque'> & {
  name?: string
  result?: string
}
type SealedCalls = { version: 1; calls: SealedCall[]; seen?: Seen }

/** What stands under `callsRef` of a message; null for one that says its words and nothing else. */
export function callsText({ calls, seen }: AssistantMessage): string | null {
  if (calls.length === 0 && seen === undefined) return null
  const content: SealedCalls = {
    version: 1,
    calls: calls.map(({ id, name, arguments: args, providerCallId, opaque, answer }) => ({
      id,
      name,
      arguments: args,
      ...(providerCallId === undefined ? {} : { providerCallId }),
      ...(opaque === undefined ? {} : { opaque }),
      ...(answer === undefined ? {} : { result: answer.result }),
    })),
    ...(seen === undefined ? {} : { seen }),
  }
  return JSON.stringify(content)
}

const MAX_DIFF_CHARS = 64 * 1024

/**
 * The change that a call proposes, as a diff without context: the file as it is now is the client's (EC 17.2). What a tool
 * of another kind would change is told by its arguments.
 */
export function proposedDiff({
  path,
  old,
  new: replacement,
  content,
  ...rest
}: NewCall['arguments']): string {
  const lines = (mark: string, text: unknown): string[] =>
    typeof text === 'string' && text !== '' ? text.split('\n').map((line) => mark + line) : []
  const name = typeof path === 'string' ? path : ''
  const body = [...lines('-', old), ...lines('+', replacement), ...lines('+', content)]
  const diff = [
    `--- a/${name}`,
    `+++ b/${name}`,
    ...(body.length > 0 ? body : lines('+', JSON.stringify(rest))),
  ].join('\n')
  // The whole of it is in the arguments: twice that much of a long file would not fit the request that seals it.
  return diff.length <= MAX_DIFF_CHARS
    ? diff
    : `${diff.slice(0, MAX_DIFF_CHARS)}\n(cut: the call has the rest)`
}

/** Key and content of a fact, as one text. */
export const factText = (key: string, content: string): string => JSON.stringify({ key, content })

export function parseFact(text: string): { key: string; content: string } {
  const { key, content } = parseObject(text)
  return { key: asText(key), content: asText(content) }
}

/** A message as a sealed session stores it: its texts are elsewhere. */
type Stored = TranscriptMessage & { id: string }

/** The references of everything that a turn needs of this message. */
export function messageRefs({ id, role, calls }: Stored): ContentRef[] {
  return [
    messageRef(id),
    ...(role === 'assistant' ? [callsRef(id)] : []),
    ...calls.filter(({ result }) => result === '').map((call) => resultRef(call.id)),
  ]
}

/**
 * The message with its texts. `textOf` knows every text under `messageRefs` that exists: a message without calls, and a
 * call that the router answered, have none of their own.
 */
export function openMessage<M extends Stored>(
  message: M,
  textOf: (ref: ContentRef) => string | undefined,
): M {
  const companion = message.role === 'assistant' ? textOf(callsRef(message.id)) : undefined
  const { calls, seen } = companion === undefined ? { calls: [], seen: undefined } : parseCalls(companion)
  const known = new Map(calls.map((call) => [call.id, call]))
  return {
    ...message,
    text: textOf(messageRef(message.id)) ?? '',
    ...(seen === undefined ? {} : { seen }),
    calls: message.calls.map((call) => {
      const { id, result: answer, ...opened } = known.get(call.id) ?? {}
      return {
        ...call,
        ...opened,
        ...(call.result === '' ? { result: textOf(resultRef(call.id)) ?? answer ?? '' } : {}),
      }
    }),
  }
}

/** What the client sealed it gives back; it may have become anything on the way. */
function parseCalls(text: string): Pick<SealedCalls, 'calls' | 'seen'> {
  const { calls, seen } = parseObject(text)
  return {
    calls: Array.isArray(calls) ? calls.filter(isSealedCall) : [],
    ...(isSeen(seen) ? { seen } : {}),
  }
}

const isSealedCall = (value: unknown): value is SealedCall =>
  isObject(value) &&
  typeof value.id === 'string' &&
  isObject(value.arguments) &&
  [value.name, value.providerCallId, value.result].every(isTextOrAbsent) &&
  (value.opaque === undefined || isObject(value.opaque))

const isTextOrAbsent = (value: unknown): boolean => value === undefined || typeof value === 'string'

const isSeen = (value: unknown): value is Seen =>
  isObject(value) && typeof value.under === 'string' && typeof value.root === 'string'

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : {}
  } catch {
    return {}
  }
}

const asText = (value: unknown): string => (typeof value === 'string' ? value : '')

/** The arguments of each call in a text under `callsRef`. */
export const parseCallArguments = (text: string): [string, Record<string, unknown>][] =>
  parseCalls(text).calls.map(({ id, arguments: args }) => [id, args])
