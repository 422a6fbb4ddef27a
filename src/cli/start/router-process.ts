import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { DIE_WITH_PARENT, OWN_NODE, ROOT } from '../../../scripts/lib-node/repository.mjs'
import { SwitchyardClient } from '../../client/client.ts'
import type { Route } from '../../protocol/remote/handshake-request.ts'
import { err, ok, type Result } from '../../protocol/result.ts'
import { EXIT } from '../exit-code.ts'

/** A router that was started here. */
export type RouterProcess = {
  /** Resolves when it is gone, whoever ended it. */
  ended: Promise<void>
  /** Resolves when it is gone. */
  stop(): Promise<void>
  /** For an `exit` handler, which cannot wait. */
  stopNow(): void
}

export type RouterFailure = { message: string; exitCode: number }

/** A cold start takes about four seconds here, with migrations seven; a slow machine gets ten times that. */
export const READY_TIMEOUT_MS = 60_000
/** How often it is asked. */
export const POLL_MS = 150
/** A router that is busy starting may hold a request that long. */
const STATUS_TIMEOUT_MS = 2_000
/** wrangler stops within two seconds; `npm run dev` itself ends what hangs longer than eight. */
const STOP_TIMEOUT_MS = 12_000
/** The end of the log that is shown when a start fails. */
const TAIL_LINES = 15

/** Where the router's output goes: beside its state, so that it goes away with it. */
export const routerLogFile = (persistTo: string): string => path.join(persistTo, 'router.log')

export type RouterOptions = {
  url: string
  port: number
  persistTo: string
  ollamaUrl: string
  /** Where devices reach it; absent while only this machine does. */
  lanRoutes?: readonly Route[]
  /** Called about every second while it starts. */
  onProgress: (elapsedMs: number) => void
  /** Gives the start up. */
  signal: AbortSignal
}

/**
 * Starts `npm run dev` in the background and waits until it answers. It leads its own process group, so that Ctrl-C in
 * the terminal reaches the conversation and not the router.
 */
export async function startRouter(options: RouterOptions): Promise<Result<RouterProcess, RouterFailure>> {
  const { port, persistTo, ollamaUrl, lanRoutes } = options
  const log = openLog(persistTo)
  if (!log.ok) return log
  const args = [
    ...['--port', String(port), '--persist-to', persistTo, '--var', `OLLAMA_BASE_URL:${ollamaUrl}`],
    ...(lanRoutes === undefined ? [] : ['--var', `LAN_ROUTES:${JSON.stringify(lanRoutes)}`]),
    // Two routers that start at the same moment could choose the same debugging port.
    ...['--inspector-port', '0'],
  ]
  const child = spawn(OWN_NODE, ['--import', DIE_WITH_PARENT, path.join(ROOT, 'scripts/dev.mjs'), ...args], {
    cwd: ROOT,
    stdio: ['ignore', log.value, log.value],
    detached: true,
  })
  closeSync(log.value)
  const router = routerProcess(child)
  const started = await untilReady(child, options)
  if (started.ok) return ok(router)
  await router.stop()
  return started
}

function openLog(persistTo: string): Result<number, RouterFailure> {
  try {
    mkdirSync(persistTo, { recursive: true })
    return ok(openSync(routerLogFile(persistTo), 'w'))
  } catch (error) {
    const reason = error instanceof Error ? error.message : 'unknown reason'
    return err({
      message: `The state folder ${persistTo} cannot be written to: ${reason}`,
      exitCode: EXIT.usage,
    })
  }
}

function routerProcess(child: ChildProcess): RouterProcess {
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  return {
    ended,
    stop: async () => {
      if (hasEnded(child)) return
      child.kill('SIGTERM')
      const late = new AbortController()
      await Promise.race([
        ended,
        wait(STOP_TIMEOUT_MS, undefined, { signal: late.signal }).catch(() => undefined),
      ])
      late.abort()
      if (!hasEnded(child)) child.kill('SIGKILL')
    },
    stopNow: () => {
      if (!hasEnded(child)) child.kill('SIGTERM')
    },
  }
}

const hasEnded = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null

async function untilReady(
  child: ChildProcess,
  { url, persistTo, onProgress, signal }: RouterOptions,
): Promise<Result<null, RouterFailure>> {
  let spawnError: Error | undefined
  child.once('error', (error) => {
    spawnError = error
  })
  const startedAtMs = Date.now()
  let shownAtMs = startedAtMs
  for (;;) {
    await wait(POLL_MS)
    const nowMs = Date.now()
    if (signal.aborted) return err({ message: 'stopped', exitCode: EXIT.interrupted })
    if (spawnError)
      return err({ message: `The router could not be started: ${spawnError.message}`, exitCode: EXIT.failed })
    if (hasEnded(child)) return err(diedEarly(child, persistTo))
    if (nowMs - startedAtMs > READY_TIMEOUT_MS) {
      const seconds = READY_TIMEOUT_MS / 1000
      return err({
        message: `The router did not answer within ${seconds} s. ${tailOf(persistTo)}`,
        exitCode: EXIT.failed,
      })
    }
    if (nowMs - shownAtMs >= 1000) {
      onProgress(nowMs - startedAtMs)
      shownAtMs = nowMs
    }
    if (await answersStatus(url)) return ok(null)
  }
}

/** Whether something at `url` answers `GET /status` as a router does. */
export async function answersStatus(url: string): Promise<boolean> {
  const client = new SwitchyardClient({ baseUrl: url })
  const status = await client.status({ signal: AbortSignal.timeout(STATUS_TIMEOUT_MS) })
  return status.ok && status.value.status === 'ok'
}

/** `npm run dev` ends with 2 for what its user can put right, and has said it then. */
function diedEarly(child: ChildProcess, persistTo: string): RouterFailure {
  const exitCode = child.exitCode === EXIT.usage ? EXIT.usage : EXIT.failed
  return { message: `The router ended before it was ready. ${tailOf(persistTo)}`, exitCode }
}

function tailOf(persistTo: string): string {
  const file = routerLogFile(persistTo)
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n').slice(-TAIL_LINES)
  return `The end of ${file}:\n${lines.map((line) => `  ${line}`).join('\n')}`
}
