import { expect } from 'vitest'
import type { AttachTest } from './attach-test.ts'

const status = (target: string) => ({ type: 'get_request_status', target_request_id: target })

/** "Receipts": at most once per device and request id, over any reconnect. */
export const RECEIPTS: readonly AttachTest[] = [
  {
    name: '[U14] the same request any number of times, over a reconnect, is one action and one answer',
    covers: ['receipt:applied', 'operation:submit_prompt'],
    run: async (stage) => {
      const { device, session } = await stage.attached()
      const word = stage.script({ pieces: ['Once.'] })
      const submit = { type: 'submit_prompt', prompt: `${word} once` }
      const first = await device.on(session, submit, 'same')
      expect(first).toMatchObject({ receipt: 'applied', result: { disposition: 'started' } })
      expect(await device.on(session, submit, 'same')).toEqual(first)
      device.cut()
      await device.comeBack(session)
      expect(await device.on(session, { prompt: submit.prompt, type: submit.type }, 'same')).toEqual(first)
      const view = await device.until(
        session,
        ({ turn, items }) => turn === null && items.length >= 4,
        'the end',
      )
      expect(await device.on(session, submit, 'same')).toEqual(first)
      await device.drained()
      expect(view.items).toHaveLength(4)
    },
  },
  {
    name: '[U14] two copies sent at once are one action',
    covers: ['receipt:applied'],
    run: async (stage) => {
      const { device, session } = await stage.attached()
      const word = stage.script({ pieces: ['Once.'] })
      const submit = { type: 'submit_prompt', prompt: `${word} once` }
      const answers = await Promise.all([0, 1, 2].map(() => device.on(session, submit, 'twins')))
      for (const answer of answers) expect(answer).toEqual(answers[0])
      const view = await device.until(
        session,
        ({ turn, items }) => turn === null && items.length >= 4,
        'the end',
      )
      expect(view.items).toHaveLength(4)
    },
  },
  {
    name: '[RF 28] the same id with other content is request_conflict, and the first receipt stays',
    covers: ['error:request_conflict', 'receipt:rejected'],
    run: async (stage) => {
      const { device, session } = await stage.attached()
      const word = stage.script({ pieces: ['Once.'] })
      const submit = { type: 'submit_prompt', prompt: `${word} once` }
      const first = await device.on(session, submit, 'id')
      for (const other of [
        { type: 'submit_prompt', prompt: `${word} twice` },
        { type: 'queue', prompt: `${word} once` },
        { type: 'cancel_turn', turn_id: 'x' },
      ])
        expect(await device.on(session, other, 'id')).toMatchObject({
          receipt: 'rejected',
          result: { code: 'request_conflict' },
        })
      expect(await device.on(session, submit, 'id')).toEqual(first)
    },
  },
  {
    name: '[RF 28] a refusal is kept as well: a repeated request is refused again after the reason is gone',
    covers: ['error:busy', 'receipt:rejected', 'status:rejected'],
    run: async (stage) => {
      const { device, session, hold, running } = await stage.streaming()
      const submit = { type: 'submit_prompt', prompt: 'later' }
      const refused = await device.on(session, submit, 'early')
      expect(refused).toMatchObject({ receipt: 'rejected', result: { code: 'busy' } })
      hold.release()
      await running
      await device.until(session, ({ turn }) => turn === null, 'the end')
      expect(await device.on(session, submit, 'early')).toEqual(refused)
      expect((await device.on(session, status('early'))).result).toMatchObject({
        receipt: 'rejected',
        result: { code: 'busy' },
      })
    },
  },
  {
    name: '[RF 28, U15] get_request_status says what became of it, with the session and without, and of nobody else’s',
    covers: [
      ...['operation:get_request_status', 'result:request_status', 'status:applied', 'status:unknown'],
    ],
    run: async (stage) => {
      const { device, session } = await stage.attached()
      const other = await stage.follower(session)
      const word = stage.script({ pieces: ['Done.'] })
      const sent = await device.on(session, { type: 'submit_prompt', prompt: `${word} do` }, 'mine')
      const known = { target_request_id: 'mine', receipt: 'applied', result: sent.result }
      expect(await device.on(session, status('mine'))).toMatchObject({ result: known, receipt: null })
      expect(await device.ask(status('mine'))).toMatchObject({ result: known })
      expect(await device.ask(status('mine'), { session_id: session.id })).toMatchObject({ result: known })
      const unknown = { type: 'request_status', target_request_id: 'mine', receipt: 'unknown' }
      expect((await other.on(session, status('mine'))).result).toEqual(unknown)
      expect((await other.ask(status('mine'))).result).toEqual(unknown)
      const older = { ...session, epoch: session.epoch - 1 }
      expect((await device.on(older, status('mine'))).result).toEqual(unknown)
      expect((await device.ask(status('never'))).result).toMatchObject({ receipt: 'unknown' })
    },
  },
  {
    name: '[RF 10] a mutation that is refused before its session leaves no receipt: the id can be sent again',
    covers: ['error:stale_session', 'error:not_found', 'receipt:rejected', 'status:unknown'],
    run: async (stage) => {
      const { device, session } = await stage.attached()
      const word = stage.script({ pieces: ['At last.'] })
      const submit = { type: 'submit_prompt', prompt: `${word} go` }
      const refusals: [typeof session, string][] = [
        [{ ...session, epoch: session.epoch - 1 }, 'stale_session'],
        [{ id: '00000000-0000-7000-8000-000000000000', epoch: 1 }, 'not_found'],
      ]
      for (const [elsewhere, code] of refusals)
        expect(await device.on(elsewhere, submit, 'again')).toMatchObject({
          receipt: 'rejected',
          result: { code },
        })
      expect((await device.ask(status('again'))).result).toMatchObject({ receipt: 'unknown' })
      expect(await device.on(session, submit, 'again')).toMatchObject({ receipt: 'applied' })
    },
  },
  {
    name: '[U14] a crowd of copies is one action, however many of them may wait for its answer',
    covers: ['receipt:applied'],
    run: async (stage) => {
      const { device, session } = await stage.attached()
      const word = stage.script({ pieces: ['Once.'] })
      const submit = { type: 'submit_prompt', prompt: `${word} once` }
      const answers = await Promise.all(Array.from({ length: 12 }, () => device.on(session, submit, 'crowd')))
      const applied = answers.filter(({ receipt }) => receipt === 'applied')
      expect(applied.length).toBeGreaterThanOrEqual(4)
      for (const answer of applied) expect(answer).toEqual(applied[0])
      for (const { result, receipt } of answers)
        if (receipt === 'rejected') expect(result.code).toBe('rate_limited')
      expect(await device.on(session, submit, 'crowd')).toEqual(applied[0])
      const view = await device.until(
        session,
        ({ turn, items }) => turn === null && items.length >= 4,
        'the end',
      )
      expect(view.items).toHaveLength(4)
    },
  },
  {
    name: '[RF 10] however many requests come at once, every one is answered, and the next is served',
    covers: ['operation:get_history'],
    run: async (stage) => {
      const { device, session } = await stage.attached()
      const answers = await Promise.all(
        Array.from({ length: 80 }, () => device.on(session, { type: 'get_history', limit: 40 })),
      )
      for (const { result } of answers)
        expect(['history', 'rate_limited']).toContain(result.type === 'error' ? result.code : result.type)
      expect((await device.on(session, { type: 'get_history', limit: 1 })).result.type).toBe('history')
    },
  },
]
