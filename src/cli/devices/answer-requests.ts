import type { SwitchyardClient } from '../../client/client.ts'
import type { ClientFailure } from '../../client/failure.ts'
import type { ConnectRequestSummary } from '../../protocol/execution/devices.ts'
import { CONNECT_REQUEST_TTL_MS } from '../../protocol/remote/limits.ts'
import type { Result } from '../../protocol/result.ts'
import type { Clock } from '../clock.ts'
import { must } from '../command-context.ts'
import type { CliIo } from '../io.ts'
import { printable } from '../printable.ts'
import { acceptRequest, askerText, type CodeOut, typeItText } from './connect-requests.ts'
import { quotedName } from './device-list.ts'
import { type NewDeviceLook, pairedText, rememberDevices } from './new-device.ts'
import { ifReached, pollUntil } from './polling.ts'

/** What is needed to look after requests; the signal ends it. */
export type Desk = { client: SwitchyardClient; io: CliIo; clock: Clock; signal: AbortSignal }
type Pending = { out: CodeOut; look: NewDeviceLook }

/**
 * Asks the owner at the terminal about each request as it comes, and prints the code of one that is accepted.
 * @returns true: the time is over; false: the owner stopped it
 */
export async function answerRequests(desk: Desk, untilMs: number): Promise<boolean> {
  const { client, clock, signal } = desk
  const asked = new Set<string>()
  let pending: Pending | undefined
  const stopped = await pollUntil(clock, untilMs, signal, async (isLast) => {
    if (pending && (await isSettled(desk, pending))) pending = undefined
    for (const request of ifReached(await client.connectRequests.list({ signal }), isLast) ?? []) {
      if (asked.has(request.request_id)) continue
      asked.add(request.request_id)
      const answer = await ask(desk, request, pending?.out)
      if (answer === 'stop') return true
      if (answer === 'no') unlessGone(desk, request, await client.connectRequests.deny(request.request_id))
      if (answer === 'yes') pending = (await accept(desk, request)) ?? pending
    }
    return undefined
  })
  if (stopped || signal.aborted) return false
  // The last code holds longer than the window, and its device is worth waiting for.
  const last = pending
  if (last)
    await pollUntil(clock, last.out.untilMs, signal, async () => (await isSettled(desk, last)) || undefined)
  return !signal.aborted
}

/** Whether the device has paired, which is told, or the code holds no longer. */
async function isSettled({ io, clock, signal }: Desk, { out, look }: Pending): Promise<boolean> {
  const device = await look(signal, false)
  if (device !== undefined) io.err(`${io.paint.green('✓')} ${pairedText(device)}\n`)
  return device !== undefined || clock.nowMs() >= out.untilMs
}

/** A question about a request that is withdrawn, expires or is answered elsewhere goes away by itself. */
async function ask(
  { client, io, clock, signal }: Desk,
  request: ConnectRequestSummary,
  out: CodeOut | undefined,
): Promise<'yes' | 'no' | 'gone' | 'stop'> {
  const answered = new AbortController()
  const gone = new AbortController()
  const untilMs = clock.nowMs() + CONNECT_REQUEST_TTL_MS
  const watching = pollUntil(clock, untilMs, answered.signal, async (isLast) => {
    const answer = await client.connectRequests.list({ signal: answered.signal })
    const waits = !answer.ok || answer.value.some(({ request_id: id }) => id === request.request_id)
    if ((isLast || !waits) && !answered.signal.aborted) gone.abort()
    return gone.signal.aborted || undefined
  })
  const other = out === undefined ? '' : ` The code for ${quotedName(out.deviceName)} stops working then.`
  const question = `${askerText(request)} asks to be paired. Let it?${other}`
  const answer = await io.confirm(question, AbortSignal.any([signal, gone.signal]))
  answered.abort()
  await watching
  if (answer.kind === 'answer') return answer.value ? 'yes' : 'no'
  if (signal.aborted || !gone.signal.aborted) return 'stop'
  io.err(goneText(io, request))
  return 'gone'
}

async function accept(desk: Desk, request: ConnectRequestSummary): Promise<Pending | undefined> {
  const { client, io, clock } = desk
  const look = await rememberDevices(client)
  const out = unlessGone(desk, request, await acceptRequest(client, clock, request))
  if (out === undefined) return undefined
  io.err(typeItText(out))
  io.out(`${printable(out.code)}\n`)
  return { out, look }
}

/** The answer of the router, unless the request had gone before it was answered. */
function unlessGone<T>(
  { io }: Desk,
  request: ConnectRequestSummary,
  answer: Result<T, ClientFailure>,
): T | undefined {
  if (answer.ok || answer.error.kind !== 'http' || answer.error.status !== 404) return must(answer)
  io.err(goneText(io, request))
  return undefined
}

const goneText = ({ paint }: CliIo, { device_name: name }: ConnectRequestSummary): string =>
  paint.dim(`the request of ${quotedName(name)} has gone\n`)
