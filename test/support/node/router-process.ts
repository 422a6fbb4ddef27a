import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import path from 'node:path'
import { freePort } from './free-port.ts'

const ROOT = path.resolve(import.meta.dirname, '../../..')
/** Ends the router if the test process dies without a word. */
const DIE_WITH_PARENT = path.join(ROOT, 'scripts/lib-node/die-with-parent.mjs')

/** Migrations, a bundle and a runtime, on a busy machine. */
const START_DEADLINE_MS = 50_000
/** How often a process from outside is looked at. */
const POLL_MS = 50

export type RouterOptions = {
  /** The state folder; what is in it from an earlier router is served again. */
  persistTo: string
  /** Variables of the Worker. */
  vars?: Readonly<Record<string, string>>
}

/** A router as a developer starts it: `npm run dev`, in processes of its own, on a real port. */
export class RouterProcess {
  /** The same after every restart. */
  readonly url: string
  readonly persistTo: string
  readonly #port: number
  readonly #vars: Readonly<Record<string, string>>
  #child: ChildProcess | null = null
  #log = ''

  /** Starts one and waits until it answers. */
  static async start({ persistTo, vars = {} }: RouterOptions): Promise<RouterProcess> {
    const router = new RouterProcess(await freePort(), persistTo, vars)
    await router.#launch()
    return router
  }

  private constructor(port: number, persistTo: string, vars: Readonly<Record<string, string>>) {
    this.#port = port
    this.url = `http://127.0.0.1:${port}`
    this.persistTo = persistTo
    this.#vars = vars
  }

  /** Everything that it has printed so far, over all its lives. */
  get log(): string {
    return this.#log
  }

  /** SIGKILL to every process of it at once: nobody gets to tidy up. */
  async kill9(): Promise<void> {
    const child = this.#running()
    const exited = once(child, 'exit')
    // The runtime leads a group of its own, so that Ctrl-C in a terminal does not reach it; the lock names the group.
    const runtime = runtimeGroup(this.persistTo)
    killGroup(child.pid, 'SIGKILL')
    killGroup(runtime, 'SIGKILL')
    this.#child = null
    await exited
    await until(() => refuses(this.#port), START_DEADLINE_MS, 'the killed router still listens')
  }

  /** Asks it to end, as Ctrl-C does, and waits for that. */
  async stop(): Promise<void> {
    if (this.#child === null) return
    const child = this.#child
    this.#child = null
    if (child.exitCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGTERM')
    await exited
  }

  /** Starts it again on the same data and the same port; it must not be running. */
  async restart(): Promise<void> {
    if (this.#child !== null) throw new Error('the router is still running')
    await this.#launch()
  }

  async #launch(): Promise<void> {
    const vars = Object.entries(this.#vars).flatMap(([name, value]) => ['--var', `${name}:${value}`])
    const child = spawn(
      process.execPath,
      [
        ...['--import', DIE_WITH_PARENT, path.join(ROOT, 'scripts/dev.mjs')],
        ...['--port', String(this.#port), '--ip', '127.0.0.1', '--persist-to', this.persistTo],
        // Else two routers that start at the same time may choose the same one.
        ...vars,
      ],
      { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'], detached: true },
    )
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8')
      stream.on('data', (piece: string) => {
        this.#log += piece
      })
    }
    this.#child = child
    await until(
      async () => {
        if (child.exitCode !== null) throw new Error(`the router ended at once:\n${this.#log}`)
        return await answers(this.url)
      },
      START_DEADLINE_MS,
      () => `the router did not start:\n${this.#log}`,
    )
  }

  #running(): ChildProcess {
    if (this.#child === null) throw new Error('the router is not running')
    return this.#child
  }
}

/** The process group that the lock of a state folder names. */
function runtimeGroup(persistTo: string): number | undefined {
  const lock: unknown = JSON.parse(readFileSync(path.join(persistTo, 'router.lock'), 'utf8'))
  const group = typeof lock === 'object' && lock !== null && 'group' in lock ? lock.group : undefined
  return typeof group === 'number' ? group : undefined
}

function killGroup(group: number | undefined, signal: NodeJS.Signals): void {
  if (group === undefined) throw new Error('there is no process group to end')
  try {
    process.kill(-group, signal)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}

async function answers(url: string): Promise<boolean> {
  try {
    const response = await fetch(`${url}/status`)
    return response.ok
  } catch {
    return false
  }
}

const refuses = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(false)
    })
    socket.once('error', () => resolve(true))
  })

/** Looks at something outside this process until it is so. */
async function until(
  condition: () => boolean | Promise<boolean>,
  deadlineMs: number,
  complaint: string | (() => string),
): Promise<void> {
  const deadline = Date.now() + deadlineMs
  while (!(await condition())) {
    if (Date.now() >= deadline) throw new Error(typeof complaint === 'string' ? complaint : complaint())
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}
