import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { isOwnerAlive, readOwner } from '../../../scripts/lib-node/file-lock.mjs'
import { portMessage, probePort } from '../../../scripts/lib-node/port.mjs'
import { err, ok, type Result } from '../../protocol/result.ts'
import { answersStatus, POLL_MS, READY_TIMEOUT_MS } from './router-process.ts'

/** Where the conversation will find its router: one that runs already, or one to be started. */
export type RouterPlace = { url: string; port: number; running: boolean }

/**
 * Looks for a router to use. One that already serves this state folder is used wherever it listens, since a second one
 * on the same state is impossible and a person with `npm run dev` in another terminal wants to talk to that. So is one
 * that listens on the port. Anything else on the port is an error that says how to choose another.
 */
export async function findRouter(options: {
  port: number
  portGiven: boolean
  persistTo: string
}): Promise<Result<RouterPlace, string>> {
  const { port, portGiven, persistTo } = options
  const owner = ownerOf(persistTo)
  if (owner !== undefined && typeof owner.port === 'number') {
    if (portGiven && owner.port !== port) {
      return err(
        [
          `The state folder ${persistTo} is in use by a router on port ${owner.port} (process ${owner.pid}).`,
          `Use that one (PORT=${owner.port} npm start), stop it, or take a state folder of its own: --persist-to FOLDER`,
        ].join('\n'),
      )
    }
    return ok({ url: urlOf(owner.port), port: owner.port, running: true })
  }
  const found = await probePort('127.0.0.1', port)
  if (found === 'free') return ok({ url: urlOf(port), port, running: false })
  if (found === 'busy' && (await answersStatus(urlOf(port))))
    return ok({ url: urlOf(port), port, running: true })
  return err(portMessage(found, '127.0.0.1', port, `Choose another: PORT=${nextPort(port)} npm start`))
}

/**
 * Waits for a router that another `npm start` is just bringing up, which holds its state folder before it answers.
 * Returns as soon as it answers, when nobody holds the folder, or after the time that a start is given.
 */
export async function untilAnswers(
  { url }: RouterPlace,
  { persistTo, signal }: { persistTo: string; signal: AbortSignal },
): Promise<void> {
  const deadline = Date.now() + READY_TIMEOUT_MS
  while (!(await answersStatus(url))) {
    if (signal.aborted || Date.now() > deadline || ownerOf(persistTo) === undefined) return
    await wait(POLL_MS)
  }
}

/** The living process that holds a state folder. */
function ownerOf(persistTo: string) {
  const owner = readOwner(path.join(persistTo, 'router.lock'))
  return owner !== undefined && isOwnerAlive(owner) ? owner : undefined
}

const urlOf = (port: number): string => `http://127.0.0.1:${port}`
const nextPort = (port: number): number => (port < 65_535 ? port + 1 : 8788)
