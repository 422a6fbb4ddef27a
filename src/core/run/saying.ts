import type { Payload } from '../../protocol/execution/trace.ts'
import type { StepContext } from './step.ts'
import type { CallRecord, NewCall, Write } from './writes.ts'

/** What a model said in a call, as a message of the run. */
export const saying = (
  runId: string,
  text: string,
  { provider, model, localOnly, seen, clock }: CallRecord,
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
  ...(seen === undefined ? {} : { seen }),
  ...(clock === undefined ? {} : { clock }),
  calls,
})

/** How the trace tells of it: who spoke, never what was said (EC 19). */
export const saidBy = ({ provider, model }: CallRecord): Payload => ({
  type: 'message',
  role: 'assistant',
  provider,
  model,
})
