import { ok, type Result } from '../../protocol/result.ts'
import { type Refusal, refuse } from './refusal.ts'

export type PromptOperation = 'submit_prompt' | 'steer' | 'queue'

/** What becomes of a prompt that is taken (remote protocol, "Operations"). */
export type Disposition = 'started' | 'queued' | 'steered'

/** How a session stands when a prompt comes. */
export type PromptStanding = {
  /** The run is over, or there was none yet. */
  isOver: boolean
  /** Prompts that wait for their turn. */
  queued: number
  /** A turn is being served, and nothing of it waits for a decision. */
  canSteer: boolean
}

/**
 * The words of a prompt: trimmed, and never a command. It is looked at before anything else is: what is no prompt is none
 * in a busy session either (RF 16).
 */
export function readPrompt(prompt: string): Result<string, Refusal> {
  const text = prompt.trim()
  if (text === '') return refuse('invalid_request', 'the prompt is empty')
  if (text.startsWith('/'))
    return refuse(
      'unsupported_operation',
      'a prompt that begins with / is not sent to the model; use execute_command for a command',
    )
  return ok(text)
}

/** The table of RF 16. An idle session has neither a run that goes on nor prompts that wait. */
export function dispositionOf(
  operation: PromptOperation,
  { isOver, queued, canSteer }: PromptStanding,
): Result<Disposition, Refusal> {
  const isIdle = isOver && queued === 0
  if (operation === 'submit_prompt')
    return isIdle
      ? ok('started')
      : refuse('busy', 'the session is at work; queue the prompt, or steer what is going on')
  if (isIdle) return refuse('not_running', 'nothing is going on in the session; submit the prompt instead')
  if (operation === 'queue') return ok('queued')
  return canSteer
    ? ok('steered')
    : refuse('unsupported_operation', 'the turn takes no new words at this moment; queue the prompt instead')
}
