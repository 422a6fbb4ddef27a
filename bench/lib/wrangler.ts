import { execFile } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import { ROOT, WRANGLER } from './repository.ts'

const execute = promisify(execFile)

/** Room for what a build prints. */
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024

/** Runs wrangler to its end, on the Node that runs the bench, asking nothing of any network; rejects when it fails. */
export async function wrangler(...args: string[]): Promise<string> {
  const { stdout, stderr } = await execute(process.execPath, [WRANGLER, ...args], {
    cwd: ROOT,
    maxBuffer: MAX_OUTPUT_BYTES,
    env: {
      ...process.env,
      WRANGLER_SEND_METRICS: 'false',
      WRANGLER_SEND_ERROR_REPORTS: 'false',
      WRANGLER_HIDE_BANNER: 'true',
      WRANGLER_LOG_PATH: path.join(ROOT, '.wrangler/logs'),
      NO_COLOR: '1',
    },
  })
  return stdout + stderr
}
