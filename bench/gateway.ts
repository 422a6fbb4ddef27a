import { setTimeout as pause } from 'node:timers/promises'
import { SwitchyardClient } from '../src/client/client.ts'
import { type Bench, figure, ms, times } from './lib/bench.ts'
import { must } from './lib/router.ts'
import { withRuntime } from './lib/runtime.ts'
import { type BenchSocket, openSocket } from './lib/socket.ts'
import { median } from './lib/statistics.ts'

const WARM_UP = 15
const ROUNDS = 60
/** The bare object repeats it; about as long as a handshake frame. */
const BARE_FRAME = { type: 'authenticate', protocol_version: 1, padding: 'x'.repeat(80) }
const PUSH_ROUNDS = 12
/** Changes that come faster than this leave together; here each is to leave at once. */
const CALM_MS = 400
/** A device holds so many connections at most. */
const SOCKETS_PER_DEVICE = 8

type Fields = Record<string, unknown>
/** Milliseconds from the dial to the last answer, and from the first frame to it. */
type Trip = { dialedMs: number; framesMs: number }

export const gateway: Bench = {
  name: 'gateway',
  what: 'pairing, authenticating and list pushes, against a bare object that echoes',
  run: (print) =>
    withRuntime({}, async ({ url }) => {
      const bench = await makeBench(url)
      for (const [label, exchange, frames] of bench.exchanges) {
        const trips = await bench.compare(exchange, frames)
        const ratio = (of: (trip: Trip) => number) => {
          const routed = median(trips.map(({ routed: trip }) => of(trip)))
          const bare = median(trips.map(({ bare: trip }) => of(trip)))
          return { routed, bare, ratio: routed / bare }
        }
        const whole = ratio(({ dialedMs }) => dialedMs)
        const frame = ratio(({ framesMs }) => framesMs)
        print(figure(`${label}, from the dial`, times(whole.ratio)))
        print(`    gateway ${ms(whole.routed)}, bare ${ms(whole.bare)} (medians of ${trips.length})`)
        print(figure(`${label}, from the first frame`, times(frame.ratio)))
        print(`    gateway ${ms(frame.routed)}, bare ${ms(frame.bare)}`)
      }
      for (const sockets of [10, 50]) {
        const { pushedMs, bareMs, changedMs } = await bench.push(sockets)
        print(figure(`a change of the list reaches ${sockets} sockets`, times(pushedMs / bareMs)))
        print(
          `    from the HTTP call to the last socket ${ms(pushedMs)} (its own answer ${ms(changedMs)}), ` +
            `bare fan-out ${ms(bareMs)}`,
        )
      }
    }),
}

/** What is sent on a fresh socket, up to the last answer. */
type Exchange = () => Promise<(socket: BenchSocket) => Promise<void>>

async function makeBench(url: string) {
  const sockets = url.replace(/^http/, 'ws')
  const client = new SwitchyardClient({ baseUrl: url })
  const { api_key } = must(await client.bootstrap())
  must(await client.signIn(api_key))
  const { gateway_id } = must(await client.pairing.open())
  const door = `${sockets}/g/${gateway_id}`
  const bareDoor = `${sockets}/bench/echo`

  const pair = async (fields: Fields = {}): Promise<Fields> => {
    const { credential } = must(await client.pairing.open())
    const socket = await openSocket(door)
    const answer = await socket.ask(pairFrame(credential, fields))
    socket.close()
    return expectType(answer, 'paired')
  }
  const fixed = await pair()
  const rotating = await pair({ capabilities: ['token_rotation'] })
  let refreshToken = rotating.refresh_token
  let accessToken = rotating.access_token
  const authenticate = async (socket: BenchSocket, fields: Fields) =>
    expectType(await socket.ask({ type: 'authenticate', protocol_version: 1, ...fields }), 'authenticated')

  const exchanges: readonly [string, Exchange, number][] = [
    [
      'pair',
      async () => {
        const { credential } = must(await client.pairing.open())
        // The same phone each time, or the gateway would soon hold as many devices as it may.
        const frame = pairFrame(credential, { install_id: 'a-bench-0123456789' })
        return async (socket) => void expectType(await socket.ask(frame), 'paired')
      },
      1,
    ],
    [
      'authenticate, static token',
      async () => async (socket) =>
        void (await authenticate(socket, { device_id: fixed.device_id, token: fixed.token })),
      1,
    ],
    [
      'authenticate, access token',
      async () => async (socket) =>
        void (await authenticate(socket, { device_id: rotating.device_id, access_token: accessToken })),
      1,
    ],
    [
      'authenticate, refresh token, acknowledged',
      async () => async (socket) => {
        const answer = await authenticate(socket, {
          device_id: rotating.device_id,
          refresh_token: refreshToken,
        })
        refreshToken = answer.refresh_token
        accessToken = answer.access_token
        socket.send({ type: 'token_ack', rotation_id: answer.rotation_id })
        // The acknowledgement is answered by nothing; what is asked behind it is answered after it.
        await socket.ask(listRequest('list_sessions'))
      },
      2,
    ],
  ]

  return {
    exchanges,
    compare: async (exchange: Exchange, frames: number) => {
      const bare = async (socket: BenchSocket) => {
        for (let n = 0; n < frames; n++) await socket.ask(BARE_FRAME)
      }
      const pairs: { routed: Trip; bare: Trip }[] = []
      for (let n = 0; n < WARM_UP + ROUNDS; n++) {
        const prepared = await exchange()
        // In turn, so that what disturbs one disturbs the other.
        const routedFirst = n % 2 === 0 ? await trip(door, prepared) : undefined
        const bareTrip = await trip(bareDoor, bare)
        const routed = routedFirst ?? (await trip(door, prepared))
        if (n >= WARM_UP) pairs.push({ routed, bare: bareTrip })
      }
      return pairs
    },
    push: async (count: number) => {
      const listeners: BenchSocket[] = []
      let device: Fields = {}
      while (listeners.length < count) {
        if (listeners.length % SOCKETS_PER_DEVICE === 0) device = await pair()
        const socket = await openSocket(door)
        await authenticate(socket, { device_id: device.device_id, token: device.token })
        await socket.ask(listRequest('subscribe_sessions'))
        listeners.push(socket)
      }
      const echoes: BenchSocket[] = []
      while (echoes.length < count) echoes.push(await openSocket(`${bareDoor}-all`))
      const everyone = (all: readonly BenchSocket[]) => Promise.all(all.map((socket) => socket.next()))
      const pushed: number[] = []
      const changed: number[] = []
      const bare: number[] = []
      for (let n = 0; n < PUSH_ROUNDS; n++) {
        const { id } = must(await client.sessions.create({ title: `listed ${n}` }))
        await pause(CALM_MS)
        const startedAt = performance.now()
        const answered = client.sessions.update(id, { shared: true }).then((result) => {
          must(result)
          changed.push(performance.now() - startedAt)
        })
        await everyone(listeners)
        pushed.push(performance.now() - startedAt)
        await answered
        const [first] = echoes
        const sentAt = performance.now()
        first?.send({ ...BARE_FRAME, padding: 'x'.repeat(400) })
        await everyone(echoes)
        bare.push(performance.now() - sentAt)
        await pause(CALM_MS)
        must(await client.sessions.update(id, { shared: false }))
        await everyone(listeners)
      }
      for (const socket of [...listeners, ...echoes]) socket.close()
      return { pushedMs: median(pushed), bareMs: median(bare), changedMs: median(changed) }
    },
  }
}

async function trip(door: string, exchange: (socket: BenchSocket) => Promise<void>): Promise<Trip> {
  const dialedAt = performance.now()
  const socket = await openSocket(door)
  const sentAt = performance.now()
  await exchange(socket)
  const endedAt = performance.now()
  socket.close()
  return { dialedMs: endedAt - dialedAt, framesMs: endedAt - sentAt }
}

const pairFrame = (secret: string, fields: Fields): Fields => ({
  type: 'pair',
  protocol_version: 1,
  method: 'credential',
  secret,
  device_name: 'a bench',
  ...fields,
})

const listRequest = (type: string): Fields => ({
  protocol_version: 1,
  request_id: 'bench',
  operation: { type },
})

function expectType(answer: Fields, type: string): Fields {
  if (answer.type !== type) throw new Error(`the gateway refused: ${JSON.stringify(answer)}`)
  return answer
}
