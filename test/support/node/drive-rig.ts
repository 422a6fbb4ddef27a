import { afterEach, beforeEach, expect } from 'vitest'
import { SwitchyardClient } from '../../../src/client/client.ts'
import { type DriveOptions, driveRun, type RunEvent, type RunOutcome } from '../../../src/client/drive.ts'
import type { Approver, ToolRunner } from '../../../src/client/tool-runner.ts'
import { executeRequest } from './run-request.ts'
import { type ScriptedRouter, startScriptedRouter } from './scripted-router.ts'
import { SESSION } from './scripted-router-turns.ts'

export type DriveRig = { readonly router: ScriptedRouter; readonly client: SwitchyardClient }

/** A scripted router and its client, new for each test of the file. A request that was not scripted fails the test. */
export function rigRouter(): DriveRig {
  let rig: DriveRig | undefined
  beforeEach(async () => {
    const router = await startScriptedRouter()
    const backoff = { firstMs: 1, maxMs: 1, attempts: 2, openAttempts: 2 }
    rig = { router, client: new SwitchyardClient({ baseUrl: router.url, token: 'tok', backoff }) }
  })
  afterEach(async () => {
    expect(rig?.router.unexpected).toEqual([])
    await rig?.router.close()
  })
  const current = (): DriveRig => {
    if (rig === undefined) throw new Error('no test is running')
    return rig
  }
  return {
    get router() {
      return current().router
    },
    get client() {
      return current().client
    },
  }
}

export const approveAll: Approver = {
  approveTool: async () => ({ decision: 'approved' }),
  decideGate: async () => ({ decision: 'approved' }),
}

/** A runner that notes what it ran and answers with the call's name. */
export function recordingTools(): ToolRunner & { ran: string[] } {
  const ran: string[] = []
  return {
    ran,
    run: async ({ call_id, name }) => {
      ran.push(call_id)
      return { content: `${name} ran`, isError: false, summary: 'fine' }
    },
  }
}

/** Drives a run of the prompt `hi` to its end, where all is approved unless told otherwise. */
export async function driveToEnd(
  options: Partial<DriveOptions> & Pick<DriveOptions, 'client'>,
  on: (event: RunEvent) => void = () => undefined,
): Promise<{ events: RunEvent[]; outcome: RunOutcome | undefined }> {
  const events: RunEvent[] = []
  let outcome: RunOutcome | undefined
  const run = driveRun({
    sessionId: SESSION,
    request: executeRequest('hi'),
    tools: recordingTools(),
    approver: approveAll,
    ...options,
  })
  for await (const event of run) {
    events.push(event)
    if (event.type === 'run_ended') outcome = event.outcome
    on(event)
  }
  return { events, outcome }
}
