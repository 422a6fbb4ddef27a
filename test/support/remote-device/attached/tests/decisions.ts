import { expect } from 'vitest'
import { fieldsOf } from '../items.ts'
import { asking, COLOUR, toolRequests } from '../stage.ts'
import type { AttachTest } from './attach-test.ts'

const STALE_APPROVAL = { receipt: 'rejected', result: { code: 'stale_approval' } }
const STALE_QUESTION = { receipt: 'rejected', result: { code: 'stale_question' } }
const selected = (...options: string[]) => ({ type: 'selected', options })
const custom = (text: string) => ({ type: 'custom', text })

/** "Identity", "Question cancellation": approvals and questions, answered from devices. */
export const DECISIONS: readonly AttachTest[] = [
  {
    name: '[D05, U19] a device approves, the laptop runs: everyone sees the decision stored, delivered and acted on',
    covers: [
      ...['operation:resolve_approval', 'result:approval_resolved', 'event:approval_requested'],
      ...['event:approval_resolved', 'event:approval_decision', 'decision:stored', 'decision:delivered'],
      'decision:acted_on',
    ],
    run: async (stage) => {
      const { device, session } = await stage.attached()
      const other = await stage.follower(session)
      const word = stage.script(
        { calls: [{ name: 'shell', arguments: { command: 'npm test' } }] },
        { pieces: ['Done.'] },
      )
      await stage.run(session.id, `${word} test`)
      const asked = await device.until(
        session,
        ({ pendingApproval }) => pendingApproval !== null,
        'the approval',
      )
      const batch = fieldsOf(asked.pendingApproval)
      expect(batch.actions).toMatchObject([
        { tool_name: 'shell', details: { text: expect.stringContaining('npm test'), truncated: false } },
      ])
      const approve = { type: 'resolve_approval', batch_id: batch.batch_id, choice: 'approve' }
      expect(await device.on(session, approve)).toMatchObject({
        receipt: 'applied',
        result: { type: 'approval_resolved', batch_id: batch.batch_id, choice: 'approve' },
      })
      const view = await other.until(session, ({ decision }) => decision?.state === 'stored', 'the decision')
      expect(view.pendingApproval).toBeNull()
      // The turn goes on: its laptop has yet to run the call.
      expect(view.turn).not.toBeNull()
      const { body } = await stage.currentRun(session.id)
      expect(toolRequests(body)).toMatchObject([{ name: 'shell', decision: 'approved' }])
      await other.until(session, ({ decision }) => decision?.state === 'delivered', 'the delivery')
      expect((await stage.results(session.id, body, 'approved')).status).toBe(200)
      await other.until(session, ({ turn }) => turn === null, 'the end')
      expect(
        other
          .view(session)
          .seen.filter(({ event }) => event.type === 'approval_decision')
          .map(({ event }) => fieldsOf(event.decision).state),
      ).toEqual(['stored', 'delivered', 'acted_on'])
    },
  },
  {
    name: '[RF 19] a device denies: nothing runs, the turn is cancelled, and the next one is accepted',
    covers: ['result:approval_resolved', 'event:approval_resolved', 'event:turn_cancelled'],
    run: async (stage) => {
      const { device, session, batchId, envelope } = await stage.awaitingApproval()
      expect(
        await device.on(session, { type: 'resolve_approval', batch_id: batchId, choice: 'deny' }),
      ).toMatchObject({ receipt: 'applied', result: { choice: 'deny' } })
      const view = await device.until(session, ({ turn }) => turn === null, 'the end')
      expect(view.lastTurn).toMatchObject({ outcome: 'cancelled' })
      const types = view.seen.map(({ event }) => event.type)
      expect(types.indexOf('approval_resolved')).toBeLessThan(types.indexOf('turn_cancelled'))
      expect(view.items.at(-1)).toMatchObject({ kind: 'tool', state: 'failed' })
      expect((await stage.results(session.id, envelope, 'approved')).status).toBe(422)
      const word = stage.script({ pieces: ['On we go.'] })
      await device.on(session, { type: 'submit_prompt', prompt: `${word} on` })
      await device.until(
        session,
        ({ lastTurn, turn }) => turn === null && lastTurn?.outcome === 'completed',
        'the next',
      )
    },
  },
  {
    name: '[U21] the first decision wins, and whoever comes second is told how it ended beside stale_approval',
    covers: ['error:stale_approval', 'result:approval_resolved'],
    run: async (stage) => {
      const { device, session, batchId } = await stage.awaitingApproval()
      const other = await stage.follower(session)
      const answers = await Promise.all([
        device.on(session, { type: 'resolve_approval', batch_id: batchId, choice: 'approve' }),
        other.on(session, { type: 'resolve_approval', batch_id: batchId, choice: 'deny' }),
      ])
      const applied = answers.filter(({ receipt }) => receipt === 'applied')
      const refused = answers.filter(({ receipt }) => receipt === 'rejected')
      expect([applied.length, refused.length]).toEqual([1, 1])
      expect(refused[0]).toMatchObject(STALE_APPROVAL)
      const [won] = applied
      expect(String(refused[0]?.result.message)).toContain(
        won?.result.choice === 'approve' ? 'approved' : 'denied',
      )
      const [a, b] = [device.view(session), other.view(session)]
      await device.drained()
      await other.drained()
      expect(a.pendingApproval).toBeNull()
      expect(b.pendingApproval).toBeNull()
    },
  },
  {
    name: '[RF 19] a batch of another id is stale_approval and changes nothing; the laptop decides as ever',
    covers: ['error:stale_approval', 'event:approval_resolved'],
    run: async (stage) => {
      const { device, session, envelope, batchId } = await stage.awaitingApproval()
      for (const batch_id of ['', 'another', `${batchId}x`])
        expect(
          await device.on(session, { type: 'resolve_approval', batch_id, choice: 'deny' }),
        ).toMatchObject(STALE_APPROVAL)
      expect(device.view(session).pendingApproval).toMatchObject({ batch_id: batchId })
      expect((await stage.results(session.id, envelope, 'approved')).status).toBe(200)
      const view = await device.until(session, ({ turn }) => turn === null, 'the end')
      expect(view.lastTurn).toMatchObject({ outcome: 'completed' })
      expect(
        await device.on(session, { type: 'resolve_approval', batch_id: batchId, choice: 'approve' }),
      ).toMatchObject(STALE_APPROVAL)
    },
  },
  {
    name: '[U20, U13] a device that comes late finds what waits in its first snapshot, and can answer it',
    covers: ['result:approval_resolved'],
    run: async (stage) => {
      const { device, session, batchId } = await stage.awaitingApproval()
      device.cut()
      const late = await stage.follower(session)
      expect(late.view(session).pendingApproval).toMatchObject({ batch_id: batchId })
      expect(late.view(session).row).toMatchObject({
        activity: 'awaiting_approval',
        attention: { approval: true },
      })
      expect(
        await late.on(session, { type: 'resolve_approval', batch_id: batchId, choice: 'approve' }),
      ).toMatchObject({ receipt: 'applied' })
      await device.comeBack(session)
      await device.until(session, ({ pendingApproval }) => pendingApproval === null, 'the decision')
    },
  },
  {
    name: '[D08, RF 18] a question is answered by a device, and the run goes on by itself',
    covers: [
      ...['operation:answer_question', 'result:question_answered', 'event:question_requested'],
      'event:question_resolved',
    ],
    run: async (stage) => {
      const { device, session } = await stage.awaitingAnswer()
      const question = fieldsOf(device.view(session).pendingQuestion)
      expect(question).toMatchObject({ ...COLOUR, multiple: false, position: 1, chain_length: 1 })
      const late = await stage.follower(session)
      expect(late.view(session).pendingQuestion).toEqual(question)
      expect(late.view(session).row).toMatchObject({
        activity: 'awaiting_question',
        attention: { question: true },
      })
      const answer = { type: 'answer_question', question_id: question.question_id, answer: selected('Green') }
      expect(await device.on(session, answer)).toMatchObject({
        receipt: 'applied',
        result: { type: 'question_answered', question_id: question.question_id },
      })
      expect(await late.on(session, answer)).toMatchObject(STALE_QUESTION)
      const view = await late.until(session, ({ turn }) => turn === null, 'the end')
      expect(view.items.slice(-2)).toMatchObject([
        { kind: 'tool', name: 'ask_user', state: 'succeeded', content: { head: 'User selected: Green' } },
        { kind: 'assistant', text: { head: 'Understood.' } },
      ])
    },
  },
  {
    name: '[RF 18] answers that do not fit are invalid_answer and the question waits on',
    covers: ['error:invalid_answer', 'error:stale_question'],
    run: async (stage) => {
      const { device, session } = await stage.awaitingAnswer()
      const id = device.view(session).pendingQuestion?.question_id
      const bad = [
        selected(),
        selected('Blue', 'Green'),
        selected('blue'),
        selected('Blue '),
        custom(''),
        custom(' \n'),
      ]
      for (const answer of bad)
        expect(await device.on(session, { type: 'answer_question', question_id: id, answer })).toMatchObject({
          receipt: 'rejected',
          result: { code: 'invalid_answer' },
        })
      expect(
        await device.on(session, {
          type: 'answer_question',
          question_id: 'another',
          answer: selected('Blue'),
        }),
      ).toMatchObject(STALE_QUESTION)
      expect(device.view(session).pendingQuestion).toMatchObject({ question_id: id })
      expect(
        await device.on(session, { type: 'answer_question', question_id: id, answer: custom('Rather red') }),
      ).toMatchObject({ receipt: 'applied' })
      const view = await device.until(session, ({ turn }) => turn === null, 'the end')
      expect(view.items.at(-2)).toMatchObject({ content: { head: 'User selected: Rather red' } })
    },
  },
  {
    name: '[RF 18] a chain is answered one question at a time, by any device, and its result comes after the last',
    covers: ['event:question_requested', 'event:question_resolved', 'result:question_answered'],
    run: async (stage) => {
      const several = {
        header: 'Sizes',
        text: 'Which sizes?',
        options: [{ label: 'S' }, { label: 'M' }, { label: 'L' }],
        multiple: true,
      }
      const { device, session } = await stage.awaitingAnswer(COLOUR, several)
      const other = await stage.follower(session)
      const first = fieldsOf(device.view(session).pendingQuestion)
      expect(first).toMatchObject({ position: 1, chain_length: 2 })
      await device.on(session, {
        type: 'answer_question',
        question_id: first.question_id,
        answer: selected('Blue'),
      })
      const { pendingQuestion } = await other.until(
        session,
        (view) => view.pendingQuestion !== null && view.pendingQuestion.question_id !== first.question_id,
        'the second question',
      )
      const second = fieldsOf(pendingQuestion)
      expect(second).toMatchObject({ header: 'Sizes', multiple: true, position: 2, chain_length: 2 })
      const repeated = {
        type: 'answer_question',
        question_id: second.question_id,
        answer: selected('S', 'S'),
      }
      expect(await other.on(session, repeated)).toMatchObject({ result: { code: 'invalid_answer' } })
      await other.on(session, {
        type: 'answer_question',
        question_id: second.question_id,
        answer: selected('L', 'S'),
      })
      const view = await device.until(session, ({ turn }) => turn === null, 'the end')
      expect(view.items.at(-2)).toMatchObject({
        content: { head: '[Colour] Which colour? → Blue\n[Sizes] Which sizes? → L, S' },
      })
    },
  },
  {
    name: '"dismisses the entire active question chain": cancel_question cancels the turn, and a stale id changes nothing',
    covers: [
      'operation:cancel_question',
      'result:question_cancelled',
      'event:turn_cancelled',
      'error:stale_question',
    ],
    run: async (stage) => {
      const { device, session } = await stage.awaitingAnswer(COLOUR, { ...COLOUR, header: 'Again' })
      expect(device.view(session).snapshot.capabilities).toContain('cancel_question')
      const id = device.view(session).pendingQuestion?.question_id
      expect(await device.on(session, { type: 'cancel_question', question_id: 'another' })).toMatchObject(
        STALE_QUESTION,
      )
      expect(device.view(session).pendingQuestion).toMatchObject({ question_id: id })
      expect(await device.on(session, { type: 'cancel_question', question_id: id })).toMatchObject({
        receipt: 'applied',
        result: { type: 'question_cancelled', question_id: id },
      })
      const view = await device.until(session, ({ turn }) => turn === null, 'the end')
      expect(view.pendingQuestion).toBeNull()
      expect(view.lastTurn).toMatchObject({ outcome: 'cancelled' })
      expect(await device.on(session, { type: 'cancel_question', question_id: id })).toMatchObject(
        STALE_QUESTION,
      )
    },
  },
  {
    name: '[U21] two devices answer at once: one is applied, the other is stale_question, and the tool gets one result',
    covers: ['error:stale_question', 'result:question_answered'],
    run: async (stage) => {
      const { device, session } = await stage.awaitingAnswer()
      const other = await stage.follower(session)
      const id = device.view(session).pendingQuestion?.question_id
      const answers = await Promise.all(
        [device, other].map((one, index) =>
          one.on(session, {
            type: 'answer_question',
            question_id: id,
            answer: selected(index === 0 ? 'Blue' : 'Green'),
          }),
        ),
      )
      expect(answers.map(({ receipt }) => receipt).sort()).toEqual(['applied', 'rejected'])
      const won = answers[0]?.receipt === 'applied' ? 'Blue' : 'Green'
      for (const one of [device, other]) {
        const view = await one.until(session, ({ turn }) => turn === null, 'the end')
        expect(view.items.filter(({ kind }) => kind === 'tool')).toMatchObject([
          { content: { head: `User selected: ${won}` } },
        ])
      }
    },
  },
  {
    name: '[D02] the calls of one pause that ask are one batch, and one decision approves them all',
    covers: ['result:approval_resolved'],
    run: async (stage) => {
      const { device, session } = await stage.attached()
      const commands = ['one', 'two', 'three'].map((command) => ({ name: 'shell', arguments: { command } }))
      const word = stage.script({ calls: commands }, { pieces: ['All done.'] })
      await stage.run(session.id, `${word} all`)
      const { pendingApproval } = await device.until(
        session,
        (view) => view.pendingApproval !== null,
        'the batch',
      )
      const batch = fieldsOf(pendingApproval)
      expect(batch.actions).toHaveLength(3)
      await device.on(session, { type: 'resolve_approval', batch_id: batch.batch_id, choice: 'approve' })
      const { body } = await stage.currentRun(session.id)
      expect(toolRequests(body).map(({ decision }) => decision)).toEqual(['approved', 'approved', 'approved'])
      await stage.results(session.id, body, 'approved')
      await device.until(session, ({ turn }) => turn === null, 'the end')
    },
  },
  {
    name: '[D08] a laptop that declares ask_user may be answered by a device, and the repeat of its own answer is ignored',
    covers: ['result:question_answered'],
    run: async (stage) => {
      const { device, session } = await stage.attached()
      const word = stage.script({ calls: [asking(COLOUR)] }, { pieces: ['Fine.'] })
      const envelope = await stage.run(session.id, `${word} ask`)
      expect(toolRequests(envelope)).toMatchObject([{ name: 'ask_user' }])
      const { pendingQuestion } = await device.until(
        session,
        (view) => view.pendingQuestion !== null,
        'the question',
      )
      await device.on(session, {
        type: 'answer_question',
        question_id: pendingQuestion?.question_id,
        answer: selected('Blue'),
      })
      const view = await device.until(session, ({ turn }) => turn === null, 'the end')
      expect(view.items.at(-2)).toMatchObject({ content: { head: 'User selected: Blue' } })
      const late = await stage.results(session.id, envelope)
      expect([200, 422]).toContain(late.status)
      await device.drained()
      expect(device.view(session).items.filter(({ kind }) => kind === 'tool')).toHaveLength(1)
    },
  },
]
