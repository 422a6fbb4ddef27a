import type { StepContext } from './step.ts'
import type { CallRecord, NewCall, Write } from './writes.ts'

/** What a model said in a call, as a message of the run. */
export const saying = (
  runId: string,
  text: string,
  { provider, model, localOnly }: CallRecord,
  { newId }: StepContext,
  { calls = [], interrupted = false }: { calls?: NewCall[]; interrupted?: boolean } = {},
): Write => ({
  w: 'assistant_message',
  id: newId(),
  runId,
  text,
  provider,
  model,
  interrupted,
  ...(localOnly === undefined ? {} : { localOnly }),
  calls,
})
