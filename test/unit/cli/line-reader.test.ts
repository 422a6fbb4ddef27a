import { PassThrough } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { makeLineReader } from '../../../src/cli/line-reader.ts'
import { Screen } from '../../support/node/screen.ts'

/** A stream that says it is a terminal, as far as line editing needs. */
const terminal = () => Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => undefined })

describe('makeLineReader', () => {
  test.each([
    ['a pipe', () => new PassThrough()],
    ['a terminal', terminal],
  ])(
    'from %s, lines that arrive together are handed out one by one, and a begun line is not lost',
    async (_what, open) => {
      const input = open()
      const reader = makeLineReader(input, new PassThrough())
      input.write('one\ntwo\nthr')
      expect(await reader.next('> ')).toEqual({ kind: 'line', text: 'one' })
      expect(await reader.next('> ')).toEqual({ kind: 'line', text: 'two' })
      const third = reader.next('> ')
      input.write('ee\n')
      expect(await third).toEqual({ kind: 'line', text: 'three' })
      const fourth = reader.next('> ')
      input.end()
      expect(await fourth).toEqual({ kind: 'end' })
    },
  )

  test('a last line without a line end counts, and an ended input is an end, not a wait', async () => {
    const input = new PassThrough()
    const reader = makeLineReader(input, new PassThrough())
    input.end('one\ntwo')
    expect(await reader.next('')).toEqual({ kind: 'line', text: 'one' })
    expect(await reader.next('')).toEqual({ kind: 'line', text: 'two' })
    expect(await reader.next('')).toEqual({ kind: 'end' })
    expect(await reader.next('')).toEqual({ kind: 'end' })
  })

  test('Ctrl-C and Ctrl-D at a terminal are told apart', async () => {
    const input = terminal()
    const reader = makeLineReader(input, new PassThrough())
    const first = reader.next('> ')
    input.write('half\u0003')
    expect(await first).toEqual({ kind: 'interrupted' })
    const second = reader.next('> ')
    input.write('\u0004')
    expect(await second).toEqual({ kind: 'end' })
  })
})

describe('lines above the prompt', () => {
  const LEFT = '\u001b[D'
  const settled = () => new Promise((resolve) => setImmediate(resolve))

  function typing(columns = 40, rows = 10) {
    const input = terminal()
    const screen = new Screen(columns, rows)
    const reader = makeLineReader(input, screen)
    /** Key by key: what comes in one piece is a paste. */
    const type = async (text: string) => {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: the keys that move the cursor
      for (const key of text.match(/\u001b\[\w|[\s\S]/g) ?? []) input.write(key)
      await settled()
    }
    const paste = async (text: string) => {
      input.write(text)
      await settled()
    }
    return { screen, reader, type, paste }
  }

  test('leave what is being typed as it is, with the cursor where it was', async () => {
    const { screen, reader, type } = typing()
    const line = reader.next('› ')
    await type(`hello wrld${LEFT.repeat(3)}`)
    const { column } = screen.cursor
    reader.above('first\nsecond\n')
    await settled()
    expect(screen.text).toEqual(['first', 'second', '› hello wrld'])
    expect(screen.cursor).toEqual({ row: 2, column })
    await type('o')
    expect(screen.text).toEqual(['first', 'second', '› hello world'])
    await type('\r')
    expect(await line).toEqual({ kind: 'line', text: 'hello world' })
  })

  test.each([
    ['in the last row', 0],
    ['in a row between', 12],
    ['in the first row', 25],
  ])('keep a line of several rows whole, the cursor %s', async (_where, back) => {
    const { screen, reader, type } = typing(10)
    const line = reader.next('› ')
    const text = 'abcdefghijklmnopqrstuvwxyz'
    await type(text + LEFT.repeat(back))
    const before = { lines: screen.text, cursor: screen.cursor }
    for (const [count, note] of ['one', 'two'].entries()) {
      reader.above(`${note}\n`)
      await settled()
      expect(screen.text.slice(count + 1, count + 4)).toEqual(before.lines.slice(0, 3))
      expect(screen.cursor).toEqual({ ...before.cursor, row: before.cursor.row + count + 1 })
    }
    expect(screen.text.slice(0, 2)).toEqual(['one', 'two'])
    await type('!\r')
    const at = text.length - back
    expect(await line).toEqual({ kind: 'line', text: `${text.slice(0, at)}!${text.slice(at)}` })
  })

  test('keep a paste of several rows whole', async () => {
    const { screen, reader, type, paste } = typing(10)
    const line = reader.next('› ')
    await paste('abcdefghijklmnopqrstuvwxyz')
    reader.above('one\n')
    reader.above('two\n')
    await settled()
    expect(screen.text.slice(0, 5)).toEqual(['one', 'two', '› abcdefgh', 'ijklmnopqr', 'stuvwxyz'])
    await type('!\r')
    expect(await line).toEqual({ kind: 'line', text: 'abcdefghijklmnopqrstuvwxyz!' })
  })

  test('scroll a full screen, and nothing of the line is lost', async () => {
    const { screen, reader, type } = typing(10, 4)
    screen.write('a\nb\nc\n')
    const line = reader.next('› ')
    await type(`0123456789${LEFT.repeat(9)}`)
    for (const note of ['one', 'two', 'three']) reader.above(`${note}\n`)
    await settled()
    const shown = screen.text.filter((one) => one !== '')
    expect(shown).toEqual(['a', 'b', 'c', 'one', 'two', 'three', '› 01234567', '89'])
    await type('x\r')
    expect(await line).toEqual({ kind: 'line', text: '0x123456789' })
  })

  test('are ordinary lines while nothing is typed', async () => {
    const { screen, reader, type } = typing()
    reader.above('before\n')
    const line = reader.next('› ')
    await type('go\r')
    await line
    reader.above('after\n')
    await settled()
    expect(screen.text.slice(0, 3)).toEqual(['before', '› go', 'after'])
  })
})
