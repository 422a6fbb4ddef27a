import { setTimeout as pause } from 'node:timers/promises'
import { type Bench, figure } from './lib/bench.ts'
import { attach, connectMany, listed, requestFrame } from './lib/device.ts'
import { makeRouter } from './lib/router.ts'
import { withRuntime } from './lib/runtime.ts'
import { type Speech, startUpstream } from './lib/upstream.ts'

/** As a hosted model speaks: about eight seconds. */
const SPEECH: Speech = { firstTokenMs: 5, tokens: 800, gapMs: 9 }
const FOLLOWERS = 3
/** What is written after the answer has left is written within this. */
const SETTLED_MS = 3_500

/** What `/bench/stored` tells. */
type Stored = {
  object: number
  gateway: number
  setAlarm: number
  deleteAlarm: number
  d1: number
  toGateway: number
  toSession: number
}

export const streaming: Bench = {
  name: 'streaming',
  what: `rows and calls between objects while a model speaks: to nobody, and to ${FOLLOWERS} devices`,
  run: async (print) => {
    const upstream = await startUpstream()
    try {
      await withRuntime(
        { OLLAMA_BASE_URL: upstream.url, UPSTREAM: upstream.url, COUNT_ROWS: '1' },
        async ({ url }) => {
          const { client, newSession, execute } = await makeRouter(url)
          const session = await newSession()
          await execute(session)
          upstream.speech = SPEECH
          const measure = async (label: string) => {
            await pause(SETTLED_MS)
            await fetch(`${url}/bench/stored`)
            const { totalMs } = await execute(session)
            await pause(SETTLED_MS)
            const told = (await (await fetch(`${url}/bench/stored`)).json()) as Stored
            const seconds = totalMs / 1000
            const rows = told.object + told.gateway + told.setAlarm + told.deleteAlarm + told.d1
            const perSecond = (count: number) => `${(count / seconds).toFixed(1)} / s`
            print(figure(`${label}: rows`, perSecond(rows)))
            print(figure(`${label}: calls to the gateway`, perSecond(told.toGateway)))
            print(
              `    ${rows} rows in ${seconds.toFixed(1)} s: object ${told.object}, gateway ${told.gateway}, ` +
                `alarms ${told.setAlarm + told.deleteAlarm}, D1 ${told.d1}; calls back ${told.toSession}`,
            )
          }
          await measure('followed by nobody')
          const followers = await connectMany(url, client, FOLLOWERS)
          const [first] = followers
          if (first === undefined) throw new Error('there is nobody to follow')
          const row = await listed(first, session)
          for (const socket of followers) await attach(socket, row)
          await measure(`followed by ${FOLLOWERS}`)
          for (const socket of followers) {
            socket.send(requestFrame({ type: 'list_sessions' }))
            socket.close()
          }
        },
      )
    } finally {
      await upstream.close()
    }
  },
}
