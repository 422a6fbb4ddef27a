import { jsonBytes } from '../core/run/json-bytes.ts'
import { isOver, type RunState } from '../core/run/state.ts'
import type { ContinueRequest } from '../protocol/execution/continue.ts'
import { type Failure, failure } from '../protocol/execution/errors.ts'
import {
  MAX_MESSAGES_PER_SESSION,
  MAX_RUNS_PER_SESSION,
  MAX_SEALED_BUNDLE_BYTES,
  MAX_TURNS_PER_RUN,
} from '../storage/limits.ts'
import { type Counters, runsBegun } from '../storage/session/checkpoint.ts'
import type { Sql } from '../storage/session/sql.ts'

/** A request that may make a session longer; `message` is null for an `execute`. */
export type GrowingRequest = { digest: string; message: ContinueRequest | null }

/**
 * What has to end somewhere: a session of too many messages or runs takes no more of them, and a run of too many turns
 * gets no further one (D27). What goes on can always be stopped, and what is open in a sealed session be handed in; a
 * request that is sent again after a crash was taken already.
 */
export function refuseOverfull(
  sql: Sql,
  state: RunState | null,
  counters: Counters,
  { digest, message }: GrowingRequest,
): Failure | null {
  if (state?.unsettled?.digest === digest) return null
  const injects = message?.type === 'inject'
  const beginsRun = message === null || (injects && (state === null || isOver(state)))
  if ((beginsRun || injects) && counters.message >= MAX_MESSAGES_PER_SESSION) {
    return failure(
      'invalid_request',
      `this session has ${counters.message} messages, and no more are taken; go on in a new one`,
      { max_messages: MAX_MESSAGES_PER_SESSION },
    )
  }
  if (beginsRun) {
    if (runsBegun(sql, counters) < MAX_RUNS_PER_SESSION) return null
    return failure(
      'invalid_request',
      `this session has had ${MAX_RUNS_PER_SESSION} runs, and no more are taken; go on in a new one`,
      { max_runs: MAX_RUNS_PER_SESSION },
    )
  }
  if ((injects || message?.type === 'tool_results') && state !== null && state.turn >= MAX_TURNS_PER_RUN) {
    return failure(
      'invalid_request',
      `this run has had ${state.turn} turns, and gets no more; stop it with \`break\` and go on with a new prompt`,
      { max_turns: MAX_TURNS_PER_RUN },
    )
  }
  return null
}

/**
 * Refuses what a run of a sealed session is to be started with when it is too long to be opened again in each turn
 * (D27); null when it is not. `bundleText` is the text behind the ref `run_input`; the prompt stands in it, and is a
 * message of its own as well. Both are weighed as they travel, as JSON.
 */
export function refuseLargeBundle(bundleText: string, prompt: string): Failure | null {
  const bytes = jsonBytes(bundleText) + jsonBytes(prompt)
  if (bytes <= MAX_SEALED_BUNDLE_BYTES) return null
  return failure(
    'invalid_request',
    `in an encrypted session, prompt, attachments and diff of a run may take ${MAX_SEALED_BUNDLE_BYTES} bytes in all; attach less`,
    { bytes, max_bytes: MAX_SEALED_BUNDLE_BYTES },
  )
}
