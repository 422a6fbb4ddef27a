import type { RunResponse } from '../../protocol/execution/turn.ts'
import type { Paint } from '../paint.ts'
import { labelled } from './lines.ts'

const ASKED: Readonly<Record<string, string>> = {
  remote_disclosure: 'a disclosure',
  cost_limit: 'a cost above the limit',
  plan: 'a plan',
}

/** Where the latest run stands, if it is not simply over: a turn that was refused has no trace to tell of it. */
export function standingText(run: RunResponse, paint: Paint): string {
  const line = sayStanding(run)
  return line === null ? '' : `\n${paint.bold('Now')}\n${labelled('run', [line], paint.dim)}`
}

function sayStanding(run: RunResponse): string | null {
  switch (run.status) {
    case 'error':
      return `it failed with ${run.data.error.code}: ${run.data.error.message}`
    case 'running':
      return 'a turn is being served'
    case 'awaiting_tool':
      return `it waits for the results of ${run.data.tool_requests.map(({ name }) => name).join(', ')}`
    case 'awaiting_approval': {
      const { kind, detail } = run.data.approval
      const of = typeof detail?.provider === 'string' ? ` (${detail.provider}/${detail.model})` : ''
      return `it waits for a decision on ${ASKED[kind] ?? kind}${of}`
    }
    case 'awaiting_decrypt':
    case 'awaiting_encrypt':
      return 'it waits for its client, which has the key'
    default:
      return null
  }
}
