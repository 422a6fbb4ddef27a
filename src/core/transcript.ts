import type { Provider } from '../protocol/execution/ids.ts'

/** A tool call as it is kept: always with the assistant message that made it. */
export type TranscriptCall = {
  /** The router's own id, unique per session (U24). */
  id: string
  providerCallId?: string
  name: string
  arguments: Record<string, unknown>
  /** Absent while the call waits for its result. */
  result?: string
  isError: boolean
  changesFiles: boolean
  opaque?: Record<string, unknown>
}

/** One message of the session with the calls it made, in order. */
export type TranscriptMessage = {
  seq: number
  role: 'user' | 'assistant'
  text: string
  runId: string
  /** Who wrote an assistant message. */
  provider?: Provider
  model?: string
  interrupted: boolean
  calls: TranscriptCall[]
}

/** A remembered fact. */
export type MemoryFact = { scope: 'user' | 'session'; key?: string; content: string }
