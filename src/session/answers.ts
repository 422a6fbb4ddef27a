import { closingEvents, replayEvents } from '../core/turn-events.ts'
import {
  type ApiErrorBody,
  ERROR_STATUS,
  type ErrorCode,
  type Failure,
  failure,
} from '../protocol/execution/errors.ts'
import type { TurnResponse } from '../protocol/execution/turn.ts'
import type { TurnAnswer } from './rpc.ts'
import { type Ending, eventStream } from './turn-channel.ts'

/** A buffered answer. A failed run is an HTTP error, and so is a request that another one superseded (EC 2.11, 15). */
export function endingAnswer(ending: Ending): TurnAnswer {
  if (ending.k === 'superseded') {
    return {
      kind: 'failure',
      failure: failure('run_in_flight', 'this turn was superseded by another request'),
    }
  }
  const { outcome } = ending
  if (outcome.status === 'error') return { kind: 'failure', failure: toFailure(outcome.data.error) }
  return { kind: 'json', body: outcome }
}

/** An outcome that is stored: as JSON, or replayed as a short stream, or as the end of one (D19, D20). */
export function outcomeAnswer(
  turnId: string,
  outcome: TurnResponse,
  { stream, endOnly }: { stream: boolean; endOnly: boolean },
): TurnAnswer {
  if (!stream) return endingAnswer({ k: 'outcome', outcome })
  const events = endOnly ? closingEvents(outcome).slice(-1) : replayEvents(outcome)
  return { kind: 'stream', stream: eventStream(turnId, events) }
}

/** Back from the wire form, which was made from one of our failures. */
function toFailure({ code, message, details }: ApiErrorBody): Failure {
  const known: ErrorCode = Object.hasOwn(ERROR_STATUS, code) ? (code as ErrorCode) : 'internal_error'
  return failure(known, message, details ?? undefined)
}
