import { expect } from 'vitest'
import type { Fields } from '../../shapes.ts'
import { isError } from '../device.ts'
import { fieldsOf } from '../items.ts'
import type { SessionView } from '../reducer.ts'
import { READ } from '../stage.ts'
import type { AttachTest } from './attach-test.ts'

/** Nearly as much as one answer may hold: three of them are more than a ring keeps (D33). */
const FLOOD = { pieces: Array.from({ length: 120 }, () => 'y'.repeat(16 * 1024)) }

/** "Attaching, ordering and resuming". */
export const ATTACHING: readonly AttachTest[] = [
  {
    name: '[RF 12] a fresh attach is answered with a snapshot, without a word of a resync',
    covers: ['operation:attach_session', 'result:attached'],
    run: async (stage) => {
      const { device, session } = await stage.attached()
      const { result } = await device.attach(session)
      expect(result).toMatchObject({
        gateway_id: device.phone.gatewayId,
        instance_id: device.phone.instanceId,
      })
      expect(result).not.toHaveProperty('resync')
      expect(device.view(session).row).toMatchObject({
        session_id: session.id,
        registration_epoch: session.epoch,
        activity: 'idle',
        health: 'live',
      })
      expect(device.view(session).items.map(({ kind }) => kind)).toEqual(['user', 'assistant'])
      expect(device.view(session).lastTurn).toMatchObject({ outcome: 'completed' })
    },
  },
  {
    name: '[RF 10] attaching to what is not shared is not_found, under another epoch stale_session; detach never fails',
    covers: ['error:not_found', 'error:stale_session', 'operation:detach_session', 'result:detached'],
    run: async (stage) => {
      const { device, session } = await stage.attached()
      const elsewhere = { id: '00000000-0000-7000-8000-000000000000', epoch: 1 }
      expect(await device.attach(elsewhere)).toMatchObject({ result: { code: 'not_found' }, receipt: null })
      const older = { ...session, epoch: session.epoch - 1 }
      expect(await device.attach(older)).toMatchObject({ result: { code: 'stale_session' }, receipt: null })
      for (const one of [session, older, elsewhere])
        expect((await device.detach(one)).result).toEqual({ type: 'detached' })
    },
  },
  {
    name: '[RF 13, U10] a run of the laptop is told as it happens, and its snapshot says the same',
    covers: [
      ...['event:turn_started', 'event:text_delta', 'event:tool_started', 'event:tool_finished'],
      ...['event:turn_finished', 'event:snapshot', 'outcome:completed'],
    ],
    run: async (stage) => {
      const { device, session } = await stage.attached()
      const witness = await stage.device()
      const word = stage.script(
        { pieces: ['Let me ', 'look. '], calls: [READ] },
        { pieces: ['It is ', 'fine.'] },
      )
      const envelope = await stage.run(session.id, `${word} look`)
      await device.until(session, ({ items }) => items.at(-1)?.kind === 'tool', 'the call')
      const paused = await stage.agreement(session, [device], witness)
      expect(paused.known).toEqual(paused.fresh)
      expect((await stage.results(session.id, envelope)).status).toBe(200)
      await device.until(
        session,
        ({ turn, lastTurn }) => turn === null && lastTurn?.outcome === 'completed',
        'the end',
      )
      const ended = await stage.agreement(session, [device], witness)
      expect(ended.known).toEqual(ended.fresh)
      expect(device.view(session).items.slice(-4)).toMatchObject([
        { kind: 'user', text: { head: `${word} look` } },
        { kind: 'assistant', text: { head: 'Let me look. ' } },
        { kind: 'tool', name: 'read_file', state: 'succeeded', content: { head: 'result of read_file' } },
        { kind: 'assistant', text: { head: 'It is fine.' } },
      ])
    },
  },
  {
    name: '[RF 12, U01] coming back with a cursor gives exactly the events behind it, and the state is kept',
    covers: ['result:resumed'],
    run: async (stage) => {
      const { device, session } = await stage.streaming().then(async (streaming) => {
        streaming.device.cut()
        streaming.hold.release()
        await streaming.running
        return streaming
      })
      const witness = await stage.device()
      const cursor = device.view(session).cursor
      const { result } = await device.comeBack(session)
      expect(result).toEqual({
        type: 'resumed',
        gateway_id: device.phone.gatewayId,
        instance_id: device.phone.instanceId,
        next_sequence: cursor + 1,
      })
      await device.until(session, ({ lastTurn }) => lastTurn?.outcome === 'completed', 'the end')
      const { known, fresh } = await stage.agreement(session, [device], witness)
      expect(known).toEqual(fresh)
      expect(device.view(session).items.at(-1)).toMatchObject({ text: { head: 'One two three.' } })
    },
  },
  {
    name: '[RF 12] a cursor at the watermark resumes with the snapshot_id it came with, and with no other',
    covers: ['resync:sequence_gap'],
    run: async (stage) => {
      const { device, session } = await stage.attached()
      const { cursor } = device.view(session)
      expect((await device.resume(session)).result).toMatchObject({
        type: 'resumed',
        next_sequence: cursor + 1,
      })
      for (const changes of [{ snapshot_id: undefined }, { snapshot_id: 'another' }] satisfies Fields[]) {
        expect((await device.resume(session, changes)).result).toMatchObject({
          type: 'attached',
          resync: 'sequence_gap',
        })
      }
    },
  },
  {
    name: '[RF 12] a cursor above the last sequence, and one of another gateway, are told why they were not replayed',
    covers: ['resync:sequence_gap', 'resync:gateway_restarted'],
    run: async (stage) => {
      const { device, session } = await stage.attached()
      const { cursor } = device.view(session)
      const wrong: [Fields, string][] = [
        [{ last_sequence: cursor + 1 }, 'sequence_gap'],
        [{ last_sequence: 9_007_199_254_740_000 }, 'sequence_gap'],
        [{ gateway_id: '0'.repeat(32) }, 'gateway_restarted'],
        [{ instance_id: '0'.repeat(32) }, 'gateway_restarted'],
      ]
      for (const [changes, resync] of wrong) {
        expect((await device.resume(session, changes)).result).toMatchObject({ type: 'attached', resync })
      }
      // Without the instance the sequence alone decides.
      expect((await device.resume(session, { instance_id: undefined })).result).toMatchObject({
        type: 'resumed',
      })
    },
  },
  {
    name: '[U04] asking to resume twice, on one socket and on two, shows the text once',
    covers: ['result:resumed'],
    run: async (stage) => {
      const { device, session, hold, running } = await stage.streaming()
      const twin = await stage.follower(session)
      const again = await Promise.all([device.resume(session), twin.resume(session)])
      for (const { result } of again) expect(result.type).toBe('resumed')
      expect((await device.resume(session)).result.type).toBe('resumed')
      hold.release()
      await running
      for (const one of [device, twin]) {
        const view = await one.until(session, ({ turn }) => turn === null, 'the end')
        expect(view.items.at(-1)).toMatchObject({ text: { head: 'One two three.' } })
      }
    },
  },
  {
    name: '[U05, U08] a prompt that is accepted and has no answer yet can be attached to, and the text simply arrives',
    covers: ['event:text_delta'],
    run: async (stage) => {
      const { device, session, hold, running } = await stage.streaming({ pieces: [] })
      expect(device.view(session).turn).toMatchObject({ live: { tail: '', bytes: 0 } })
      expect(device.view(session).row.activity).toBe('running')
      hold.release()
      await running
      const view = await device.until(session, ({ turn }) => turn === null, 'the end')
      expect(view.items.at(-1)).toMatchObject({ text: { head: 'three.' } })
    },
  },
  {
    name: '[RF 11] after a detach nothing comes, and attaching again tells what was missed',
    covers: ['result:detached', 'result:resumed'],
    run: async (stage) => {
      const { device, session, hold, running } = await stage.streaming()
      await device.detach(session)
      const { cursor } = device.view(session)
      hold.release()
      await running
      await device.drained()
      expect(device.view(session).cursor).toBe(cursor)
      expect((await device.resume(session)).result).toMatchObject({ type: 'resumed' })
      const view = await device.until(session, ({ turn }) => turn === null, 'the end')
      expect(view.items.at(-1)).toMatchObject({ text: { head: 'One two three.' } })
    },
  },
  {
    name: '[RF 11, D03] unshared it closes for everyone who is attached; shared again it has a new epoch',
    covers: ['event:session_closed', 'closed:sharing_disabled', 'error:stale_session'],
    run: async (stage) => {
      const { device, session } = await stage.attached()
      const other = await stage.follower(session)
      await stage.must('PUT', `/sessions/${session.id}`, { shared: false })
      for (const one of [device, other]) {
        const closed = await one.untilFrame(({ event }) => fieldsOf(event ?? {}).type === 'session_closed')
        expect(closed).toMatchObject({ session_id: session.id, event: { reason: 'sharing_disabled' } })
      }
      expect(await device.attach(session)).toMatchObject({ result: { code: 'not_found' } })
      await stage.must('PUT', `/sessions/${session.id}`, { shared: true })
      const again = await stage.refOf(device, session.id)
      expect(again.epoch).toBeGreaterThan(session.epoch)
      expect(await device.attach(session)).toMatchObject({ result: { code: 'stale_session' } })
      expect((await device.attach(again)).result.type).toBe('attached')
    },
  },
  {
    name: '[RF 11] a session that is archived or deleted while a device is attached closes as owner_exited',
    covers: ['closed:owner_exited'],
    run: async (stage) => {
      for (const end of ['archived', 'deleted']) {
        const { device, session } = await stage.attached()
        if (end === 'archived') await stage.must('PUT', `/sessions/${session.id}`, { archived: true })
        else await stage.must('DELETE', `/sessions/${session.id}`)
        const closed = await device.untilFrame(({ event }) => fieldsOf(event ?? {}).type === 'session_closed')
        expect(closed.event).toEqual({ type: 'session_closed', reason: 'owner_exited' })
        expect(isError((await device.attach(session)).result, 'not_found')).toBe(true)
      }
    },
  },
  {
    name: '[RF 8] on a thread-named connection attach, events, snapshots and closes have thread names',
    covers: ['operation:attach_session', 'event:session_closed', 'event:turn_finished', 'event:snapshot'],
    run: async (stage) => {
      const device = await stage.device('thread')
      const id = await stage.newSession()
      const word = stage.script({ pieces: ['my session_id'] })
      await stage.run(id, word)
      const session = await stage.refOf(device, id)
      await device.attach(session)
      await stage.run(id, word)
      const view = await device.until(
        session,
        ({ turn, items }) => turn === null && items.length === 4,
        'the end',
      )
      expect(view.items.at(-1)).toMatchObject({ text: { head: 'my session_id' } })
      await stage.must('PUT', `/sessions/${id}`, { shared: false })
      await device.untilFrame(({ event }) => fieldsOf(event ?? {}).type === 'thread_closed')
    },
  },
  {
    name: '[RF 12, D33] a cursor that the ring has passed is lagged, and the snapshot is fresh',
    covers: ['resync:lagged'],
    long: true,
    run: async (stage) => {
      const { device, session } = await stage.attached()
      device.cut()
      for (let run = 0; run < 3; run++) await stage.run(session.id, `${stage.script(FLOOD)} much`)
      expect((await device.comeBack(session)).result).toMatchObject({ type: 'attached', resync: 'lagged' })
    },
  },
  {
    name: '[D35, U12] a device that does not keep up is told that it lagged and gets a snapshot; another one misses nothing',
    covers: ['event:resync_required', 'resync_required:lagged', 'event:snapshot'],
    long: true,
    run: async (stage) => {
      const { device: slow, session } = await stage.attached()
      const quick = await stage.follower(session)
      for (let run = 0; run < 7; run++) {
        await stage.run(session.id, `${stage.script(FLOOD)} flood`)
        // Whatever a device sends shows that it reads.
        await quick.drained()
      }
      await stage.run(session.id, `${stage.script({ pieces: ['Enough.'] })} stop`)
      const isEnd = ({ turn, items }: SessionView) => {
        const last = items.at(-1)
        return turn === null && last?.kind === 'assistant' && last.text.head === 'Enough.'
      }
      await quick.until(session, isEnd, 'the end')
      await slow.drained()
      await slow.until(session, isEnd, 'the end')
      const from = slow.log.findIndex(({ event }) => fieldsOf(event ?? {}).type === 'resync_required')
      expect(slow.log[from]).toMatchObject({ event: { reason: 'lagged' } })
      expect(quick.log.some(({ event }) => fieldsOf(event ?? {}).type === 'resync_required')).toBe(false)
    },
  },
]
