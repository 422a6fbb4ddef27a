import { expect } from 'vitest'
import type { AttachTest } from './attach-test.ts'

/** A PNG of one pixel. */
const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='
const PIXEL_BYTES = atob(PIXEL).length

const upload = (fields: object = {}) => ({
  type: 'upload_image',
  attachment_id: 'pixel',
  mime_type: 'image/png',
  offset: 0,
  total_bytes: PIXEL_BYTES,
  data_base64: PIXEL,
  ...fields,
})

/** "Image attachments". */
export const IMAGES: readonly AttachTest[] = [
  {
    name: '[RF 27] where no model takes images an upload is unsupported_operation, and the capability is not named',
    covers: ['operation:upload_image', 'error:unsupported_operation'],
    run: async (stage) => {
      const { device, session } = await stage.attached()
      expect(device.view(session).snapshot.capabilities ?? []).not.toContain('upload_image')
      expect(await device.on(session, upload())).toMatchObject({
        receipt: 'rejected',
        result: { code: 'unsupported_operation' },
      })
    },
  },
  {
    name: '[RF 27] a picture comes in chunks, which may be repeated, and a prompt that names it is accepted',
    covers: ['operation:upload_image', 'result:image_uploaded', 'disposition:started'],
    run: async (stage) => {
      const { device, session } = await stage.attached({ pieces: ['Hello.'] }, stage.world.seeingModel)
      expect(device.view(session).snapshot.capabilities).toContain('upload_image')
      const bytes = atob(PIXEL)
      const chunk = (from: number, to: number) =>
        upload({ offset: from, data_base64: btoa(bytes.slice(from, to)) })
      const first = { type: 'image_uploaded', attachment_id: 'pixel', next_offset: 30, complete: false }
      expect(await device.on(session, chunk(0, 30))).toMatchObject({ receipt: 'applied', result: first })
      const last = (await device.on(session, chunk(30, PIXEL_BYTES))).result
      expect(last).toMatchObject({ complete: true, next_offset: PIXEL_BYTES, total_bytes: PIXEL_BYTES })
      // Progress is told of the chunk that was sent.
      expect((await device.on(session, chunk(0, 30))).result).toMatchObject(first)
      const word = stage.script({ pieces: ['A pixel.'] })
      const prompt = `${word} what is this ${String(last.prompt_reference)}`
      const other = await stage.follower(session)
      expect(await other.on(session, { type: 'submit_prompt', prompt })).toMatchObject({
        receipt: 'rejected',
        result: { code: 'invalid_request' },
      })
      expect(await device.on(session, { type: 'submit_prompt', prompt })).toMatchObject({
        receipt: 'applied',
      })
      const view = await other.until(
        session,
        ({ turn, items }) => turn === null && items.length === 4,
        'the end',
      )
      expect(view.items.at(-1)).toMatchObject({ text: { head: 'A pixel.' } })
    },
  },
  {
    name: '[RF 27] what is no picture, or does not fit what was said of it, is invalid_request',
    covers: ['error:invalid_request', 'operation:upload_image'],
    run: async (stage) => {
      const { device, session } = await stage.attached({ pieces: ['Hello.'] }, stage.world.seeingModel)
      const wrong = [
        upload({ attachment_id: 'a/b' }),
        upload({ attachment_id: '' }),
        upload({ mime_type: 'image/gif' }),
        upload({ total_bytes: 0 }),
        upload({ total_bytes: 8 * 1024 * 1024 + 1 }),
        upload({ data_base64: '!' }),
        upload({ offset: 1 }),
        upload({ total_bytes: PIXEL_BYTES - 1 }),
        upload({ attachment_id: 'jpeg', mime_type: 'image/jpeg' }),
        upload({ attachment_id: 'zeros', data_base64: btoa('\0'.repeat(PIXEL_BYTES)) }),
      ]
      for (const operation of wrong)
        expect(await device.on(session, operation), JSON.stringify(operation)).toMatchObject({
          receipt: 'rejected',
          result: { code: 'invalid_request' },
        })
    },
  },
]
