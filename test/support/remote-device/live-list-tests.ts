import { describe, expect, test } from 'vitest'
import { makeHoldPoint } from '../node/hold-point.ts'
import type { ScriptedModel } from '../node/model-scripts.ts'
import { namesOf, type WireNames } from './frame-shapes.ts'
import { type GatewayRouter, Home } from './gateway-home.ts'
import type { Fields } from './shapes.ts'

/** "Sessions": the live list, asked for and pushed. */
export function liveListTests(router: () => GatewayRouter, model: () => ScriptedModel): void {
  /** A home with a device that follows the list. */
  async function following(names: WireNames = 'session') {
    const here = await Home.open(router())
    const { device } = await here.pair(names === 'thread' ? { wire_names: 'thread' } : {})
    const answer = await device.request({ type: namesOf(names).subscribe })
    expect(answer).toMatchObject({ subscribed: true, [namesOf(names).many]: [] })
    return { here, device, answer }
  }

  const speaks = (word: string) => model().script(word, { pieces: ['So be it.'] })

  describe('the live list', () => {
    test('[D03] a session that has not run is not listed; its run lists it, and every change is pushed whole', async () => {
      const { here, device } = await following()
      const session = await here.owner.newSession('Fix the parser')
      const pause = makeHoldPoint()
      model().script('<held>', { pieces: ['Let me '], hold: pause.hold, after: ['see.'] })
      const running = here.owner.run(session, '<held>')
      const [row] = await device.nextList((rows) => rows.length === 1)
      expect(row).toMatchObject({
        session_id: session,
        title: 'Fix the parser',
        workspace: '/home/ada/project',
        activity: 'running',
        attention: { approval: false, question: false },
        health: 'live',
      })
      pause.release()
      expect((await running).status).toBe('completed')
      const [idle] = await device.nextList(([only]) => only?.activity === 'idle')
      expect(idle).toMatchObject({
        session_id: session,
        registration_epoch: row?.registration_epoch,
        model: 'scripted',
        turn_count: 1,
      })
      // Within the last minutes, in milliseconds.
      expect(Math.abs(Number(row?.registration_epoch) - Date.now())).toBeLessThan(600_000)
      const asked = await device.request({ type: 'list_sessions' })
      expect(asked).toMatchObject({ subscribed: true, sessions: [idle] })
      expect(await here.owner.must('GET', '/sessions')).toMatchObject({
        sessions: [{ id: session, shared: true }],
      })
    })

    test('[D02] a call that waits for a decision shows as awaiting_approval, one that does not as running', async () => {
      const { here, device } = await following()
      const session = await here.owner.newSession('asks')
      model().script(
        '<asks>',
        { calls: [{ name: 'read_file', arguments: { path: 'a.ts' } }] },
        { calls: [{ name: 'shell', arguments: { command: 'ls' } }] },
        { pieces: ['Done.'] },
      )
      const first = await here.owner.run(session, '<asks>')
      const [reading] = await device.nextList(([row]) => row?.activity === 'running')
      expect(reading?.attention).toEqual({ approval: false, question: false })
      const answerTo = (envelope: Fields, decision?: string) => {
        const { tool_requests: calls } = envelope.data as { tool_requests: { call_id: string }[] }
        const results = calls.map(({ call_id }) => ({
          call_id,
          content: 'as it is',
          is_error: false,
          ...(decision === undefined ? {} : { decision }),
        }))
        return here.owner.must('POST', `/sessions/${session}/continue`, {
          type: 'tool_results',
          data: { results },
        })
      }
      const second = await answerTo(first)
      const [asking] = await device.nextList(([row]) => row?.activity === 'awaiting_approval')
      expect(asking?.attention).toEqual({ approval: true, question: false })
      await answerTo(second, 'approved')
      const [idle] = await device.nextList(([row]) => row?.activity === 'idle')
      expect(idle?.attention).toEqual({ approval: false, question: false })
    })

    test('several sessions stand in the order of their ids, and every subscriber is told', async () => {
      const { here, device } = await following()
      const { device: second } = await here.pair()
      await second.request({ type: 'subscribe_sessions' })
      const { device: silent } = await here.pair()
      expect(await silent.request({ type: 'list_sessions' })).toMatchObject({ subscribed: false })
      speaks('<several>')
      const ids: string[] = []
      for (const title of ['c', 'a', 'b']) ids.push(await here.owner.newSession(title))
      for (const id of [...ids].reverse()) await here.owner.run(id, '<several>')
      const settled = (rows: Fields[]) =>
        rows.length === 3 && rows.every(({ activity }) => activity === 'idle')
      for (const one of [device, second]) {
        const rows = await one.nextList(settled)
        expect(rows.map(({ session_id: id }) => id)).toEqual([...ids].sort())
        expect(rows.map(({ title }) => title)).toEqual(['c', 'a', 'b'])
      }
      await silent.pinged()
      expect(silent.log.filter(({ kind }) => kind === 'sessions')).toEqual([])
    })

    test('a new title is pushed', async () => {
      const { here, device } = await following()
      const session = await here.owner.newSession('before')
      speaks('<title>')
      await here.owner.run(session, '<title>')
      await device.nextList(([row]) => row?.activity === 'idle')
      await here.owner.must('PUT', `/sessions/${session}`, { title: 'after: "quoted" \u2028 \u{1f6a6}' })
      const [row] = await device.nextList(([only]) => only?.title !== 'before')
      expect(row?.title).toBe('after: "quoted" \u2028 \u{1f6a6}')
    })

    test('[D03] unshared it leaves the list and stays off it through further runs, until it is shared again', async () => {
      const { here, device } = await following()
      const session = await here.owner.newSession('private')
      speaks('<private>')
      await here.owner.run(session, '<private>')
      const [listed] = await device.nextList(([row]) => row?.activity === 'idle')
      await here.owner.must('PUT', `/sessions/${session}`, { shared: false })
      await device.nextList((rows) => rows.length === 0)
      const old = { session_id: session, registration_epoch: listed?.registration_epoch }
      expect(await device.request({ type: 'attach_session' }, old)).toMatchObject({ code: 'not_found' })
      await here.owner.run(session, '<private>')
      expect(await device.request({ type: 'list_sessions' })).toMatchObject({ sessions: [] })
      await here.owner.must('PUT', `/sessions/${session}`, { shared: true })
      const [again] = await device.nextList((rows) => rows.length === 1)
      expect(again).toMatchObject({ session_id: session, activity: 'idle', turn_count: 2 })
      expect(Number(again?.registration_epoch)).toBeGreaterThan(Number(listed?.registration_epoch))
      expect(await device.request({ type: 'attach_session' }, old)).toMatchObject({ code: 'stale_session' })
      expect(await device.request({ type: 'cancel_turn', turn_id: 'turn:x' }, old)).toMatchObject({
        code: 'stale_session',
        receipt: 'rejected',
      })
      expect(await device.request({ type: 'detach_session' }, old)).toEqual({ type: 'detached' })
    })

    test('[D03] archived or deleted it leaves the list', async () => {
      const { here, device } = await following()
      speaks('<gone>')
      const archived = await here.owner.newSession('archived')
      const deleted = await here.owner.newSession('deleted')
      await here.owner.run(archived, '<gone>')
      await here.owner.run(deleted, '<gone>')
      await device.nextList((rows) => rows.length === 2 && rows.every(({ activity }) => activity === 'idle'))
      await here.owner.must('PUT', `/sessions/${archived}`, { archived: true })
      const left = await device.nextList((rows) => rows.length === 1)
      expect(left[0]?.session_id).toBe(deleted)
      await here.owner.must('DELETE', `/sessions/${deleted}`)
      await device.nextList((rows) => rows.length === 0)
      await device.pinged()
    })

    test('a device that comes later sees what is listed, and what the gateway can do', async () => {
      const { here, device, answer } = await following()
      expect(answer.capabilities).toContain('token_rotation')
      const session = await here.owner.newSession('early')
      speaks('<early>')
      await here.owner.run(session, '<early>')
      const rows = await device.nextList(([row]) => row?.activity === 'idle')
      const { device: late, paired } = await here.pair()
      const listed = await late.request({ type: 'list_sessions' })
      expect(listed).toMatchObject({
        sessions: rows,
        gateway_id: paired.gateway_id,
        instance_id: paired.instance_id,
      })
      expect(
        device.log.filter(({ kind }) => kind === 'sessions').some((push) => 'capabilities' in push),
      ).toBe(false)
    })

    test('the list of another account is another list', async () => {
      const { device } = await following()
      const other = await Home.open(router())
      const session = await other.owner.newSession('not yours')
      speaks('<other>')
      await other.owner.run(session, '<other>')
      const { device: theirs } = await other.pair()
      expect(await theirs.request({ type: 'list_sessions' })).toMatchObject({
        sessions: [{ session_id: session }],
      })
      expect(await device.request({ type: 'list_sessions' })).toMatchObject({ sessions: [] })
      expect(device.log.filter(({ kind }) => kind === 'sessions')).toEqual([])
    })

    test('on a thread-named connection the push has thread names, and the texts are left as they are', async () => {
      const { here, device } = await following('thread')
      const session = await here.owner.newSession('my session_id in sessions')
      speaks('<threads>')
      await here.owner.run(session, '<threads>')
      const [row] = await device.nextList(([only]) => only?.activity === 'idle')
      expect(row).toMatchObject({ thread_id: session, title: 'my session_id in sessions' })
      expect(
        await device.request({ type: 'attach_thread' }, { thread_id: session, registration_epoch: 1 }),
      ).toMatchObject({ code: 'stale_thread' })
    })
  })
}
