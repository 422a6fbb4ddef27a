import { describe, expect, it } from 'vitest'
import { frameBytes } from '../../../src/core/remote/bounded-text.ts'
import { MAX_PAYLOAD_BYTES } from '../../../src/protocol/remote/limits.ts'
import { call } from '../storage/contract/builders.ts'
import { RemoteSession } from './remote-session.ts'

const MiB = 1024 * 1024

describe('get_content', () => {
  const session = new RemoteSession()
    .begins('r')
    .answers('aß€😀z', [call('c')])
    .settles('c', 'done')
  const piece = (offset: number, bytes: number) => session.view.content('message:h0:m2', offset, bytes)

  it('[RF 15] gives pieces of whole characters, and the offset of the next one', () => {
    expect(piece(0, 5)).toEqual({
      type: 'content',
      content_id: 'message:h0:m2',
      offset: 0,
      text: 'aß',
      total_bytes: 11,
      next_offset: 3,
    })
    expect(piece(3, 7)).toMatchObject({ text: '€😀', next_offset: 10 })
    expect(piece(10, 7)).toEqual({
      type: 'content',
      content_id: 'message:h0:m2',
      offset: 10,
      text: 'z',
      total_bytes: 11,
    })
  })

  it('[RF 15] at the end of the text is an empty piece without a next one', () => {
    expect(piece(11, 7)).toEqual({
      type: 'content',
      content_id: 'message:h0:m2',
      offset: 11,
      text: '',
      total_bytes: 11,
    })
  })

  it.each([2, 4, 5, 7, 8, 9, 12, 1000, Number.MAX_SAFE_INTEGER])(
    '[RF 15] offset %i, inside a character or behind the end, is an invalid request',
    (offset) => expect(piece(offset, 7)).toMatchObject({ type: 'error', code: 'invalid_request' }),
  )

  it('[RF 15] gives 4 bytes at least and 64 KiB at most, whatever is asked for', () => {
    expect(piece(6, 0)).toMatchObject({ text: '😀', next_offset: 10 })
    const long = new RemoteSession().begins('r').answers('x'.repeat(100_000))
    expect(long.view.content('message:h0:m2', 0, MiB)).toMatchObject({
      next_offset: 65_536,
      total_bytes: 100_000,
    })
  })

  it.each([
    'message:h1:m2',
    'message:h0:m9',
    'message:h0:m2.1',
    'message:h0:x',
    'arguments:h0:m2',
    'arguments:h0:m2.7',
    'approval:b:0',
    'response:turn:other',
    'nothing',
    '',
  ])('[RF 15] %j is not found', (id) => {
    expect(session.view.content(id, 0, 100)).toMatchObject({ type: 'error', code: 'not_found' })
  })

  it('[RF 15] of the answer under way is found while its turn is active, and not afterwards', () => {
    const live = new RemoteSession().begins('r')
    live.live = { text: 'so far', thoughts: null }
    expect(live.whole('response:turn:r')).toBe('so far')
    live.live = null
    expect(live.view.content('response:turn:r', 0, 100)).toMatchObject({ text: '', total_bytes: 0 })
    live.ends()
    expect(live.view.content('response:turn:r', 0, 100)).toMatchObject({ code: 'not_found' })
  })

  it('[U44] a text that takes six times its bytes in a frame comes in smaller pieces, and fits', () => {
    const text = '\u0001'.repeat(200_000)
    const odd = new RemoteSession().begins('r').answers(text)
    const first = odd.view.content('message:h0:m2', 0, 65_536)
    expect(frameBytes(first)).toBeLessThanOrEqual(MAX_PAYLOAD_BYTES + 1024)
    expect(odd.whole('message:h0:m2')).toBe(text)
  })

  it('[U44] a result of 8 MiB is read whole, in pieces, and each piece reads little more than itself', () => {
    // Characters of three bytes: pieces end inside characters, and the chunks that it is kept in elsewhere.
    const text = `${'漢字とカナ, '.repeat(Math.floor((8 * MiB) / 17))}ende`
    const big = new RemoteSession()
      .begins('r')
      .answers('Go.', [call('c')])
      .settles('c', text)
    big.read.bytes = 0
    const { messages } = big.page(null, 1)
    expect(messages[0]?.content).toMatchObject({
      truncated: true,
      total_bytes: new TextEncoder().encode(text).length,
    })
    expect(big.read.bytes).toBeLessThan(20_000)
    big.read.bytes = 0
    expect(big.view.content('message:h0:m2.0', 3 * 17 * 100_000, 65_536)).toMatchObject({
      next_offset: 3 * 17 * 100_000 + 65_535,
    })
    expect(big.read.bytes).toBeLessThan(80_000)
    expect(big.whole('message:h0:m2.0') === text).toBe(true)
  })
})
