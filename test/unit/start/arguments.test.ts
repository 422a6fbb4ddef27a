import { describe, expect, test } from 'vitest'
import { parseDevArguments } from '../../../scripts/lib-node/dev-arguments.mjs'
import { exitCodeOf, readCounts } from '../../../scripts/lib-node/test-counts.mjs'
import { DEFAULT_PROMPT, readStartArguments } from '../../../src/cli/start/arguments.ts'
import { farewell } from '../../../src/cli/start/farewell.ts'
import { err } from '../../../src/protocol/result.ts'

describe('npm run dev', () => {
  const parse = (...given: string[]) =>
    parseDevArguments(given, { folder: '/home/me', defaultState: '/repo/.wrangler/state' })

  test('has its defaults', () => {
    expect(parse()).toEqual({
      ok: true,
      value: {
        ip: '127.0.0.1',
        port: 8787,
        persistTo: '/repo/.wrangler/state',
        help: false,
        forDev: [
          '--inspector-port',
          '0',
          '--ip',
          '127.0.0.1',
          '--port',
          '8787',
          '--persist-to',
          '/repo/.wrangler/state',
        ],
        forMigrations: ['--persist-to', '/repo/.wrangler/state'],
      },
    })
  })

  test('passes everything else on as it came, repeated options included', () => {
    const parsed = parse(
      '--port',
      '8899',
      '--ip=127.0.0.2',
      '--var',
      'A:1',
      '--var=B:x=y',
      '--persist-to',
      'state',
      '-c',
      'w.toml',
    )
    expect(parsed.ok && parsed.value.forDev).toEqual([
      ...['--var', 'A:1', '--var=B:x=y', '-c', 'w.toml'],
      ...['--inspector-port', '0', '--ip', '127.0.0.2', '--port', '8899', '--persist-to', '/home/me/state'],
    ])
    expect(parsed.ok && parsed.value.forMigrations).toEqual([
      '-c',
      'w.toml',
      '--persist-to',
      '/home/me/state',
    ])
  })

  test.each([
    [['--port', 'x'], /--port x is no port/],
    [['--ip', '0.0.0.0'], /anybody .* --lan/],
    [['--ip=::'], /anybody .* --lan/],
    [['--ip', '192.168.1.20'], /anybody .* --lan/],
    [['--port'], /--port needs a value/],
    [['--persist-to='], /--persist-to needs a value/],
  ])('%j is refused with a sentence', (given, message) => {
    expect(parse(...given)).toEqual({ ok: false, error: expect.stringMatching(message) })
  })

  test.each(['--remote', '-r', '--tunnel', '--tunnel=true'])(
    '[D43] %s is refused: sign-up is open here',
    (given) => {
      expect(parse(given)).toEqual({ ok: false, error: expect.stringContaining('refused') })
    },
  )
})

describe('npm start', () => {
  test('has its defaults', () => {
    expect(readStartArguments([], {})).toEqual({
      ok: true,
      value: {
        help: false,
        prompt: DEFAULT_PROMPT,
        port: 8787,
        portGiven: false,
        model: undefined,
        sessionId: undefined,
        persistTo: undefined,
        lan: false,
      },
    })
  })

  test('--session is what the last line of a run says to go on with', () => {
    const sessionId = '0197d0a2-6c1e-7c52-9a55-0c6a6f1d2b11'
    expect(readStartArguments(['--session', sessionId, 'and', 'then?'], {})).toMatchObject({
      value: { sessionId, prompt: 'and then?' },
    })
    expect(readStartArguments(['--session', 'x'], {})).toEqual(err('--session x is no id of a session.'))
  })

  test('[D42] --lan is asked for, and takes no value', () => {
    expect(readStartArguments(['--lan', 'go'], {})).toMatchObject({ value: { lan: true, prompt: 'go' } })
    expect(readStartArguments(['--lan=0.0.0.0'], {})).toMatchObject({ ok: false })
  })

  test('words without quotes are one prompt, and the environment gives port and model', () => {
    const env = { PORT: '9000', SWITCHYARD_MODEL: 'ollama/a' }
    expect(readStartArguments(['where', 'is', 'x'], env)).toMatchObject({
      value: { prompt: 'where is x', port: 9000, portGiven: true, model: 'ollama/a' },
    })
    expect(readStartArguments(['--model', 'b'], env)).toMatchObject({ value: { model: 'b' } })
  })

  test.each(['0', '70000', 'abc', '-1', '80.5'])('PORT=%s is refused with a sentence', (port) => {
    expect(readStartArguments([], { PORT: port })).toEqual({
      ok: false,
      error: `PORT=${port} is no port number (1 to 65535).`,
    })
  })

  test('an unknown option is named', () => {
    expect(readStartArguments(['--frob'], {})).toEqual({
      ok: false,
      error: expect.stringContaining('--frob'),
    })
  })

  test('what stays is told with commands that a shell takes, whatever the folder is called', () => {
    const text = farewell({ stateFolder: "/home/o'neil/my state", credentialsFile: '/home/o/c.json' })
    expect(text).toContain(`rm -rf '/home/o'\\''neil/my state'`)
    expect(text).toContain('rm /home/o/c.json')
    expect(text).not.toContain('encrypted')
  })

  test('[U35] keys of encrypted sessions are named where there are some, with what goes with them', () => {
    const text = farewell({ stateFolder: '/s', credentialsFile: '/c.json', sessionKeysFolder: '/k/keys' })
    expect(text).toContain(
      'keys of encrypted sessions, without which nobody can read those any more: /k/keys\n    remove with: rm -r /k/keys\n',
    )
  })
})

describe('npm test', () => {
  test.each([
    [0, '{"passed":3,"failed":0}', 0],
    [1, '{"passed":3,"failed":1}', 1],
    [0, '{"passed":3,"failed":1}', 1],
    [0, '{"passed":0,"failed":0}', 1],
    [0, '', 1],
    [130, '', 130],
  ])('vitest ended with %i and reported %j: exit code %i', (code, text, expected) => {
    expect(exitCodeOf(code, readCounts(text))).toBe(expected)
  })
})
