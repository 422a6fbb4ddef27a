import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'

const LAUNCHER = path.resolve(import.meta.dirname, '../../../bin/switchyard.mjs')

/** The `switchyard` command in a process of its own, without a terminal. */
export type CommandProcess = {
  /** What it has written so far. */
  readonly stdout: string
  readonly stderr: string
  /** Waits until it has written this to stdout; rejects when it ends without. */
  says(words: string): Promise<void>
  /** Puts this on its stdin, which is closed for a command that is not given any. */
  types(input: string): void
  /** Ends its stdin. */
  endInput(): void
  /** Ctrl-C for this process alone. */
  interrupt(): void
  /** Its exit code. */
  ended: Promise<number | null>
}

export function startCommand(
  args: readonly string[],
  { cwd, env, input = false }: { cwd: string; env: Readonly<Record<string, string>>; input?: boolean },
): CommandProcess {
  const child = spawn(process.execPath, [LAUNCHER, ...args], {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  if (!input) child.stdin.end()
  // One that has ended reads no more.
  child.stdin.on('error', () => undefined)
  const written = { stdout: '', stderr: '' }
  const watchers = new Set<() => void>()
  const changed = () => {
    for (const watcher of [...watchers]) watcher()
  }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8')
    child[name].on('data', (piece: string) => {
      written[name] += piece
      changed()
    })
  }
  let closed = false
  const ended = once(child, 'close').then(([code]: (number | null)[]) => {
    closed = true
    changed()
    return code ?? null
  })
  return {
    get stdout() {
      return written.stdout
    },
    get stderr() {
      return written.stderr
    },
    says: (words) =>
      new Promise((resolve, reject) => {
        const look = () => {
          if (written.stdout.includes(words)) resolve()
          else if (closed) reject(new Error(`ended without saying ${words}:\n${written.stderr}`))
          else return
          watchers.delete(look)
        }
        watchers.add(look)
        look()
      }),
    types: (typed) => void child.stdin.write(typed),
    endInput: () => child.stdin.end(),
    interrupt: () => child.kill('SIGINT'),
    ended,
  }
}
