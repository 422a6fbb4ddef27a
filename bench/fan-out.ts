import { type Bench, figure, ms, times } from './lib/bench.ts'
import { attach, connectMany, type Listed, listed, requestFrame } from './lib/device.ts'
import { makeRouter } from './lib/router.ts'
import { withRuntime } from './lib/runtime.ts'
import { type BenchSocket, openSocket } from './lib/socket.ts'
import { median } from './lib/statistics.ts'
import { startUpstream } from './lib/upstream.ts'

const DEVICES = [1, 10, 50]
/** Events of one round; what they weigh stays far below what a device may have unread (D35). */
const EVENTS = 400
/** What a session tells at a time, when a model speaks fast. */
const EVENTS_PER_PUSH = 4
const ROUNDS = 10
const WARM_UP = 3

export const fanOut: Bench = {
  name: 'fan-out',
  what: 'events on their way to all who follow a session, against a bare loop of sends',
  run: async (print) => {
    const upstream = await startUpstream()
    try {
      await withRuntime({ OLLAMA_BASE_URL: upstream.url, UPSTREAM: upstream.url }, async ({ url }) => {
        for (const devices of DEVICES) {
          const { gatewayMs, bareMs } = await compare(url, devices)
          const budget = devices === 50 ? 'at least 0.70 ×' : undefined
          print(figure(`${devices} followers: rate against the bare loop`, times(bareMs / gatewayMs), budget))
          const perSecond = Math.round((EVENTS * devices * 1000) / gatewayMs)
          print(
            `    gateway ${ms(gatewayMs)}, bare ${ms(bareMs)} for ${EVENTS} events, ${perSecond} frames a second (medians of ${ROUNDS})`,
          )
        }
      })
    } finally {
      await upstream.close()
    }
  },
}

/** Times from the call to the last frame on the last socket. */
async function compare(url: string, devices: number): Promise<{ gatewayMs: number; bareMs: number }> {
  const { client, userId, newSession, execute } = await makeRouter(url)
  const id = await newSession()
  await execute(id)
  const followers = await connectMany(url, client, devices)
  const [first] = followers
  if (first === undefined) throw new Error('there is nobody to follow')
  const session = await listed(first, id)
  let { sequence } = await attachAll(followers, session)
  const bare: BenchSocket[] = []
  while (bare.length < devices)
    bare.push(await openSocket(`${url.replace(/^http/, 'ws')}/bench/echo-blast-${devices}`))
  const gatewayTimes: number[] = []
  const bareTimes: number[] = []
  for (let round = 0; round < WARM_UP + ROUNDS; round++) {
    const told = new URLSearchParams({
      user: userId,
      session: session.session_id,
      epoch: String(session.registration_epoch),
      after: String(sequence),
      events: String(EVENTS),
      at_a_time: String(EVENTS_PER_PUSH),
    })
    const gatewayMs = await timed(followers, () => fetch(`${url}/bench/fan-out?${told}`))
    sequence += EVENTS
    const blast = new URLSearchParams({
      session: session.session_id,
      events: String(EVENTS),
      to: String(devices),
    })
    const bareMs = await timed(bare, () => fetch(`${url}/bench/blast?${blast}`))
    // Whoever says something has read what came before.
    await Promise.all(followers.map((socket) => socket.ask(requestFrame({ type: 'list_sessions' }))))
    if (round < WARM_UP) continue
    gatewayTimes.push(gatewayMs)
    bareTimes.push(bareMs)
  }
  for (const socket of [...followers, ...bare]) socket.close()
  return { gatewayMs: median(gatewayTimes), bareMs: median(bareTimes) }
}

async function attachAll(followers: readonly BenchSocket[], session: Listed): Promise<{ sequence: number }> {
  let sequence = 0
  for (const socket of followers) sequence = (await attach(socket, session)).sequence
  return { sequence }
}

async function timed(sockets: readonly BenchSocket[], start: () => Promise<Response>): Promise<number> {
  const startedAt = performance.now()
  const answered = start()
  await Promise.all(
    sockets.map(async (socket) => {
      for (let n = 0; n < EVENTS; n++) await socket.next()
    }),
  )
  const tookMs = performance.now() - startedAt
  const { status } = await answered
  if (status !== 204) throw new Error(`HTTP ${status}`)
  return tookMs
}
