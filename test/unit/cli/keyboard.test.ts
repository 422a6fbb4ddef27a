import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { Keyboard } from '../../../src/cli/keyboard.ts'
import type { Words } from '../../../src/client/words.ts'

/** What a terminal does when it is read letter by letter, as far as the keyboard needs it. */
function terminal() {
  const modes: boolean[] = []
  const onRaw: (() => void)[] = []
  const input = Object.assign(new PassThrough(), {
    isTTY: true,
    setRawMode: (raw: boolean) => {
      modes.push(raw)
      if (raw) onRaw.shift()?.()
    },
  })
  return { input, modes, onRaw }
}

const arrival = (words: Words) =>
  new Promise<void>((resolve) => {
    if (words.waiting) return resolve()
    const stop = words.onArrival(() => {
      stop()
      resolve()
    })
  })

test('[EC 15] lines are words as they come, blank ones and refused ones are not', async () => {
  const input = new PassThrough()
  const keyboard = new Keyboard(input, () => undefined)
  const refused: string[] = []
  const words = keyboard.listen((line) => {
    if (line.startsWith('/')) refused.push(line)
    return !line.startsWith('/')
  })
  input.write('one\n  \n/usage\ntwo\nthr')
  await arrival(words)
  expect(words.take()).toEqual(['one', 'two'])
  input.write('ee\n')
  await arrival(words)
  expect(refused).toEqual(['/usage'])
  expect(words.close()).toEqual(['three'])
})

test('the end of the input is no word and no error, and is known', async () => {
  const input = new PassThrough()
  const keyboard = new Keyboard(input, () => undefined)
  const words = keyboard.listen()
  input.end('last')
  await arrival(words)
  await new Promise((resolve) => setImmediate(resolve))
  expect(words.close()).toEqual(['last'])
  expect(keyboard.ended).toBe(true)
  // What listens afterwards has nothing to hear.
  expect(keyboard.listen().close()).toEqual([])
})

test('closed, it leaves the input to others, and can listen again', async () => {
  const input = new PassThrough()
  const keyboard = new Keyboard(input, () => undefined)
  keyboard.listen().close()
  expect(keyboard.ended).toBe(false)
  expect(input.listenerCount('data')).toBe(0)
  const words = keyboard.listen()
  input.write('again\n')
  await arrival(words)
  expect(words.close()).toEqual(['again'])
})

test('a question has the keyboard to itself: what is answered is no word', async () => {
  const { input } = terminal()
  const keyboard = new Keyboard(input, () => undefined)
  const words = keyboard.listen()
  const answer = await keyboard.asking(async () => {
    const typed = new Promise<string>((resolve) => input.once('data', (piece) => resolve(String(piece))))
    input.resume()
    input.write('y\n')
    const text = await typed
    input.pause()
    return text
  })
  expect(answer).toBe('y\n')
  input.write('next\n')
  await arrival(words)
  expect(words.close()).toEqual(['next'])
})

test('what was begun before a question is no answer to it: whole lines are words, the rest is shown again and goes on', async () => {
  const { input, modes, onRaw } = terminal()
  let echoed = ''
  const keyboard = new Keyboard(input, (text) => {
    echoed += text
  })
  const words = keyboard.listen()
  // The terminal kept the line until now.
  onRaw.push(() => input.write('stop at once\nyes, but fi'))
  let answered = ''
  const answer = await keyboard.asking(async () => {
    input.once('data', (piece) => {
      answered += String(piece)
    })
    return 'decided'
  })
  expect([answer, answered, echoed]).toEqual(['decided', '', 'yes, but fi'])
  expect(modes).toEqual([true, false])
  input.removeAllListeners('data')
  expect(words.take()).toEqual(['stop at once'])
})

test('a begun line goes on after the question', async () => {
  const { input, onRaw } = terminal()
  const keyboard = new Keyboard(input, () => undefined)
  const words = keyboard.listen()
  onRaw.push(() => input.write('do it tw\u001bic'))
  await keyboard.asking(async () => undefined)
  input.write('e\n')
  await arrival(words)
  expect(words.close()).toEqual(['do it twice'])
})

test('[U26] Ctrl-C right before a question is still a stop', async () => {
  const { input, onRaw } = terminal()
  const keyboard = new Keyboard(input, () => undefined)
  const words = keyboard.listen()
  const stopped = new Promise<void>((resolve) => process.once('SIGINT', () => resolve()))
  onRaw.push(() => input.write('\u0003'))
  await keyboard.asking(async () => undefined)
  await stopped
  words.close()
})
