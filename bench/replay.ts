import { type Bench, figure, ms, times } from './lib/bench.ts'
import {
  attach,
  type BenchDevice,
  type Fields,
  type Listed,
  listed,
  pairDevice,
  requestFrame,
  resultOf,
} from './lib/device.ts'
import { type BenchRouter, makeRouter } from './lib/router.ts'
import { withRuntime } from './lib/runtime.ts'
import type { BenchSocket } from './lib/socket.ts'
import { median } from './lib/statistics.ts'
import { startUpstream } from './lib/upstream.ts'

const MISSED = 1_000
const LONG = 50_000
const SHORT = 50
const ROUNDS = 40
const WARM_UP = 5

export const replay: Bench = {
  name: 'replay',
  what: `coming back to ${MISSED} missed events, and attaching to a session of ${LONG} events`,
  run: async (print) => {
    const upstream = await startUpstream()
    try {
      await withRuntime({ OLLAMA_BASE_URL: upstream.url, UPSTREAM: upstream.url }, async ({ url }) => {
        const router = await makeRouter(url)
        const device = await pairDevice(url, router.client)
        const { warmMs, coldMs, frames } = await missed(url, router, device)
        print(figure(`resuming ${MISSED} events behind, object in memory`, ms(warmMs)))
        print(`    one response and ${frames} events, no snapshot; ${ms(coldMs)} from an object that slept`)
        const { long, short } = await attachments(url, router, device)
        print(figure(`attaching to ${LONG} events against ${SHORT}`, times(long / short), '1.50 ×'))
        print(`    long ${ms(long)}, short ${ms(short)} (medians of ${ROUNDS})`)
      })
    } finally {
      await upstream.close()
    }
  },
}

/** A device that was away for so many events. */
async function missed(
  url: string,
  router: BenchRouter,
  device: BenchDevice,
): Promise<{ warmMs: number; coldMs: number; frames: number }> {
  const id = await router.newSession()
  await router.execute(id)
  const socket = await device.connect()
  const session = await listed(socket, id)
  const { sequence, snapshotId } = await attach(socket, session)
  socket.close()
  await fillEvents(url, id, MISSED)
  const resume = {
    gateway_id: device.gatewayId,
    last_sequence: sequence,
    snapshot_id: snapshotId,
  }
  const took: number[] = []
  let frames = 0
  for (let round = 0; round < 20; round++) {
    const again = await device.connect()
    const startedAt = performance.now()
    frames = await readMissed(again, session, resume)
    took.push(performance.now() - startedAt)
    again.close()
  }
  const [coldMs = Number.NaN, ...warm] = took
  return { warmMs: median(warm), coldMs, frames }
}

/** @returns how many events came between the answer and that to the next request */
async function readMissed(socket: BenchSocket, session: Listed, resume: Fields): Promise<number> {
  const answer = await socket.ask(requestFrame({ type: 'attach_session', resume }, session))
  resultOf(answer, 'resumed')
  let frames = 0
  for (; frames < MISSED; frames++) {
    const frame: Fields = JSON.parse(await socket.next())
    const { type } = frame.event as Fields
    if (frame.kind !== 'event' || type === 'snapshot' || type === 'resync_required')
      throw new Error(`the replay holds ${JSON.stringify(frame).slice(0, 300)}`)
  }
  resultOf(await socket.ask(requestFrame({ type: 'list_sessions' })), 'sessions')
  return frames
}

/** Medians of attaching without a cursor, measured in turn. */
async function attachments(
  url: string,
  router: BenchRouter,
  device: BenchDevice,
): Promise<{ long: number; short: number }> {
  const socket = await device.connect()
  const filled = async (events: number): Promise<Listed> => {
    const id = await router.newSession()
    await router.execute(id)
    const session = await listed(socket, id)
    await fillEvents(url, id, events)
    return session
  }
  const sessions = { long: await filled(LONG), short: await filled(SHORT) }
  const took: { long: number[]; short: number[] } = { long: [], short: [] }
  for (let round = 0; round < WARM_UP + ROUNDS; round++) {
    for (const which of ['long', 'short'] as const) {
      const startedAt = performance.now()
      await attach(socket, sessions[which])
      if (round >= WARM_UP) took[which].push(performance.now() - startedAt)
    }
  }
  socket.close()
  return { long: median(took.long), short: median(took.short) }
}

async function fillEvents(url: string, session: string, events: number): Promise<void> {
  const response = await fetch(
    `${url}/bench/fill-events?${new URLSearchParams({ session, events: String(events) })}`,
  )
  if (response.status !== 204) throw new Error(`HTTP ${response.status}: ${await response.text()}`)
}
