import type { ContinueKind } from '../../protocol/execution/continue.ts'
import { failure } from '../../protocol/execution/errors.ts'
import type { RunPhase } from './state.ts'
import type { Refusal } from './step.ts'

export const refuse = (message: string, details?: Record<string, unknown>): Refusal => ({
  refused: failure('invalid_request', message, details),
})

export const doesNotFit = (kind: ContinueKind, phase: RunPhase): Refusal =>
  refuse(
    phase.k === 'Idle'
      ? `nothing is waiting for ${kind}: the run is idle`
      : `${kind} does not answer the current pause, ${phase.k}`,
    { phase: phase.k },
  )
