import { createTestHarness } from 'wrangler'
import { RouterProcess } from '../node/router-process.ts'
import type { GatewayRouter } from './gateway-home.ts'

const ROOT = new URL('../../..', import.meta.url).pathname

/** A local router without a limit on requests, so that a test alone decides what is refused. */
const VARS = { LOCAL_DEV: '1', RATE_LIMIT_BURST: '0' }

export type ServedRouter = GatewayRouter & { close(): Promise<void>; log(): string }

/**
 * A router in wrangler's own harness, on a real port. `hibernating`: before each frame of a device and each call of an
 * owner the gateway's object is put to sleep with its sockets open, so that nothing it keeps in memory survives.
 */
export async function serveInHarness({
  hibernating,
  vars = {},
}: {
  hibernating: boolean
  vars?: Readonly<Record<string, string>>
}): Promise<ServedRouter> {
  const harness = createTestHarness({
    root: ROOT,
    workers: [{ configPath: './wrangler.toml', vars: { ...VARS, ...vars } }],
  })
  const { url } = await harness.listen()
  const worker = harness.getWorker()
  await worker.applyD1Migrations('DB')
  return {
    url: url.origin,
    before: async (name) => {
      if (!hibernating) return
      await worker
        .evictDurableObject('Gateway', { name, webSockets: 'hibernate' })
        .catch((error: unknown) => {
          // One that sleeps already is as good.
          if (!String(error).includes('not currently running')) throw error
        })
    },
    close: () => harness.close(),
    log: () => JSON.stringify(harness.getLogs()),
  }
}

/** A router as `npm run dev` starts it. */
export async function serveInProcess(
  persistTo: string,
  vars: Readonly<Record<string, string>> = {},
): Promise<ServedRouter & { process: RouterProcess }> {
  const process = await RouterProcess.start({ persistTo, vars: { RATE_LIMIT_BURST: '0', ...vars } })
  return {
    url: process.url,
    before: async () => {},
    close: () => process.stop(),
    log: () => process.log,
    process,
  }
}
