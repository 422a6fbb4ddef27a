import { afterEach, expect, it, vi } from 'vitest'
import { pairDevice } from '../support/workers/device.ts'
import { dropFakeSessions, FakeSession, text } from '../support/workers/fake-session.ts'
import { Hold } from '../support/workers/hold.ts'
import { makeClient } from '../support/workers/router.ts'

afterEach(dropFakeSessions)

it('[RF 10] a session has 10 s to be attached to and 30 s to answer, and a late answer is not delivered', {
  timeout: 60_000,
}, async () => {
  const warned = vi.spyOn(console, 'warn').mockImplementation(() => {})
  const client = await makeClient()
  const { device } = await pairDevice(client)
  const session = new FakeSession(client.userId, 'silent')
  await session.list()
  const hold = new Hold()
  session.before = () => hold.wait()
  const startedAtMs = Date.now()
  const send = (request_id: string, operation: object) =>
    device.send({ protocol_version: 1, request_id, session_id: 'silent', registration_epoch: 1, operation })
  send('prompt', { type: 'submit_prompt', prompt: 'hi' })
  send('history', { type: 'get_history', limit: 1 })
  send('attach', { type: 'attach_session' })
  const attached = await device.next()
  expect(attached).toMatchObject({ request_id: 'attach', result: { code: 'owner_unavailable' } })
  expect(attached).not.toHaveProperty('receipt')
  expect(Date.now() - startedAtMs).toBeGreaterThan(9_500)
  expect(await session.push({ first: 1, events: [text('a')], last: 1 })).toBe(false)
  expect(await device.next()).toMatchObject({
    request_id: 'prompt',
    receipt: 'unknown',
    result: { code: 'owner_unavailable' },
  })
  expect(Date.now() - startedAtMs).toBeGreaterThan(29_500)
  const history = await device.next()
  expect(history).toMatchObject({ request_id: 'history', result: { code: 'owner_unavailable' } })
  expect(history).not.toHaveProperty('receipt')
  hold.release()
  await device.request({ type: 'list_sessions' })
  expect(device.waiting).toEqual([])
  warned.mockRestore()
})
