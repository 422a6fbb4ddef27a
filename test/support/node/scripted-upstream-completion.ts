import type { ScriptedAnswer } from './scripted-upstream.ts'

/** One call of a scripted answer. */
export type ScriptedCall = {
  id?: string
  name: string
  arguments: Record<string, unknown>
  /** The provider's proof that this call is its own, where the dialect signs calls. */
  signature?: string
  /**
   * How the arguments travel in dialects that split them: in three deltas (default), only with the event that ends the
   * call, or not at all, as some models call a tool that takes no arguments.
   */
  travel?: 'thirds' | 'last' | 'absent'
}

/**
 * Token counts in the router's meaning: `input` is the whole prompt with what the cache gave (`cached`) and took
 * (`cacheWrite`), `output` is everything generated with `reasoning`. Each dialect tells them in its own way.
 */
export type ScriptedUsage = {
  input: number
  output: number
  cached?: number
  cacheWrite?: number
  reasoning?: number
}

/** One completion, to be told in any dialect. */
export type ScriptedCompletion = {
  reasoning?: string[]
  /** Proof of the reasoning, where the dialect signs or seals it. */
  signature?: string
  /** Reasoning that the provider shows to nobody, where the dialect has that. */
  redacted?: string
  text?: string[]
  calls?: ScriptedCall[]
  /** `overflow`: the window was full before the answer was complete. */
  finish?: 'stop' | 'length' | 'tool_calls' | 'refused' | 'overflow'
  usage?: ScriptedUsage
}

export const finishOf = ({ finish, calls }: ScriptedCompletion) =>
  finish ?? (calls?.length ? 'tool_calls' : 'stop')

/** Reasons for which a provider refuses a request with an HTTP status. */
export type Refusal =
  | 'bad_key'
  | 'rate_limited'
  | 'out_of_credit'
  | 'server_error'
  | 'overloaded'
  | 'too_long'
  | 'unknown_model'

/** How long each dialect's rate limit asks to wait. */
export const RETRY_AFTER_S = 7

/** One wire dialect: the same completion as a stream and in one piece, and the ways in which it refuses. */
export type ScriptedDialect = {
  /** The pieces of a stream, each a whole event with what separates it from the next. */
  frames(completion: ScriptedCompletion): string[]
  /** Whether the answer is complete once this piece has come. */
  completes(frame: string): boolean
  contentType: string
  buffered(completion: ScriptedCompletion): ScriptedAnswer
  /** Undefined for a refusal that this provider does not know. */
  refusal(reason: Refusal): ScriptedAnswer | undefined
  /** An error that comes in the middle of a stream. */
  errorFrame(message: string): string
  /** A piece of a stream that is not JSON. */
  garbageFrame: string
}

export const streamedAnswer = (
  dialect: Pick<ScriptedDialect, 'frames' | 'contentType'>,
  completion: ScriptedCompletion,
): ScriptedAnswer => ({
  headers: { 'content-type': dialect.contentType },
  body: dialect.frames(completion).join(''),
})

export const jsonAnswer = (
  body: unknown,
  { status, headers = {} }: { status?: number; headers?: Record<string, string> } = {},
): ScriptedAnswer => ({
  ...(status === undefined ? {} : { status }),
  headers: { 'content-type': 'application/json; charset=utf-8', ...headers },
  body: JSON.stringify(body),
})

/** The deltas in which the arguments of a call travel; one that comes `last` or is `absent` has none. */
export function argumentDeltas({ arguments: args, travel = 'thirds' }: ScriptedCall): string[] {
  if (travel !== 'thirds') return []
  const json = JSON.stringify(args)
  const third = Math.ceil(json.length / 3)
  return [json.slice(0, third), json.slice(third, 2 * third), json.slice(2 * third)].filter(
    (part) => part !== '',
  )
}

/** The whole text of a call's arguments, as it stands where a dialect repeats it. */
export const argumentText = ({ arguments: args, travel }: ScriptedCall): string =>
  travel === 'absent' ? '' : JSON.stringify(args)

/** A server-sent event with its name. */
export const namedEvent = (data: { type: string } & Record<string, unknown>): string =>
  `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`

/** A server-sent event without one. */
export const dataEvent = (data: unknown): string =>
  `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`

/** The pieces of a streamed answer up to its first text. */
export function piecesUntil(dialect: Pick<ScriptedDialect, 'frames'>, text: string): string[] {
  const frames = dialect.frames({ text: [text] })
  return frames.slice(0, frames.findIndex((frame) => frame.includes(JSON.stringify(text))) + 1)
}
