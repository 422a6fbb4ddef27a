import { assertNever } from '../../protocol/assert.ts'
import { failure } from '../../protocol/execution/errors.ts'
import { decrypted, sealed, toolResults } from './answer-pause.ts'
import { isServing, withKeyed } from './begin.ts'
import { decide } from './decide.ts'
import type { RunInputEvent } from './inputs.ts'
import { inject, stop } from './interrupt.ts'
import type { RunState } from './state.ts'
import type { Refusal, Step, StepContext } from './step.ts'
import { recover } from './supersede.ts'

type Continuation = Extract<RunInputEvent, { type: 'continuation_received' }>

/**
 * `continue`: the admission table (EC 5.3), then one case per message. A message that does not fit the pause changes
 * nothing: the pause stays and can still be answered (EC 5.7).
 */
export function advance(before: RunState, input: Continuation, context: StepContext): Step | Refusal {
  const { digest, message } = input
  const serving = isServing(before, context.nowMs)
  const supersedes = message.type === 'inject' || message.type === 'break'
  if (serving && !supersedes) {
    return {
      refused: failure(
        'run_in_flight',
        'a turn of this session is being served; wait for it, inject, or break it',
      ),
    }
  }
  // A lock whose lease ran out is no turn any more; a superseding message ends that turn itself, unless it repeats the
  // request that the turn was started by.
  const lapsed = before.active !== null && !serving
  const expired = lapsed && (!supersedes || before.unsettled?.digest === digest) ? recover(before) : null
  const state = expired?.state ?? before
  const answered = answer(state, input, context)
  if ('refused' in answered) return answered
  const result = {
    ...answered,
    state: message.type === 'break' ? answered.state : withKeyed(answered.state, input.keyed),
  }
  if (expired === null) return result
  return {
    ...result,
    writes: [...expired.writes, ...result.writes],
    events: [...expired.events, ...result.events],
    effects: [...expired.effects, ...result.effects],
  }
}

function answer(state: RunState, input: Continuation, context: StepContext): Step | Refusal {
  const { digest, message } = input
  switch (message.type) {
    case 'break':
      return stop(state, message.data?.run_id, input, context)
    case 'inject':
      return inject(state, message.data.messages, input, context)
    case 'tool_results':
      return toolResults(state, digest, message.data.results, context)
    case 'approval_decisions':
      return decide(state, digest, message.data.decisions, context)
    case 'decrypted':
      return decrypted(state, digest, message.data.plaintext, context)
    case 'sealed':
      return sealed(state)
    default:
      return assertNever(message)
  }
}
