import { expect } from 'vitest'
import { fieldsOf } from '../items.ts'
import { READ, SHELL } from '../stage.ts'
import type { AttachTest } from './attach-test.ts'

/** Prompts that may wait in a session. */
const QUEUE_LIMIT = 100

/** "Operations": prompts, steering, the queue, and stopping a turn. */
export const PROMPTS: readonly AttachTest[] = [
  {
    name: '[D07, RF 16] submit_prompt starts a run without a laptop, on the policy of the last one',
    covers: ['operation:submit_prompt', 'result:prompt_accepted', 'disposition:started', 'receipt:applied'],
    run: async (stage) => {
      const { device, session } = await stage.attached()
      const word = stage.script({ pieces: ['At your ', 'service.'] })
      const answer = await device.on(session, { type: 'submit_prompt', prompt: `  ${word} serve \n` })
      expect(answer).toMatchObject({
        receipt: 'applied',
        result: { type: 'prompt_accepted', disposition: 'started' },
      })
      const view = await device.until(
        session,
        ({ turn, items }) => turn === null && items.length === 4,
        'the end',
      )
      expect(view.items.slice(-2)).toMatchObject([
        { kind: 'user', text: { head: `${word} serve` } },
        { kind: 'assistant', text: { head: 'At your service.' } },
      ])
    },
  },
  {
    name: '[RF 16] an empty prompt is invalid_request and one that begins with / is unsupported_operation, also while busy',
    covers: ['error:invalid_request', 'error:unsupported_operation', 'receipt:rejected'],
    run: async (stage) => {
      const { device, session, hold, running } = await stage.streaming()
      for (const type of ['submit_prompt', 'steer', 'queue']) {
        for (const prompt of ['', ' \n\t'])
          expect(await device.on(session, { type, prompt })).toMatchObject({
            receipt: 'rejected',
            result: { code: 'invalid_request' },
          })
        for (const prompt of ['/help', '  /stop now'])
          expect(await device.on(session, { type, prompt })).toMatchObject({
            receipt: 'rejected',
            result: { code: 'unsupported_operation' },
          })
      }
      hold.release()
      await running
    },
  },
  {
    name: '[RF 16] a second prompt is busy, and queued it runs when the first is over',
    covers: [
      ...['error:busy', 'operation:queue', 'disposition:queued', 'event:turn_started', 'event:turn_finished'],
    ],
    run: async (stage) => {
      const { device, session, hold, running } = await stage.streaming()
      const word = stage.script({ pieces: ['Second.'] })
      const second = { prompt: `${word} then this` }
      expect(await device.on(session, { type: 'submit_prompt', ...second })).toMatchObject({
        receipt: 'rejected',
        result: { code: 'busy' },
      })
      expect(await device.on(session, { type: 'queue', ...second })).toMatchObject({
        receipt: 'applied',
        result: { disposition: 'queued' },
      })
      const queued = await device.until(
        session,
        ({ pendingPrompts }) => pendingPrompts.length === 1,
        'the queue',
      )
      expect(queued.pendingPrompts).toMatchObject([{ kind: 'queue', text: { text: second.prompt } }])
      const late = await stage.follower(session)
      expect(late.view(session).pendingPrompts).toEqual(queued.pendingPrompts)
      hold.release()
      await running
      for (const one of [device, late]) {
        const view = await one.until(
          session,
          ({ items, turn, pendingPrompts }) =>
            turn === null && items.length === 4 && pendingPrompts.length === 0,
          'the second end',
        )
        expect(view.items.at(-1)).toMatchObject({ text: { head: 'Second.' } })
      }
    },
  },
  {
    name: '[RF 16] with nothing running, queue and steer are not_running',
    covers: ['error:not_running', 'operation:steer'],
    run: async (stage) => {
      const { device, session } = await stage.attached()
      for (const type of ['queue', 'steer'])
        expect(await device.on(session, { type, prompt: 'now' })).toMatchObject({
          receipt: 'rejected',
          result: { code: 'not_running' },
        })
    },
  },
  {
    name: '[D02, RF 16] steering reaches the running turn, which keeps its id; a turn that waits for a decision takes none',
    covers: ['disposition:steered', 'error:unsupported_operation'],
    run: async (stage) => {
      const { device, session, hold, running } = await stage.streaming()
      const turnId = device.view(session).turn?.id
      const word = stage.script({ pieces: ['Steered.'] })
      expect(await device.on(session, { type: 'steer', prompt: `${word} rather this` })).toMatchObject({
        receipt: 'applied',
        result: { disposition: 'steered' },
      })
      hold.release()
      const view = await device.until(session, ({ turn }) => turn === null, 'the end')
      expect(view.lastTurn).toMatchObject({ turn_id: turnId, outcome: 'completed' })
      expect(view.items.at(-1)).toMatchObject({ text: { head: 'Steered.' } })
      expect(view.items).toContainEqual(
        expect.objectContaining({
          kind: 'user',
          text: expect.objectContaining({ head: `${word} rather this` }),
        }),
      )
      await running.catch(() => undefined)
      const asking = await stage.awaitingApproval()
      expect(await asking.device.on(asking.session, { type: 'steer', prompt: 'x' })).toMatchObject({
        receipt: 'rejected',
        result: { code: 'unsupported_operation' },
      })
    },
  },
  {
    name: '[D07] a session that never ran and has no policy to run under says what to do',
    covers: ['error:invalid_request'],
    run: async (stage) => {
      const device = await stage.device()
      const id = await stage.newSession()
      await stage.must('PUT', `/sessions/${id}`, { shared: true })
      const session = await stage.refOf(device, id)
      await device.attach(session)
      const { result, receipt } = await device.on(session, { type: 'submit_prompt', prompt: 'hello' })
      expect(result).toMatchObject({ type: 'error', code: 'invalid_request' })
      expect(String(result.message)).toMatch(/policy/i)
      expect(receipt).toBe('rejected')
    },
  },
  {
    name: '[RF 17, U26] cancel_turn ends the named turn for everyone; the same again, and any other id, is stale_turn',
    covers: [
      ...['operation:cancel_turn', 'result:turn_cancelled', 'event:turn_cancelled', 'error:stale_turn'],
      'outcome:cancelled',
    ],
    run: async (stage) => {
      const { device, session, hold, running } = await stage.streaming()
      const other = await stage.follower(session)
      const turnId = String(device.view(session).turn?.id)
      const stale = { receipt: 'rejected', result: { code: 'stale_turn' } }
      const wrong = 'turn:00000000-0000-7000-8000-000000000000'
      expect(await other.on(session, { type: 'cancel_turn', turn_id: wrong })).toMatchObject(stale)
      expect(await other.on(session, { type: 'cancel_turn', turn_id: turnId })).toMatchObject({
        receipt: 'applied',
        result: { type: 'turn_cancelled', turn_id: turnId },
      })
      expect(await device.on(session, { type: 'cancel_turn', turn_id: turnId })).toMatchObject(stale)
      for (const one of [device, other]) {
        const view = await one.until(session, ({ turn }) => turn === null, 'the end')
        expect(view.lastTurn).toMatchObject({ turn_id: turnId, outcome: 'cancelled' })
      }
      hold.release()
      await running.catch(() => undefined)
    },
  },
  {
    name: '[RF 17] a queued prompt behind a cancelled turn still runs',
    covers: ['result:turn_cancelled', 'disposition:queued'],
    run: async (stage) => {
      const { device, session, hold, running } = await stage.streaming()
      const word = stage.script({ pieces: ['Still here.'] })
      await device.on(session, { type: 'queue', prompt: `${word} after that` })
      await device.on(session, { type: 'cancel_turn', turn_id: device.view(session).turn?.id })
      const view = await device.until(
        session,
        ({ turn, lastTurn }) => turn === null && lastTurn?.outcome === 'completed',
        'the queued run',
      )
      expect(view.items.at(-1)).toMatchObject({ text: { head: 'Still here.' } })
      hold.release()
      await running.catch(() => undefined)
    },
  },
  {
    name: '[RF 13] a run whose model fails is told as a turn_finished that failed',
    covers: ['outcome:failed'],
    run: async (stage) => {
      const { device, session } = await stage.attached()
      const word = stage.script({ status: 400, error: 'no' })
      await device.on(session, { type: 'submit_prompt', prompt: `${word} fail` })
      const view = await device.until(
        session,
        ({ lastTurn }) => lastTurn?.outcome === 'failed',
        'the failure',
      )
      expect(view.turn).toBeNull()
      expect(view.row.attention).toEqual({ approval: false, question: false })
    },
  },
  {
    name: '[D07] a run that a device started is offered no tool of the laptop',
    covers: ['operation:submit_prompt'],
    run: async (stage) => {
      const { device, session } = await stage.attached()
      let offered: string[] = []
      const word = stage.script(({ tools }) => {
        offered = tools
        return { pieces: ['Seen.'] }
      })
      await device.on(session, { type: 'submit_prompt', prompt: `${word} what can you do` })
      await device.until(session, ({ turn, items }) => turn === null && items.length === 4, 'the end')
      expect(offered).toContain('ask_user')
      expect(offered).not.toContain(SHELL.name)
      expect(offered).not.toContain(READ.name)
    },
  },
  {
    name: '[RF 28] a queue that is full refuses for now: the same request is looked at again',
    covers: ['operation:queue', 'error:rate_limited'],
    long: true,
    run: async (stage) => {
      const { device, session, hold, running } = await stage.streaming()
      const prompts = Array.from({ length: QUEUE_LIMIT }, (_, index) => `wait ${index}`)
      for (const prompt of prompts)
        expect((await device.on(session, { type: 'queue', prompt })).receipt).toBe('applied')
      const late = { type: 'queue', prompt: 'one too many' }
      const refused = { receipt: 'rejected', result: { type: 'error', code: 'rate_limited' } }
      expect(await device.on(session, late, 'late')).toMatchObject(refused)
      const status = await device.on(session, { type: 'get_request_status', target_request_id: 'late' })
      expect(status.result).toMatchObject({ receipt: 'unknown' })
      await stage.must('DELETE', `/sessions/${session.id}`)
      hold.release()
      await running.catch(() => undefined)
    },
  },
  {
    name: '[D47] a prompt for an encrypted session needs the computer that has its key',
    covers: ['operation:submit_prompt', 'operation:steer', 'operation:queue', 'error:owner_unavailable'],
    run: async (stage) => {
      const device = await stage.device()
      const { session: made } = await stage.must('POST', '/sessions', { title: 'locked', key_id: 'key-1' })
      const id = String(fieldsOf(made).id)
      await stage.must('PUT', `/sessions/${id}`, { shared: true })
      const session = await stage.refOf(device, id)
      await device.attach(session)
      for (const type of ['submit_prompt', 'steer', 'queue'])
        expect(await device.on(session, { type, prompt: 'go on' })).toMatchObject({
          receipt: 'rejected',
          result: { type: 'error', code: 'owner_unavailable' },
        })
      expect(device.view(session)).toMatchObject({ items: [], turn: null, pendingPrompts: [] })
    },
  },
]
