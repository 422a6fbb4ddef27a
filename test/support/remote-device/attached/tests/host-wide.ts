import { expect } from 'vitest'
import { fieldsOf, listOfFields } from '../items.ts'
import type { AttachTest } from './attach-test.ts'

const status = (target: string) => ({ type: 'get_request_status', target_request_id: target })

/** "Saved sessions", "Usage, host settings and thread status", and what needs a host and has none. */
export const HOST_WIDE: readonly AttachTest[] = [
  {
    name: '[D03, RF 25] saved sessions come in pages, the newest first, found by words of any case',
    covers: ['operation:list_saved_sessions', 'result:saved_sessions', 'error:invalid_request'],
    run: async (stage) => {
      const { device, session } = await stage.attached()
      const word = stage.script({ pieces: ['Saved.'] })
      const saved = await stage.newSession('A Saved One')
      await stage.run(saved, word)
      await stage.must('PUT', `/sessions/${saved}`, { shared: false })
      const archived = await stage.newSession('archived')
      await stage.must('PUT', `/sessions/${archived}`, { archived: true })
      const list = async (fields: object = {}) =>
        (await device.ask({ type: 'list_saved_sessions', ...fields })).result
      // The copy that lists are read from may come a moment later.
      await expect
        .poll(
          async () => listOfFields((await list()).sessions).map(({ session_id: id, state }) => [id, state]),
          {
            timeout: 8000,
          },
        )
        .toEqual([
          [saved, 'saved'],
          [session.id, 'shared'],
        ])
      const first = await list({ limit: 1 })
      expect(listOfFields(first.sessions)).toHaveLength(1)
      const second = await list({ limit: 1, cursor: first.next_cursor })
      expect(listOfFields(second.sessions)).toMatchObject([{ session_id: session.id }])
      expect(second).not.toHaveProperty('next_cursor')
      expect(listOfFields((await list({ query: 'sAVed oNE' })).sessions)).toMatchObject([
        { session_id: saved },
      ])
      expect((await list({ query: 'nothing like it' })).sessions).toEqual([])
      expect(await list({ cursor: 'x' })).toMatchObject({ code: 'invalid_request' })
    },
  },
  {
    name: '[RF 24] resume_session lists a saved session live, once; an unknown one is not_found',
    covers: ['operation:resume_session', 'result:session_resumed', 'error:not_found', 'status:applied'],
    run: async (stage) => {
      const { device, session } = await stage.attached()
      await stage.must('PUT', `/sessions/${session.id}`, { shared: false })
      const resume = { type: 'resume_session', session_id: session.id }
      const first = await device.ask(resume, { request_id: 'resume-1' })
      expect(first).toMatchObject({ receipt: 'applied', result: { type: 'session_resumed' } })
      const row = fieldsOf(first.result.session)
      expect(row).toMatchObject({ session_id: session.id, activity: 'idle' })
      expect(await device.ask(resume, { request_id: 'resume-1' })).toEqual(first)
      expect((await device.ask(resume)).result).toMatchObject({
        type: 'session_resumed',
        session: { registration_epoch: row.registration_epoch },
      })
      expect((await device.ask(status('resume-1'))).result).toMatchObject({
        receipt: 'applied',
        result: first.result,
      })
      const again = { id: session.id, epoch: Number(row.registration_epoch) }
      expect((await device.attach(again)).result.type).toBe('attached')
      expect(
        await device.ask({ ...resume, session_id: '00000000-0000-7000-8000-000000000000' }),
      ).toMatchObject({ receipt: 'rejected', result: { code: 'not_found' } })
    },
  },
  {
    name: '[RF 26] usage counts what was reported, by day, harness and model',
    covers: ['operation:get_usage', 'result:usage'],
    run: async (stage) => {
      const { device } = await stage.attached()
      await expect
        .poll(async () => fieldsOf((await device.ask({ type: 'get_usage' })).result.totals).turns, {
          timeout: 8000,
        })
        .toBe(1)
      const { result, receipt } = await device.ask({ type: 'get_usage' })
      expect(receipt).toBeNull()
      expect(listOfFields(result.by_day)).toHaveLength(1)
      expect(listOfFields(result.by_harness)).toMatchObject([{ harness: 'switchyard' }])
      expect(listOfFields(result.by_model)).toMatchObject([{ usage: result.totals }])
    },
  },
  {
    name: '[RF 26] settings: what is absent keeps its value, an unknown key writes nothing',
    covers: ['operation:get_settings', 'operation:set_settings', 'result:settings', 'error:invalid_request'],
    run: async (stage) => {
      const device = await stage.device()
      expect((await device.ask({ type: 'get_settings' })).result.type).toBe('settings')
      const set = (settings: object) => device.ask({ type: 'set_settings', settings })
      expect(await set({ model: stage.world.model, effort: 'high' })).toMatchObject({
        receipt: 'applied',
        result: { type: 'settings', model: stage.world.model, effort: 'high' },
      })
      expect((await set({ effort: 'low' })).result).toMatchObject({ model: stage.world.model, effort: 'low' })
      expect((await set({ effort: 'high', approval_mode: 'never' })).result).toMatchObject({
        code: 'invalid_request',
      })
      expect((await device.ask({ type: 'get_settings' })).result).toMatchObject({
        model: stage.world.model,
        effort: 'low',
      })
    },
  },
  {
    name: '[RF 26] pin and settle work for a session that is shared and for one that is not, and for no other',
    covers: [
      ...['operation:pin_thread', 'operation:unpin_thread', 'operation:settle_thread'],
      ...[
        'operation:unsettle_thread',
        'result:thread_pinned',
        'result:thread_settled',
        'error:invalid_request',
      ],
    ],
    run: async (stage) => {
      const { device, session } = await stage.attached()
      const saved = await stage.newSession('not shared')
      for (const id of [session.id, saved]) {
        for (const [type, result] of [
          ['pin_thread', { type: 'thread_pinned', session_id: id, pinned: true }],
          ['unpin_thread', { type: 'thread_pinned', session_id: id, pinned: false }],
          ['settle_thread', { type: 'thread_settled', session_id: id, settled: true }],
          ['unsettle_thread', { type: 'thread_settled', session_id: id, settled: false }],
        ] as const)
          expect(await device.ask({ type, session_id: id })).toMatchObject({ receipt: 'applied', result })
      }
      const nowhere = { session_id: '00000000-0000-7000-8000-000000000000' }
      expect(await device.ask({ type: 'pin_thread', ...nowhere })).toMatchObject({
        receipt: 'rejected',
        result: { code: 'invalid_request' },
      })
    },
  },
  {
    name: '[RF 28] a host-wide change is made once however often it is sent, and other content under its id is a conflict',
    covers: ['error:request_conflict', 'status:applied'],
    run: async (stage) => {
      const { device, session } = await stage.attached()
      const pin = { type: 'pin_thread', session_id: session.id }
      const first = await device.ask(pin, { request_id: 'pin' })
      expect(await device.ask(pin, { request_id: 'pin' })).toEqual(first)
      expect(await device.ask({ ...pin, type: 'unpin_thread' }, { request_id: 'pin' })).toMatchObject({
        receipt: 'rejected',
        result: { code: 'request_conflict' },
      })
      device.cut()
      await device.connect()
      expect((await device.ask(status('pin'))).result).toMatchObject({
        receipt: 'applied',
        result: first.result,
      })
    },
  },
  {
    name: '[D37] what needs a computer that there is none of, and request_share, is unsupported_operation',
    covers: [
      ...['operation:list_directories', 'operation:create_session', 'operation:request_share'],
      ...['operation:get_changes', 'error:unsupported_operation'],
    ],
    run: async (stage) => {
      const { device, session } = await stage.attached()
      const refused = { type: 'error', code: 'unsupported_operation' }
      expect(await device.ask({ type: 'list_directories' })).toMatchObject({ result: refused, receipt: null })
      expect(await device.ask({ type: 'create_session' })).toMatchObject({ result: refused })
      expect((await device.ask({ type: 'request_share' })).result).toMatchObject(refused)
      expect(await device.on(session, { type: 'get_changes' })).toMatchObject({
        result: refused,
        receipt: null,
      })
    },
  },
  {
    name: '[RF 11] the list shows what an attached session waits for, and stands in its snapshot as well',
    covers: ['operation:list_sessions', 'operation:subscribe_sessions', 'result:sessions'],
    run: async (stage) => {
      const { device, session } = await stage.awaitingApproval()
      const { result } = await device.ask({ type: 'subscribe_sessions' })
      const [row] = listOfFields(result.sessions)
      expect(row).toMatchObject({ session_id: session.id, activity: 'awaiting_approval' })
      expect(device.view(session).row).toMatchObject({
        activity: 'awaiting_approval',
        attention: { approval: true },
      })
      expect(listOfFields((await device.ask({ type: 'list_sessions' })).result.sessions)).toEqual([row])
    },
  },
]
