import { createParser } from 'eventsource-parser'
import { z } from 'zod'
import { TurnEvent } from '../protocol/execution/stream.ts'
import { err, ok, type Result } from '../protocol/result.ts'

/** A server-sent event of a turn with the id that a resumption names. */
export type IdentifiedEvent = { id: string | undefined; event: TurnEvent }

/** Why reading stopped without a `turn_end`. Lost connections can be resumed; a malformed event cannot. */
export type StreamBreak = { kind: 'lost'; message: string } | { kind: 'malformed'; message: string }

const KNOWN_TYPES: ReadonlySet<string> = new Set([
  'text_delta',
  'reasoning_delta',
  'tool_call_started',
  'tool_call_requested',
  'usage',
  'turn_end',
])
const Tagged = z.object({ type: z.string() })

/** A router that keeps alive does so every 15 s (D19); three missed ones mean that nobody is there any more. */
export const SILENCE_MS = 45_000
/** The largest event is a turn_end with its calls: far below the router's 10 MiB body limit. */
const MAX_EVENT_CHARS = 32 * 1024 * 1024

/**
 * Reads the events of one connection, however the bytes are split, up to and including `turn_end`. Unknown event
 * types are skipped (EC 29.8). The return value says why it stopped early, or is undefined after `turn_end`.
 */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  silenceMs: number = SILENCE_MS,
): AsyncGenerator<IdentifiedEvent, StreamBreak | undefined, undefined> {
  const arrived: { id: string | undefined; data: string }[] = []
  let keepsAlive = false
  let overflow = false
  const parser = createParser({
    onEvent: ({ id, data }) => {
      // Ids exist only where resumption does, and there comments come, too.
      if (id !== undefined) keepsAlive = true
      arrived.push({ id, data })
    },
    onComment: () => {
      keepsAlive = true
    },
    onError: ({ type }) => {
      if (type === 'max-buffer-size-exceeded') overflow = true
    },
    maxBufferSize: MAX_EVENT_CHARS,
  })
  const decoder = new TextDecoder()
  const reader = body.getReader()
  try {
    for (;;) {
      const chunk = await readChunk(reader, keepsAlive ? silenceMs : undefined)
      if (!chunk.ok) return { kind: 'lost', message: chunk.error }
      if (chunk.value === undefined) return { kind: 'lost', message: 'the stream ended without turn_end' }
      parser.feed(decoder.decode(chunk.value, { stream: true }))
      if (overflow) return { kind: 'malformed', message: 'an event of the stream is too large' }
      for (const { id, data } of arrived.splice(0)) {
        const parsed = parseEvent(data)
        if (!parsed.ok) return { kind: 'malformed', message: parsed.error }
        if (parsed.value === undefined) continue
        yield { id, event: parsed.value }
        if (parsed.value.type === 'turn_end') return undefined
      }
    }
  } finally {
    // Also when the consumer stops early: the connection must not stay open behind its back.
    reader.cancel().catch(() => undefined)
  }
}

/** @returns undefined for an event type that this version does not know */
function parseEvent(data: string): Result<TurnEvent | undefined, string> {
  let body: unknown
  try {
    body = JSON.parse(data)
  } catch {
    return err('an event of the stream is not JSON')
  }
  const tagged = Tagged.safeParse(body)
  if (!tagged.success) return err('an event of the stream has no type')
  if (!KNOWN_TYPES.has(tagged.data.type)) return ok(undefined)
  const parsed = TurnEvent.safeParse(body)
  return parsed.success
    ? ok(parsed.data)
    : err(`a ${tagged.data.type} event does not have the promised shape`)
}

/** @returns undefined at the end of the body; an error when it broke or stayed silent for `silenceMs` */
async function readChunk(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  silenceMs: number | undefined,
): Promise<Result<Uint8Array | undefined, string>> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const silence = new Promise<'silent'>((resolve) => {
    if (silenceMs !== undefined) timer = setTimeout(() => resolve('silent'), silenceMs)
  })
  try {
    const read = await Promise.race([reader.read(), silence])
    if (read === 'silent') return err('nothing was heard from the router')
    return ok(read.done ? undefined : read.value)
  } catch (error) {
    return err(error instanceof Error ? error.message : 'the connection broke')
  } finally {
    if (timer !== undefined) clearTimeout(timer)
  }
}
