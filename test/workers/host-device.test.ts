import { beforeAll, beforeEach, expect, it } from 'vitest'
import { makeExecute } from '../support/workers/bodies.ts'
import type { GatewayDevice } from '../support/workers/gateway-device.ts'
import { dial, pairDevice } from '../support/workers/gateway-device.ts'
import { restart } from '../support/workers/gateway-object.ts'
import { until } from '../support/workers/hold.ts'
import { type Client, makeClient, turnAs } from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'

const models = scriptModels()

let owner: Client
let device: GatewayDevice
let again: () => Promise<GatewayDevice>
let asked = 0
beforeAll(async () => {
  owner = await makeClient()
})
beforeEach(async () => {
  const { socket, frame, deviceId } = await pairDevice(owner)
  device = socket
  again = async () => {
    const back = await dial(`/g/${frame.gateway_id}`)
    const authenticate = { type: 'authenticate', device_id: deviceId, token: frame.token }
    expect((await back.ask(authenticate)).type).toBe('authenticated')
    return back
  }
})

const ask = async (operation: object, request_id = `r${++asked}`, from = device) => {
  const answer = await from.ask({ request_id, operation })
  expect(answer).toMatchObject({ kind: 'response', request_id })
  return answer as { receipt?: string; result: Record<string, unknown> }
}
const sharedIds = async () => {
  const { result } = await ask({ type: 'list_sessions' })
  return (result.sessions as { session_id: string }[]).map(({ session_id }) => session_id)
}

it('[RF 11] the list names the host-wide operations that are served', async () => {
  const { result } = await ask({ type: 'list_sessions' })
  expect(result.capabilities).toEqual(
    expect.arrayContaining(['saved_sessions', 'usage_summary', 'settings_get', 'settings_set', 'thread_pin']),
  )
})

it('[D03] a device finds a saved session, opens it, and has it in its list', async () => {
  const session_id = await owner.newSession('Fix the parser')
  const saved = (await ask({ type: 'list_saved_sessions', query: 'parser' })).result
  expect(saved).toMatchObject({ sessions: [{ session_id, state: 'saved' }] })
  const { receipt, result } = await ask({ type: 'resume_session', session_id }, 'open-it')
  expect({ receipt, type: result.type }).toEqual({ receipt: 'applied', type: 'session_resumed' })
  expect(result.session).toMatchObject({ session_id, title: 'Fix the parser', health: 'live' })
  expect(await sharedIds()).toContain(session_id)
  const now = (await ask({ type: 'list_saved_sessions', query: 'parser' })).result
  expect(now).toMatchObject({ sessions: [{ session_id, state: 'shared' }] })
})

it('[U15] what became of a host-wide request is told to its device, also after the gateway started anew', async () => {
  const session_id = await owner.newSession()
  await ask({ type: 'pin_thread', session_id }, 'pin-it')
  await restart(owner.userId)
  const back = await again()
  const status = { type: 'get_request_status', target_request_id: 'pin-it' }
  expect((await ask(status, undefined, back)).result).toEqual({
    type: 'request_status',
    target_request_id: 'pin-it',
    receipt: 'applied',
    result: { type: 'thread_pinned', session_id, pinned: true },
  })
})

it('[RF 26] a turn that was run is in the usage that a device is told', async () => {
  const before = (await ask({ type: 'get_usage' })).result.totals as { turns: number }
  models.script({ text: ['Hello'] })
  await turnAs(await owner.execute(await owner.newSession(), makeExecute('hi')), 'completed')
  const { totals } = (await ask({ type: 'get_usage' })).result as { totals: { turns: number } }
  expect(totals.turns).toBe(before.turns + 1)
})

it('[D26] what became of a request on a session is told when the session is gone', async () => {
  models.script({ text: ['Hello'] })
  const session_id = await owner.newSession()
  await turnAs(await owner.execute(session_id, makeExecute('hi')), 'completed')
  const { sessions } = (await ask({ type: 'list_sessions' })).result as {
    sessions: { session_id: string; registration_epoch: number }[]
  }
  const row = sessions.find((one) => one.session_id === session_id)
  const refused = await device.ask({
    request_id: 'stop-it',
    session_id,
    registration_epoch: row?.registration_epoch,
    operation: { type: 'cancel_turn', turn_id: 'turn:none' },
  })
  expect(refused).toMatchObject({ receipt: 'rejected', result: { code: 'stale_turn' } })
  await owner.send('DELETE', `/api/v1/sessions/${session_id}`)
  await until(async () => !(await sharedIds()).includes(session_id))
  const { result } = await ask({ type: 'get_request_status', target_request_id: 'stop-it' })
  expect(result).toMatchObject({ receipt: 'rejected', result: { type: 'error', code: 'stale_turn' } })
})
