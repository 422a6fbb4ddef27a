import { describe, expect, test } from 'vitest'
import type { RemoteDevice } from './device.ts'
import { namesOf, type WireNames } from './frame-shapes.ts'
import { authenticateFrame, type GatewayRouter, Home, pairFrame, ROTATING } from './gateway-home.ts'
import type { Fields } from './shapes.ts'

const KIB = 1024
const NO_SESSION = '00000000-0000-7000-8000-000000000000'

/** A list request of exactly so many bytes. */
function sizedRequest(bytes: number, requestId: string): string {
  const frame = {
    protocol_version: 1,
    request_id: requestId,
    operation: { type: 'list_sessions' },
    padding: '',
  }
  return JSON.stringify({ ...frame, padding: 'x'.repeat(bytes - JSON.stringify(frame).length) })
}

/** "Session frames": what is read as a request, and how everything else is answered. */
export function requestTests(router: () => GatewayRouter): void {
  const paired = async (fields: Fields = {}) => (await (await Home.open(router())).pair(fields)).device

  /** The error that a raw text is answered with. */
  async function errorTo(device: RemoteDevice, content: string | object): Promise<Fields> {
    await device.send(content)
    const { request_id, result } = await device.next()
    return { request_id, ...(result as Fields) }
  }

  describe('a request', () => {
    test('[RF 9] that is no JSON object is invalid_request without an id, and the connection stays', async () => {
      const device = await paired()
      for (const content of [
        '',
        'x',
        '{',
        '[]',
        'null',
        '7',
        '"ping"',
        '{}',
        '{"type":"ping"} ',
        '{"request_id":null}',
      ]) {
        expect(await errorTo(device, content)).toMatchObject({ request_id: '', code: 'invalid_request' })
      }
      await device.pinged()
    })

    test('a request_id is a text of 1 to 128 bytes; the answer to any other has none', async () => {
      const device = await paired()
      const operation = { type: 'list_sessions' }
      for (const request_id of [undefined, null, 7, '', 'x'.repeat(129), 'é'.repeat(65), ['a'], { a: 1 }]) {
        expect(await errorTo(device, { protocol_version: 1, request_id, operation })).toMatchObject({
          request_id: '',
          code: 'invalid_request',
        })
      }
      for (const request_id of ['x', 'x'.repeat(128), 'é'.repeat(64), ' ', '__proto__', '💥"\\\n']) {
        expect((await device.response({ request_id, operation })).request_id).toBe(request_id)
      }
    })

    test('the version is looked at first: incompatible_version, even without a usable id or a known operation', async () => {
      const device = await paired()
      for (const [frame, request_id] of [
        [{ protocol_version: 2, request_id: 'a', operation: { type: 'list_sessions' } }, 'a'],
        [{ protocol_version: 2, request_id: 'b', operation: { type: 'a_later_one' } }, 'b'],
        [{ protocol_version: 0 }, ''],
        [{ protocol_version: 7, request_id: 7, operation: [] }, ''],
      ] as const) {
        expect(await errorTo(device, frame)).toMatchObject({
          request_id,
          code: 'incompatible_version',
          supported_versions: [1],
        })
      }
      for (const protocol_version of [undefined, null, '1', -1, 1.5, [1], true]) {
        expect(
          await errorTo(device, { protocol_version, request_id: 'c', operation: { type: 'list_sessions' } }),
        ).toMatchObject({ request_id: 'c', code: 'invalid_request' })
      }
    })

    test('an operation that this version does not know is unsupported_operation, a wrong shape invalid_request', async () => {
      const device = await paired()
      for (const type of [
        'a_later_one',
        '',
        'LIST_SESSIONS',
        'constructor',
        '__proto__',
        'list_threads',
        'request_share',
      ]) {
        expect(await device.request({ type })).toMatchObject({ type: 'error', code: 'unsupported_operation' })
      }
      for (const operation of [undefined, null, 'list_sessions', [], {}, { type: 7 }, { type: null }]) {
        expect(await errorTo(device, { protocol_version: 1, request_id: 'x', operation })).toMatchObject({
          request_id: 'x',
          code: 'invalid_request',
        })
      }
      for (const operation of [
        { type: 'get_request_status' },
        { type: 'get_request_status', target_request_id: 7 },
        { type: 'get_content' },
        { type: 'answer_question', question_id: 'q', answer: { type: 'guessed' } },
      ]) {
        const envelope = { session_id: NO_SESSION, registration_epoch: 1 }
        expect(await device.request(operation, envelope)).toMatchObject({
          type: 'error',
          code: 'invalid_request',
        })
      }
    })

    test('session_id and registration_epoch are required on every operation except the host-wide ones', async () => {
      const device = await paired()
      for (const operation of [
        { type: 'attach_session' },
        { type: 'detach_session' },
        { type: 'get_history', limit: 25 },
        { type: 'cancel_turn', turn_id: 'turn:x' },
        { type: 'submit_prompt', prompt: 'x' },
      ]) {
        for (const envelope of [
          {},
          { session_id: NO_SESSION },
          { registration_epoch: 1 },
          { session_id: null, registration_epoch: null },
          { session_id: 7, registration_epoch: 1 },
          { session_id: NO_SESSION, registration_epoch: '1' },
          { session_id: NO_SESSION, registration_epoch: -1 },
        ]) {
          const answer = await device.request(operation, envelope)
          expect([operation, envelope, answer]).toEqual([
            operation,
            envelope,
            { type: 'error', code: 'invalid_request', message: expect.any(String) },
          ])
        }
      }
      expect(await device.request({ type: 'list_sessions' })).toMatchObject({ type: 'sessions' })
      expect(
        await device.request({ type: 'list_sessions' }, { session_id: 'nonsense', registration_epoch: 7 }),
      ).toMatchObject({ type: 'sessions' })
    })

    test('unknown fields are ignored, and an optional null is as absent', async () => {
      const device = await paired()
      const request = {
        operation: { type: 'list_sessions', later: [null, { deep: true }] },
        session_id: null,
        registration_epoch: null,
        later: { __proto__: 1 },
      }
      expect(await device.response(request)).toMatchObject({ result: { type: 'sessions' } })
    })

    test('[RF 10] of a session that is not listed is not_found; detaching from it is no error', async () => {
      const device = await paired()
      const envelope = { session_id: NO_SESSION, registration_epoch: 1 }
      for (const operation of [
        { type: 'attach_session' },
        { type: 'get_history', limit: 25 },
        { type: 'get_changes' },
      ]) {
        const answer = await device.request(operation, envelope)
        expect([operation, answer]).toEqual([
          operation,
          { type: 'error', code: 'not_found', message: expect.any(String) },
        ])
      }
      for (const operation of [
        { type: 'cancel_turn', turn_id: 'turn:x' },
        { type: 'submit_prompt', prompt: 'x' },
        { type: 'steer', prompt: 'x' },
        { type: 'queue', prompt: 'x' },
        { type: 'resolve_approval', batch_id: 'x', choice: 'approve' },
        { type: 'cancel_question', question_id: 'x' },
      ]) {
        expect(await device.request(operation, envelope)).toMatchObject({
          type: 'error',
          code: 'not_found',
          receipt: 'rejected',
        })
      }
      expect(await device.request({ type: 'detach_session' }, envelope)).toEqual({ type: 'detached' })
    })

    test('[U15] “Nobody knows it”: the status of a request that was never seen is unknown, and no error', async () => {
      const device = await paired()
      for (const envelope of [
        {},
        { session_id: NO_SESSION },
        { session_id: NO_SESSION, registration_epoch: 1 },
      ]) {
        expect(
          await device.request({ type: 'get_request_status', target_request_id: 'r-never' }, envelope),
        ).toEqual({ type: 'request_status', target_request_id: 'r-never', receipt: 'unknown' })
      }
    })

    test('“The request is over 256 KiB”: frame_too_large without an id, and the connection stays', async () => {
      const device = await paired()
      await device.send(sizedRequest(256 * KIB, 'fits'))
      expect(await device.next()).toMatchObject({ request_id: 'fits', result: { type: 'sessions' } })
      for (const bytes of [256 * KIB + 1, 1024 * KIB]) {
        await device.send(sizedRequest(bytes, 'too-long'))
        expect(await device.next()).toMatchObject({ request_id: '', result: { code: 'frame_too_large' } })
      }
      await device.pinged()
    })

    test('“A frame over 1 MiB was sent”: frame_too_large, and the connection ends', async () => {
      const device = await paired()
      await device.send(sizedRequest(1024 * KIB + 1, 'far-too-long'))
      expect((await device.lastWords()).code).toBe('frame_too_large')
    })

    test('“A binary frame was sent”: invalid_frame, and the connection ends', async () => {
      const device = await paired()
      await device.send(new TextEncoder().encode('{"type":"ping"}'))
      expect((await device.lastWords()).code).toBe('invalid_frame')
    })

    test('a second handshake is a request like any other text: invalid_request', async () => {
      const here = await Home.open(router())
      const { device, paired: answer } = await here.pair()
      const { credential } = await here.openPairing()
      for (const frame of [
        pairFrame({ secret: credential }),
        authenticateFrame({ device_id: answer.device_id, token: answer.token }),
      ]) {
        expect(await errorTo(device, frame)).toMatchObject({ request_id: '', code: 'invalid_request' })
      }
      // Nothing was paired by it.
      expect(await here.owner.devices()).toHaveLength(1)
    })

    test('many at once are each answered exactly once', async () => {
      const device = await paired()
      const types = ['list_sessions', 'subscribe_sessions', 'a_later_one', 'get_usage', 'get_request_status']
      const answers = await Promise.all(
        Array.from({ length: 60 }, (_, index) =>
          device.request({ type: types[index % types.length], target_request_id: 'x' }),
        ),
      )
      expect(answers).toHaveLength(60)
      await device.pinged()
    })
  })

  describe('thread names', () => {
    const vocabulary = (names: WireNames) => (names === 'thread' ? { wire_names: 'thread' } : {})

    test('asked for in pair or authenticate, they hold in both directions; not asked for, the v1 names do', async () => {
      const here = await Home.open(router())
      const { device, paired: answer } = await here.pair({ ...vocabulary('thread'), ...ROTATING })
      expect(answer.wire_names).toBe('thread')
      const envelope = { thread_id: NO_SESSION, registration_epoch: 1 }
      const names = namesOf('thread')
      expect(await device.request({ type: names.list })).toMatchObject({
        type: 'threads',
        threads: [],
        subscribed: false,
      })
      expect(await device.request({ type: names.subscribe })).toMatchObject({
        type: 'threads',
        subscribed: true,
      })
      expect(await device.request({ type: names.attach }, envelope)).toMatchObject({ code: 'not_found' })
      expect(await device.request({ type: names.detach }, envelope)).toEqual({ type: 'detached' })
      const { device: plain, answer: v1 } = await here.authenticate({
        device_id: answer.device_id,
        refresh_token: answer.refresh_token,
      })
      expect(v1).not.toHaveProperty('wire_names')
      expect(await plain.request({ type: 'list_sessions' })).toMatchObject({ type: 'sessions' })
      const { answer: again } = await here.authenticate({
        device_id: answer.device_id,
        refresh_token: answer.refresh_token,
        ...vocabulary('thread'),
      })
      expect(again.wire_names).toBe('thread')
    })

    test('a vocabulary that the gateway does not know is as none', async () => {
      const here = await Home.open(router())
      for (const wire_names of ['conversation', 'session', '', 7, null, ['thread']]) {
        const { device, paired: answer } = await here.pair({ wire_names })
        expect(answer).not.toHaveProperty('wire_names')
        expect(await device.request({ type: 'list_sessions' })).toMatchObject({ type: 'sessions' })
        device.hangUp()
      }
    })

    test('[D37] v1 names on a thread-named connection are invalid_request, and thread names are nothing on another', async () => {
      const device = await paired(vocabulary('thread'))
      for (const type of ['list_sessions', 'subscribe_sessions', 'attach_session', 'create_session']) {
        expect(
          await device.request({ type }, { thread_id: NO_SESSION, registration_epoch: 1 }),
        ).toMatchObject({
          code: 'invalid_request',
        })
      }
      expect(
        await device.request({ type: 'attach_thread' }, { session_id: NO_SESSION, registration_epoch: 1 }),
      ).toMatchObject({ code: 'invalid_request' })
      const plain = await paired()
      expect(await plain.request({ type: 'subscribe_threads' })).toMatchObject({
        code: 'unsupported_operation',
      })
      expect(
        await plain.request({ type: 'attach_session' }, { thread_id: NO_SESSION, registration_epoch: 1 }),
      ).toMatchObject({ code: 'invalid_request' })
    })
  })
}
