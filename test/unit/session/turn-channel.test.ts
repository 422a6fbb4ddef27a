import { describe, expect, test } from 'vitest'
import { completed } from '../../../src/core/run/envelope.ts'
import { TurnChannel } from '../../../src/session/turn-channel.ts'
import { makeReport } from '../../support/core/run-machine.ts'

const MIB = 1024 * 1024

async function typesOf(stream: ReadableStream<Uint8Array>): Promise<string[]> {
  const text = await new Response(stream).text()
  return [...text.matchAll(/^data: \{"type":"(\w+)"/gm)].map(([, type]) => type ?? '')
}

const ended = (text: string) => ({
  k: 'outcome' as const,
  outcome: completed(text, null, makeReport(), { input_tokens: 1 }, 'trace:1'),
})

describe('[EC 18] the stream of a turn', () => {
  test('reaches a reader whole, however large its end is: that repeats all that was said', async () => {
    const channel = new TurnChannel('t')
    const read = typesOf(channel.read(0))
    const half = 'x'.repeat(1.5 * MIB)
    channel.push({ type: 'text_delta', delta: half })
    channel.push({ type: 'text_delta', delta: half })
    channel.end(ended(half + half))
    expect(await read).toEqual(['text_delta', 'text_delta', 'usage', 'turn_end'])
  })

  test('[D19] is held up to its bound when nobody follows it any more: who comes late gets the end alone', async () => {
    const channel = new TurnChannel('t')
    const read = typesOf(channel.read(0))
    const half = 'x'.repeat(2.5 * MIB)
    channel.push({ type: 'text_delta', delta: half })
    channel.push({ type: 'text_delta', delta: half })
    channel.end(ended(half + half))
    await read
    expect(channel.holdsAfter(0)).toBe(false)
    expect(await typesOf(channel.read(0))).toEqual(['turn_end'])
  })

  test('a reader that leaves holds nothing', async () => {
    const channel = new TurnChannel('t')
    const stream = channel.read(0)
    const half = 'x'.repeat(2.5 * MIB)
    channel.push({ type: 'text_delta', delta: half })
    await stream.cancel()
    channel.push({ type: 'text_delta', delta: half })
    channel.end(ended(half + half))
    expect(channel.holdsAfter(0)).toBe(false)
  })

  test('[D19] an end that repeats everything takes no room from what came before it', async () => {
    const channel = new TurnChannel('t')
    const read = typesOf(channel.read(0))
    const half = 'x'.repeat(1.5 * MIB)
    channel.push({ type: 'text_delta', delta: half })
    channel.push({ type: 'text_delta', delta: half })
    channel.end(ended(half + half))
    await read
    expect(channel.holdsAfter(0)).toBe(true)
  })

  test('what comes close together leaves together', async () => {
    const channel = new TurnChannel('t')
    const reader = channel.read(0).getReader()
    channel.push({ type: 'text_delta', delta: 'first' })
    const pieces = [await reader.read()]
    for (let n = 0; n < 100; n++) channel.push({ type: 'text_delta', delta: `${n}` })
    channel.end(ended('all'))
    for (;;) {
      const piece = await reader.read()
      if (piece.done) break
      pieces.push(piece)
    }
    expect(pieces.length).toBe(2)
  })
})
