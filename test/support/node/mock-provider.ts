import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { freePort } from './free-port.ts'

const ROOT = path.resolve(import.meta.dirname, '../../..')
const MOCK = path.join(ROOT, 'node_modules/@copilotkit/aimock/dist/cli.js')
/** Ends the mock if the test process dies without a word. */
const DIE_WITH_PARENT = path.join(ROOT, 'scripts/lib-node/die-with-parent.mjs')
const START_DEADLINE_MS = 20_000
const POLL_MS = 50

/** What the mock matches and answers, in its own format: the first match wins. */
export type MockFixture = {
  match: { userMessage?: string; hasToolResult?: boolean; model?: string }
  response: Record<string, unknown>
  /** Between two pieces of a stream. Without it a truncated answer is an empty one. */
  latency?: number
  chunkSize?: number
  truncateAfterChunks?: number
}

/**
 * All providers at once, in one process that is none of ours: whoever wrote it had no part in our adapters. It speaks
 * `/v1/messages`, `/v1beta/models/…`, `/v1/responses`, `/v1/chat/completions` and `/api/chat`.
 */
export async function startMockProvider(fixtures: readonly MockFixture[]) {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'switchyard-mock-'))
  const file = path.join(folder, 'fixtures.json')
  writeFileSync(file, JSON.stringify({ fixtures }))
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const child = spawn(
    process.execPath,
    ['--import', DIE_WITH_PARENT, MOCK, '-p', String(port), '-f', file, '--strict', '--log-level', 'silent'],
    { cwd: ROOT, stdio: 'ignore' },
  )
  const stop = async () => {
    if (child.exitCode === null) {
      const exited = once(child, 'exit')
      child.kill('SIGTERM')
      await exited
    }
    rmSync(folder, { recursive: true, force: true })
  }
  const deadline = Date.now() + START_DEADLINE_MS
  while (!(await answers(url))) {
    if (child.exitCode !== null || Date.now() > deadline) {
      await stop()
      throw new Error('the mock did not start')
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
  return { url, stop }
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/v1/models`)).ok
  } catch {
    return false
  }
}
