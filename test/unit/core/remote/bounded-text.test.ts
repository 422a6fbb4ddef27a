import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  chunkAt,
  frameBytes,
  headCut,
  tailCut,
  utf8Length,
} from '../../../../src/core/remote/bounded-text.ts'

/** Characters of one to four bytes, one with a mark, one with an escape of two characters and one with an escape of six. */
const MIXED = 'aß€😀e\u0301漢\n"\\\u0001ж🧑‍🚀z'
const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)
const textFrom = (bytes: Uint8Array): string => new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)

/** The longest beginning of whole characters, by another way: the bytes are cut, and what is no character is left out. */
function naiveHead(text: string, maxBytes: number): string {
  const bytes = bytesOf(text)
  for (let end = Math.min(maxBytes, bytes.length); ; end--) {
    const head = textFrom(bytes.slice(0, end))
    if (!head.includes('\ufffd')) return head
  }
}

describe('a text that is cut at its end', () => {
  it('[RF 15] is the longest beginning of whole characters, for a limit at each of its bytes', () => {
    for (let max = 0; max <= bytesOf(MIXED).length + 1; max++) {
      const text = naiveHead(MIXED, max)
      expect(headCut(MIXED, max, 'id')).toEqual({
        text,
        truncated: text !== MIXED,
        offset: 0,
        total_bytes: bytesOf(MIXED).length,
        content_id: 'id',
      })
    }
  })

  it('[RF 15] names no content where the rest cannot be asked for', () => {
    expect(headCut('abc', 2)).toEqual({ text: 'ab', truncated: true, offset: 0, total_bytes: 3 })
  })

  it('[RF 1] stays within a limit of what it takes in a frame as well', () => {
    expect(headCut('\u0001\u0001\u0001', { bytes: 100, json: 13 }).text).toBe('\u0001\u0001')
    expect(headCut('""""', { bytes: 100, json: 4 }).text).toBe('""')
    expect(headCut('😀😀😀', { bytes: 100, chars: 2 }).text).toBe('😀😀')
  })
})

describe('a text that is cut at its beginning', () => {
  it('[RF 15] is the longest end of whole characters, and says where it begins', () => {
    const bytes = bytesOf(MIXED)
    for (let max = 0; max <= bytes.length + 1; max++) {
      const { text, offset, truncated, total_bytes } = tailCut(MIXED, max)
      expect(textFrom(bytes.slice(offset))).toBe(text)
      expect(bytes.length - offset).toBeLessThanOrEqual(max)
      expect(MIXED.endsWith(text)).toBe(true)
      const longer = [...MIXED].slice(-([...text].length + 1)).join('')
      if (text !== MIXED) expect(bytesOf(longer).length).toBeGreaterThan(max)
      expect({ truncated, total_bytes }).toEqual({ truncated: text !== MIXED, total_bytes: bytes.length })
    }
  })
})

describe('half of a surrogate pair', () => {
  const broken = 'a\ud83dé\ude00\ude00b\ud83d'

  it('[RF 1] counts and goes out as the character that stands for it in UTF-8', () => {
    const sound = textFrom(bytesOf(broken))
    expect(headCut(broken, 100)).toEqual({
      text: sound,
      truncated: false,
      offset: 0,
      total_bytes: bytesOf(sound).length,
    })
    expect(tailCut(broken, 100).text).toBe(sound)
    expect(JSON.stringify(headCut(broken, 100))).not.toMatch(/\\ud/i)
  })

  it('[RF 15] is no part of a pair that a cut would take apart', () => {
    for (let max = 0; max <= 20; max++) {
      expect(headCut(broken, max).text).toBe(naiveHead2(broken, max))
    }
  })

  /** Each lone surrogate is a character of three bytes. */
  function naiveHead2(text: string, maxBytes: number): string {
    let head = ''
    for (const char of textFrom(bytesOf(text))) {
      if (bytesOf(head + char).length > maxBytes) return head
      head += char
    }
    return head
  }
})

describe('a piece of a text', () => {
  it('[RF 15] begins at a character, or is none', () => {
    const bytes = bytesOf(MIXED)
    for (let offset = 0; offset <= bytes.length + 2; offset++) {
      const isStart = offset <= bytes.length && ((bytes[offset] ?? 0) & 0xc0) !== 0x80
      expect(chunkAt(MIXED, offset, { bytes: 4 }) !== null, `offset ${offset}`).toBe(isStart)
    }
  })

  it('[RF 15] has no offset after it at the end, where it is empty', () => {
    const total = bytesOf(MIXED).length
    expect(chunkAt(MIXED, total, { bytes: 4 })).toEqual({ text: '', totalBytes: total, nextOffset: null })
  })

  it('[RF 15] advances by a character at least; pieces in a row are the whole', () => {
    fc.assert(
      fc.property(
        fc.string({
          unit: fc.oneof(
            fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
            fc.constantFrom('€', '😀', 'a', '\n'),
          ),
          maxLength: 60,
        }),
        fc.integer({ min: 4, max: 30 }),
        (text, bytes) => {
          let whole = ''
          for (let at: number | null = 0; at !== null; ) {
            const chunk = chunkAt(text, at, { bytes })
            if (chunk === null) throw new Error(`no piece at ${at}`)
            if (chunk.nextOffset !== null) expect(chunk.nextOffset).toBeGreaterThan(at)
            expect(bytesOf(chunk.text).length).toBeLessThanOrEqual(bytes)
            whole += chunk.text
            at = chunk.nextOffset
          }
          expect(whole).toBe(textFrom(bytesOf(text)))
        },
      ),
    )
  })
})

it('[RF 1] sizes are those of UTF-8, for every text', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 40 }), fc.nat(5), (text, from) => {
      const rest = text.slice(Math.min(from, text.length))
      expect(utf8Length(rest)).toBe(bytesOf(rest).length)
      expect(frameBytes({ text })).toBe(bytesOf(JSON.stringify({ text })).length)
    }),
  )
})
