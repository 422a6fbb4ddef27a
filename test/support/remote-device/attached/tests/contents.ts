import { expect } from 'vitest'
import type { AttachedDevice, SessionRef } from '../device.ts'
import { fieldsOf, itemsOf, listOfFields } from '../items.ts'
import { READ } from '../stage.ts'
import type { AttachTest } from './attach-test.ts'

async function wholeContent(
  device: AttachedDevice,
  session: SessionRef,
  contentId: unknown,
  maxBytes: number,
): Promise<string> {
  let text = ''
  let offset: unknown = 0
  while (offset !== undefined) {
    const { result } = await device.on(session, {
      type: 'get_content',
      content_id: contentId,
      offset,
      max_bytes: maxBytes,
    })
    expect(result).toMatchObject({ type: 'content', content_id: contentId, offset })
    text += String(result.text)
    offset = result.next_offset
  }
  return text
}

/** "Size": history in pages, texts in chunks, nothing unreachable (U44). */
export const CONTENTS: readonly AttachTest[] = [
  {
    name: '[RF 15, U09] the snapshot holds the last 40 messages, and pages of history the rest, each once, in order',
    covers: ['operation:get_history', 'result:history'],
    run: async (stage) => {
      const { device, session } = await stage.attached()
      const word = stage.script({ pieces: ['So.'] })
      for (let round = 0; round < 24; round++) await stage.run(session.id, `${word} ${round}`)
      const { result } = await device.attach(session)
      const snapshot = fieldsOf(result.snapshot)
      expect(snapshot.transcript).toHaveLength(40)
      let all = listOfFields(snapshot.transcript)
      let cursor = snapshot.history_cursor
      while (cursor !== undefined) {
        const { result: page } = await device.on(session, { type: 'get_history', cursor, limit: 7 })
        expect(page).toMatchObject({ type: 'history', history_revision: snapshot.history_revision })
        all = [...listOfFields(page.messages), ...all]
        cursor = page.next_cursor
      }
      expect(all).toHaveLength(50)
      expect(new Set(all.map(({ message_id: id }) => id)).size).toBe(50)
      const prompts = itemsOf(all).flatMap((item) => (item.kind === 'user' ? [item.text.head] : []))
      expect(prompts.slice(1)).toEqual(Array.from({ length: 24 }, (_, round) => `${word} ${round}`))
      const tail = await device.on(session, { type: 'get_history', limit: 3 })
      expect(tail.result.messages).toEqual(all.slice(-3))
    },
  },
  {
    name: '[RF 15] a cursor that is none is stale_cursor',
    covers: ['error:stale_cursor'],
    run: async (stage) => {
      const { device, session } = await stage.attached()
      for (const cursor of ['', 'x', '1', '-1@h0', '99999.0@h0', '1.0@another'])
        expect(await device.on(session, { type: 'get_history', cursor, limit: 5 })).toMatchObject({
          result: { code: 'stale_cursor' },
          receipt: null,
        })
    },
  },
  {
    name: '[RF 15, U44] a long text is cut at a character and read whole in chunks of any size',
    covers: ['operation:get_content', 'result:content'],
    run: async (stage) => {
      const long = 'äé€🚦 '.repeat(9000)
      const { device, session } = await stage.attached({ pieces: [long] })
      const message = listOfFields(device.view(session).snapshot.transcript).at(-1)
      const content = fieldsOf(message?.content)
      expect(content).toMatchObject({
        truncated: true,
        offset: 0,
        total_bytes: new TextEncoder().encode(long).length,
      })
      expect(long.startsWith(String(content.text))).toBe(true)
      for (const maxBytes of [10_007, 65_536, 1_000_000])
        expect(await wholeContent(device, session, content.content_id, maxBytes)).toBe(long)
    },
  },
  {
    name: '[RF 15] content of an unknown id is not_found; an offset inside a character or behind the end is invalid_request',
    covers: ['error:not_found', 'error:invalid_request'],
    run: async (stage) => {
      const { device, session } = await stage.attached({ pieces: ['ä'.repeat(10)] })
      const message = listOfFields(device.view(session).snapshot.transcript).at(-1)
      const id = fieldsOf(message?.content).content_id
      const get = (content_id: unknown, offset = 0) =>
        device.on(session, { type: 'get_content', content_id, offset, max_bytes: 100 })
      for (const wrong of [
        '',
        'x',
        'message:h0:m99999',
        'message:other:m1',
        'approval:none:0',
        'response:turn:x',
      ])
        expect(await get(wrong)).toMatchObject({ result: { code: 'not_found' } })
      for (const offset of [1, 21])
        expect(await get(id, offset)).toMatchObject({ result: { code: 'invalid_request' } })
      expect((await get(id, 20)).result).toMatchObject({ type: 'content', text: '', total_bytes: 20 })
    },
  },
  {
    name: '[RF 15] approval details and the answer that is being given can be read whole while they are there',
    covers: ['result:content'],
    run: async (stage) => {
      const { device, session } = await stage.attached()
      const command = 'echo '.repeat(10_000)
      const word = stage.script({ calls: [{ name: 'shell', arguments: { command } }] })
      await stage.run(session.id, `${word} long`)
      const { pendingApproval } = await device.until(
        session,
        (view) => view.pendingApproval !== null,
        'the approval',
      )
      const [action] = listOfFields(fieldsOf(pendingApproval).actions)
      const details = fieldsOf(action?.details)
      expect(details.truncated).toBe(true)
      expect(await wholeContent(device, session, details.content_id, 65_536)).toContain(command)
      const streaming = await stage.streaming({ pieces: ['z'.repeat(40_000)] })
      const live = fieldsOf(fieldsOf(streaming.device.view(streaming.session).snapshot.turn).live_response)
      const text = await wholeContent(streaming.device, streaming.session, live.content_id, 65_536)
      expect('z'.repeat(40_000).startsWith(text.slice(0, 100))).toBe(true)
      expect(text.length).toBeGreaterThanOrEqual(Number(live.total_bytes))
      streaming.hold.release()
      await streaming.running
      expect(
        await streaming.device.on(streaming.session, {
          type: 'get_content',
          content_id: live.content_id,
          offset: 0,
          max_bytes: 100,
        }),
      ).toMatchObject({ result: { code: 'not_found' } })
    },
  },
  {
    name: '[RF 13] a tool result longer than a message is cut in its event and in the transcript alike',
    covers: ['event:tool_finished', 'result:content'],
    run: async (stage) => {
      const { device, session } = await stage.attached()
      const witness = await stage.device()
      const word = stage.script({ calls: [READ] }, { pieces: ['Long.'] })
      const envelope = await stage.run(session.id, `${word} read`)
      const data = fieldsOf(envelope.data)
      const [call] = listOfFields(data.tool_requests)
      const content = '€uro '.repeat(3000)
      await stage.must('POST', `/sessions/${session.id}/continue`, {
        type: 'tool_results',
        data: { results: [{ call_id: call?.call_id, content, is_error: false }] },
      })
      await device.until(session, ({ turn }) => turn === null, 'the end')
      const { known, fresh } = await stage.agreement(session, [device], witness)
      expect(known).toEqual(fresh)
      const message = listOfFields(witness.view(session).snapshot.transcript).at(-2)
      expect(await wholeContent(device, session, fieldsOf(message?.content).content_id, 4096)).toBe(content)
    },
  },
]
