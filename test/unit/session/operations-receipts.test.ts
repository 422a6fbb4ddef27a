import { expect, test, vi } from 'vitest'
import type { SessionOperation } from '../../../src/session/rpc.ts'
import { makeRequest } from '../../support/core/builders.ts'
import { EPOCH, OperatedSession } from '../../support/node/operated-session.ts'

const QUEUE: SessionOperation = { type: 'queue', prompt: 'later' }
const SUBMIT: SessionOperation = { type: 'submit_prompt', prompt: 'now' }

/** A session with a run whose first turn is being served. */
function running(): OperatedSession {
  const session = new OperatedSession()
  session.execute(makeRequest({ text: 'first' }))
  return session
}

/** A session whose run is over. */
function idle(): OperatedSession {
  const session = running()
  session.answer('done')
  return session
}

/** What the session waits for while this is held. */
function held<T>(value: T) {
  let release = (_: T) => {}
  const promise = new Promise<T>((resolve) => {
    release = resolve
  })
  return { promise, release: () => release(value) }
}

const quiet = () => vi.spyOn(console, 'error').mockImplementation(() => {})

test('[U14] the same request again is answered as it was, and is done once', async () => {
  const session = running()
  const first = await session.ask(QUEUE, { requestId: 'r' })
  expect(first).toEqual({ receipt: 'applied', result: { type: 'prompt_accepted', disposition: 'queued' } })
  expect(await session.ask(QUEUE, { requestId: 'r' })).toEqual(first)
  expect(session.sql.rows('SELECT text FROM prompt_queue')).toHaveLength(1)
})

test('[U14] so it is after the object has gone and come up again', async () => {
  const session = idle()
  const first = await session.ask(SUBMIT, { requestId: 'r' })
  session.crash()
  expect(await session.ask(SUBMIT, { requestId: 'r' })).toEqual(first)
  await session.settled()
  expect(session.said()).toEqual(['user: first', 'assistant: done', 'user: now'])
})

test('"The same request_id with different content is request_conflict", and the stored receipt stays', async () => {
  const session = running()
  const first = await session.ask(QUEUE, { requestId: 'r' })
  const other = await session.ask({ type: 'queue', prompt: 'other' }, { requestId: 'r' })
  expect(other).toMatchObject({ receipt: 'rejected', result: { code: 'request_conflict' } })
  expect(await session.ask(QUEUE, { requestId: 'r' })).toEqual(first)
})

test('[RF 28] the id of one device is nothing to another one', async () => {
  const session = running()
  await session.ask(QUEUE, { requestId: 'r' })
  const other = await session.ask({ type: 'queue', prompt: 'other' }, { requestId: 'r', device: 'desk' })
  expect(other.receipt).toBe('applied')
  expect(session.operations.status('third', { requestId: 'r', registrationEpoch: null })).toBeNull()
})

test('[RF 28] a refusal is kept: the same request is refused for ever', async () => {
  const session = running()
  const refused = await session.ask(SUBMIT, { requestId: 'r' })
  expect(refused).toMatchObject({ receipt: 'rejected', result: { code: 'busy' } })
  session.answer('done')
  expect(await session.ask(SUBMIT, { requestId: 'r' })).toEqual(refused)
  expect(await session.ask(SUBMIT, { requestId: 'another' })).toMatchObject({ receipt: 'applied' })
})

test('[RF 28] of another registration nothing is done and nothing is kept', async () => {
  const session = running()
  const stale = await session.ask(QUEUE, { requestId: 'r', epoch: EPOCH - 1 })
  expect(stale).toMatchObject({ receipt: 'rejected', result: { code: 'stale_session' } })
  expect(session.receipts()).toEqual([])
  const read = { type: 'get_history', limit: 1 } as const
  expect(await session.ask(read, { epoch: EPOCH - 1 })).toMatchObject({
    receipt: null,
    result: { code: 'stale_session' },
  })
  expect((await session.ask(QUEUE, { requestId: 'r' })).receipt).toBe('applied')
})

test('what only reads has no receipt', async () => {
  const session = idle()
  expect((await session.ask({ type: 'get_history', cursor: 'c', limit: 5 })).result).toMatchObject({
    type: 'history',
    history_revision: 'c/5',
  })
  const content = await session.ask({ type: 'get_content', content_id: 'x', offset: 3, max_bytes: 4 })
  expect(content).toMatchObject({ receipt: null, result: { type: 'content', content_id: 'x', offset: 3 } })
  expect(session.receipts()).toEqual([])
})

test('[RF 28] repeats of what is being decided wait for it; a fifth waiter is rate limited', async () => {
  const session = idle()
  const { promise, release } = held([])
  session.facts = () => promise
  const asked = Array.from({ length: 4 }, () => session.ask(SUBMIT, { requestId: 'r' }))
  expect(session.operations.status('phone', { requestId: 'r', registrationEpoch: EPOCH })).toEqual({
    receipt: 'received',
  })
  expect(await session.ask(SUBMIT, { requestId: 'r' })).toMatchObject({
    receipt: 'rejected',
    result: { code: 'rate_limited' },
  })
  expect(await session.ask(QUEUE, { requestId: 'r' })).toMatchObject({ result: { code: 'request_conflict' } })
  release()
  const started = { receipt: 'applied', result: { type: 'prompt_accepted', disposition: 'started' } }
  expect(await Promise.all(asked)).toEqual([started, started, started, started])
  expect(session.said().filter((said) => said === 'user: now')).toHaveLength(1)
  expect(session.receipts()).toHaveLength(1)
})

test('[U15] the status of a request is what became of it, under its registration', async () => {
  const session = running()
  const { operations } = session
  expect(operations.status('phone', { requestId: 'r', registrationEpoch: null })).toBeNull()
  const answer = await session.ask(QUEUE, { requestId: 'r' })
  expect(operations.status('phone', { requestId: 'r', registrationEpoch: null })).toEqual(answer)
  expect(operations.status('phone', { requestId: 'r', registrationEpoch: EPOCH })).toEqual(answer)
  expect(operations.status('phone', { requestId: 'r', registrationEpoch: EPOCH + 1 })).toBeNull()
})

test('[D29] a change that is not stored leaves no receipt, and the request may be sent again', async () => {
  const logged = quiet()
  const session = running()
  session.breaksNext = true
  const failed = await session.ask(QUEUE, { requestId: 'r' })
  expect(failed).toMatchObject({ receipt: 'rejected', result: { code: 'internal' } })
  expect(session.receipts()).toEqual([])
  expect(session.sql.rows('SELECT text FROM prompt_queue')).toEqual([])
  expect((await session.ask(QUEUE, { requestId: 'r' })).receipt).toBe('applied')
  logged.mockRestore()
})

test('[D29] nor does a prompt that was not stored', async () => {
  const logged = quiet()
  const session = idle()
  session.breaksNext = true
  expect(await session.ask(SUBMIT, { requestId: 'r' })).toMatchObject({ result: { code: 'internal' } })
  expect(session.said()).toEqual(['user: first', 'assistant: done'])
  expect((await session.ask(SUBMIT, { requestId: 'r' })).receipt).toBe('applied')
  expect(session.said().filter((said) => said === 'user: now')).toHaveLength(1)
  logged.mockRestore()
})

test('[D29] what was stored is told as it was, even if what comes after it fails', async () => {
  const logged = quiet()
  const session = idle()
  session.breaksAfterNext = true
  expect((await session.ask(SUBMIT, { requestId: 'r' })).receipt).toBe('applied')
  expect(session.receipts()).toHaveLength(1)
  logged.mockRestore()
})

test('a fault of D1 before a prompt is taken is told as one, without a receipt', async () => {
  const logged = quiet()
  const session = idle()
  session.facts = () => Promise.reject(new Error('D1 is gone'))
  expect(await session.ask(SUBMIT, { requestId: 'r' })).toMatchObject({
    receipt: 'rejected',
    result: { code: 'internal' },
  })
  expect(session.receipts()).toEqual([])
  logged.mockRestore()
})

test('[U03] an answer waits until what it says is durable', async () => {
  const session = running()
  const before = session.syncs
  await session.ask(QUEUE)
  expect(session.syncs).toBe(before + 1)
})

test('[RF 10] a session that leaves the list while a request waits is stale, and nothing is done', async () => {
  const session = idle()
  const { promise, release } = held([])
  session.facts = () => promise
  const asked = session.ask(SUBMIT, { requestId: 'r' })
  session.sql.rows('UPDATE session SET listed = 0')
  release()
  expect(await asked).toMatchObject({ receipt: 'rejected', result: { code: 'stale_session' } })
  expect(session.receipts()).toEqual([])
  expect(session.said()).toEqual(['user: first', 'assistant: done'])
})

test('images are taken by their own part, and each chunk has a receipt', async () => {
  const session = new OperatedSession()
  const uploaded = {
    type: 'image_uploaded',
    attachment_id: 'a',
    next_offset: 3,
    total_bytes: 3,
    complete: true,
  } as const
  const put = vi.fn(() => uploaded)
  session.images = { ...session.images, put }
  const upload = {
    type: 'upload_image',
    attachment_id: 'a',
    mime_type: 'image/png',
    offset: 0,
    total_bytes: 3,
    data_base64: 'AAAA',
  } as const
  expect(await session.ask(upload, { requestId: 'r' })).toEqual({ receipt: 'applied', result: uploaded })
  expect(await session.ask(upload, { requestId: 'r' })).toEqual({ receipt: 'applied', result: uploaded })
  expect(put).toHaveBeenCalledTimes(1)
  expect(put).toHaveBeenCalledWith('phone', upload)
})

test('[D29] a chunk that is not stored leaves no receipt; one that is refused does', async () => {
  const logged = quiet()
  const session = new OperatedSession()
  const upload = {
    type: 'upload_image',
    attachment_id: 'a',
    mime_type: 'image/png',
    offset: 0,
    total_bytes: 3,
    data_base64: 'AAAA',
  } as const
  session.breaksNext = true
  expect(await session.ask(upload, { requestId: 'r' })).toMatchObject({ result: { code: 'internal' } })
  expect(session.receipts()).toEqual([])
  expect(await session.ask(upload, { requestId: 'r' })).toMatchObject({
    receipt: 'rejected',
    result: { code: 'unsupported_operation' },
  })
  expect(session.receipts()).toHaveLength(1)
  logged.mockRestore()
})
