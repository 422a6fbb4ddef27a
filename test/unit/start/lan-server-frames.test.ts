import { describe, expect, test } from 'vitest'
import { ServerFrames } from '../../../src/cli/start/lan/server-frames.ts'
import { serverFrame } from './lan-frames.ts'

/** The frames that a router sends through the door, found from their headers (D42). */

/** Each kind of length and of frame, a control frame between fragments, and payloads that look like a Close. */
const FRAMES: { opcode: number; bytes: Buffer }[] = [
  { opcode: 1, bytes: serverFrame(1, '') },
  { opcode: 1, bytes: serverFrame(1, '\x88\x00\x88\x02') },
  { opcode: 2, bytes: serverFrame(2, '\x88\x00'.repeat(70)) },
  { opcode: 1, bytes: serverFrame(1, '\x88\x00', { final: false }) },
  { opcode: 9, bytes: serverFrame(9, 'ping') },
  { opcode: 0, bytes: serverFrame(0, '\x88\x05', { final: false, lengthBytes: 8 }) },
  { opcode: 10, bytes: serverFrame(10, '') },
  { opcode: 0, bytes: serverFrame(0, '', { lengthBytes: 8 }) },
  { opcode: 2, bytes: serverFrame(2, 'ab', { lengthBytes: 2 }) },
  { opcode: 8, bytes: serverFrame(8, '\x03\xe8bye') },
]
const STREAM = Buffer.concat(FRAMES.map(({ bytes }) => bytes))
const OPCODES = FRAMES.map(({ opcode }) => opcode)

function followed(...chunks: Uint8Array[]): number[] {
  const frames = new ServerFrames()
  return chunks.flatMap((chunk) => frames.follow(chunk))
}

describe('[D42] the frames of a router are told', () => {
  test('when all come at once', () => {
    expect(followed(STREAM)).toEqual(OPCODES)
  })

  test('when every byte comes alone', () => {
    expect(followed(...Array.from(STREAM, (byte) => Uint8Array.of(byte)))).toEqual(OPCODES)
  })

  test('however the stream is cut in three', () => {
    for (let first = 0; first <= STREAM.length; first++) {
      for (let second = first; second <= STREAM.length; second++) {
        const parts = [STREAM.subarray(0, first), STREAM.subarray(first, second), STREAM.subarray(second)]
        const found = followed(...parts)
        if (found.join() !== OPCODES.join()) expect({ first, second, found }).toEqual({ found: OPCODES })
      }
    }
  })

  test('each with its last byte, not before', () => {
    const frames = new ServerFrames()
    for (const { opcode, bytes } of FRAMES) {
      expect(frames.follow(bytes.subarray(0, -1))).toEqual([])
      expect(frames.follow(bytes.subarray(-1))).toEqual([opcode])
    }
  })

  test('behind a payload that is longer than 4 GiB', () => {
    const frames = new ServerFrames()
    const mebibyte = new Uint8Array(1024 * 1024).fill(0x88)
    const head = Buffer.from([0x82, 127, 0, 0, 0, 1, 0, 0, 0, 1])
    expect(frames.follow(head)).toEqual([])
    for (let count = 0; count < 4096; count++) expect(frames.follow(mebibyte)).toEqual([])
    expect(frames.follow(Uint8Array.of(0x88))).toEqual([2])
    expect(frames.follow(serverFrame(8, ''))).toEqual([8])
  })
})
