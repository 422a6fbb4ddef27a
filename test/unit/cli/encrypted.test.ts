import { chmodSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { configFolder, saveCredentials } from '../../../src/cli/credentials.ts'
import { openKeyStore } from '../../../src/cli/keys/key-folder.ts'
import { runCli } from '../../../src/cli/program.ts'
import { makeSealer, type Sealer } from '../../../src/client/crypto/sealer.ts'
import { generateKey, type SessionKey } from '../../../src/client/crypto/session-key.ts'
import type { SealedMap } from '../../../src/protocol/execution/sealed.ts'
import type { Payload } from '../../../src/protocol/execution/trace.ts'
import { configHome } from '../../support/node/config-home.ts'
import { type ScriptedIo, scriptedIo } from '../../support/node/scripted-io.ts'
import {
  json,
  refusal,
  type ScriptedRouter,
  startScriptedRouter,
  stream,
} from '../../support/node/scripted-router.ts'
import {
  awaitingTool,
  call,
  completed,
  idle,
  paths,
  SESSION,
  sessionSummary,
} from '../../support/node/scripted-router-turns.ts'
import { cost } from '../../support/node/scripted-trace.ts'

const ROUTE = '[routing.default]\nmodel = "ollama/small"\n'
const ENCRYPT = `${ROUTE}[local_preferences]\nencrypt_sessions = true\n`
const SESSIONS = '/api/v1/sessions'
const DETAIL = `${SESSIONS}/${SESSION}`
const TRACES = `${DETAIL}/traces`
const ID = '0197d0a2-6c1e-7c52-9a55-0c6a6f1d2b12'

let router: ScriptedRouter
let io: ScriptedIo
let cwd: string

beforeEach(async () => {
  router = await startScriptedRouter()
  io = scriptedIo()
  useConfig(ROUTE)
})
afterEach(async () => {
  expect(router.unexpected).toEqual([])
  await router.close()
})

function useConfig(global: string): void {
  cwd = configHome({ global }).cwd
  vi.stubEnv('SWITCHYARD_URL', router.url)
  saveCredentials(router.url, {
    user_id: 'u1',
    api_key: 'sk-stored',
    token: { value: 't0', expires_at: '2099-01-01T00:00:00.000Z' },
  })
  router.always('GET', '/api/v1/auth/me', json({ user_id: 'u1' }))
}

const cli = (...argv: string[]) => runCli(argv, { makeIo: () => io })
const run = (...argv: string[]) => cli('run', '--cwd', cwd, ...argv)
const keyFiles = () => {
  try {
    return readdirSync(path.join(configFolder(), 'keys'))
  } catch {
    return []
  }
}
const asked = { 'message:a1': 'Four.' }
const answers = (content = 'Four.') => {
  router.script('POST', paths.execute, stream([{ event: completed(content, { to_encrypt: asked }) }]))
  router.script('POST', paths.continue, stream([{ event: idle }]))
}
/** The router makes whatever session it is asked for; what keys there were then is noted. */
function makesSessions(): { keysThen: string[][] } {
  const noted: { keysThen: string[][] } = { keysThen: [] }
  router.always('POST', SESSIONS, (response, request) => {
    noted.keysThen.push(keyFiles())
    const { key_id } = request.body as { key_id?: string }
    const session = { ...sessionSummary, encrypted: key_id !== undefined, ...(key_id ? { key_id } : {}) }
    return json({ session }, 201)(response, request)
  })
  return noted
}
const created = () => router.requests.find(({ path: at }) => at === SESSIONS)?.body as Record<string, string>
/** What the first continuation carried sealed. */
function sentSealed(): SealedMap {
  const request = router.requests.find(({ path: at }) => at === paths.continue)
  if (!request) throw new Error('nothing was sent')
  return (request.body as { data: { encrypted: SealedMap } }).data.encrypted
}

describe('a new encrypted session', () => {
  test('[D48, D47] has a key of its own that is kept before the router hears of it, and a title without its prompt', async () => {
    const { keysThen } = makesSessions()
    answers()
    expect(await run('--encrypted', 'two', 'plus', 'two')).toBe(0)
    const { key_id: keyId = '', title, scope } = created()
    expect(keyId).toMatch(/^kf2_/)
    expect(title).toMatch(/^Encrypted session \d{4}-\d\d-\d\d \d\d:\d\d$/)
    expect(scope).toBe(cwd)
    expect(keysThen).toEqual([[`${keyId}.json`]])
    const key = await openKeyStore().load(keyId)
    const envelope = sentSealed()['message:a1']
    if (!key.ok || !envelope) throw new Error('no key or no envelope')
    expect(makeSealer(key.value, SESSION).open('message:a1', envelope)).toEqual({ ok: true, value: 'Four.' })
    expect(io.stdout).toBe('Four.\n')
    // Before a lost key costs anything (U35).
    expect(io.stderr).toContain(`lost without its key: \`switchyard keys export ${keyId}\``)
  })

  test('[D48] --interop makes what every client of the contract reads', async () => {
    makesSessions()
    answers()
    expect(await run('--encrypted', '--interop', '--title', 'mine', 'hi')).toBe(0)
    expect(created()).toMatchObject({ title: 'mine', key_id: expect.stringMatching(/^kf_/) })
    expect(sentSealed()['message:a1']?.version).toBe(1)
  })

  test('[EC 24.1] is what the configuration asks for, and an option says otherwise; the router is not told', async () => {
    useConfig(ENCRYPT)
    makesSessions()
    answers()
    expect(await run('hi')).toBe(0)
    expect(created().key_id).toMatch(/^kf2_/)
    const executed = router.requests.find(({ path: at }) => at === paths.execute)?.body
    expect(JSON.stringify(executed)).not.toContain('encrypt')
    router.requests.length = 0
    router.script('POST', paths.execute, stream([{ event: completed('x') }]))
    expect(await run('--no-encrypted', 'hi')).toBe(0)
    expect(created()).toEqual({ title: 'hi', scope: cwd })
  })

  test('is not asked for in two ways at once', async () => {
    for (const option of [['--encrypted'], ['--no-encrypted'], ['--interop'], ['--title', 'mine']]) {
      expect(await run(...option, '--session', SESSION, 'hi')).toBe(2)
      expect(io.stderr).toContain("cannot be used with option '--session <id>'")
      io.stderr = ''
    }
    for (const both of [
      ['--encrypted', '--no-encrypted'],
      ['--no-encrypted', '--encrypted'],
    ]) {
      expect(await run(...both, 'hi')).toBe(2)
      expect(io.stderr).toContain('--encrypted and --no-encrypted exclude each other')
      io.stderr = ''
    }
    expect(await run('--interop', 'hi')).toBe(2)
    expect(io.stderr).toContain('--interop is about encrypted sessions')
    expect(router.requests.map(({ path: at }) => at)).toEqual([])
  })

  test('that the router makes in plain text gets no prompt', async () => {
    router.script('POST', SESSIONS, json({ session: sessionSummary }, 201))
    expect(await run('--encrypted', 'secret')).toBe(1)
    expect(io.stderr).toContain('did not make the session an encrypted one')
    expect(router.count('POST', paths.execute)).toBe(0)
  })

  test('is not made when its key cannot be kept', async () => {
    mkdirSync(configFolder(), { recursive: true })
    writeFileSync(path.join(configFolder(), 'keys'), 'a file where the folder should be')
    expect(await run('--encrypted', 'hi')).toBe(1)
    expect(io.stderr).toContain('error: the key of the session cannot be kept')
    expect(router.count('POST', SESSIONS)).toBe(0)
  })

  test('whose answer is not kept says so, and ends with 1', async () => {
    makesSessions()
    router.script('POST', paths.execute, stream([{ event: completed('Four.', { to_encrypt: asked }) }]))
    router.script('POST', paths.continue, refusal(502, 'storage_error'))
    router.script('GET', DETAIL, refusal(502, 'storage_error'))
    expect(await run('--encrypted', 'hi')).toBe(1)
    expect(io.stdout).toBe('Four.\n')
    expect(io.stderr).toContain('error: what was said last is not kept in the session')
  })

  test('[D20] that the client gives up on says what may be gone with the router', async () => {
    makesSessions()
    const pause = awaitingTool(call('c1', 'list_files', { path: '.' }))
    router.script('POST', paths.execute, stream([{ event: pause }]))
    router.always('POST', paths.continue, stream([{ event: pause }]))
    expect(await run('--encrypted', 'hi')).toBe(3)
    expect(io.stderr).toContain(
      'if the router has stopped, what was said last in this encrypted session was perhaps not sealed',
    )
  })

  test('as JSON says what was said, and nothing of what was sealed', async () => {
    makesSessions()
    answers()
    expect(await run('--encrypted', '--json', 'hi')).toBe(0)
    const lines = io.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    const keyId = created().key_id
    // A script that lost it would lose the session (U35).
    expect(lines[0]).toEqual({ type: 'session', session_id: SESSION, key_id: keyId })
    expect(io.stderr).toContain(`\`switchyard keys export ${keyId}\` gives you a copy`)
    expect(lines.map(({ type, status }) => [type, status])).toEqual([
      ['session', undefined],
      ['turn_end', 'completed'],
      ['run_ended', 'completed'],
    ])
    expect(io.stdout).not.toContain('to_encrypt')
  })

  test('[U23] a project may ask for encryption, and may not take it back', async () => {
    for (const [global, project, code] of [
      [ROUTE, '[local_preferences]\nencrypt_sessions = true\n', 0],
      [ENCRYPT, '[local_preferences]\nencrypt_sessions = false\n', 2],
    ] as const) {
      useConfig(global)
      mkdirSync(path.join(cwd, '.switchyard'))
      writeFileSync(path.join(cwd, '.switchyard', 'config.toml'), project)
      makesSessions()
      if (code === 0) answers()
      router.requests.length = 0
      expect(await run('hi')).toBe(code)
      expect(created()?.key_id !== undefined).toBe(code === 0)
    }
    expect(io.stderr).toContain('local_preferences.encrypt_sessions: a project may not turn true')
  })
})

describe('an encrypted session that exists', () => {
  let key: SessionKey
  let sealer: Sealer
  const summary = () => ({ ...sessionSummary, encrypted: true, key_id: key.keyId })
  const detail = (messages: unknown[] = []) => ({
    id: SESSION,
    title: 'Encrypted session',
    key_id: key.keyId,
    created_at: sessionSummary.created_at,
    updated_at: sessionSummary.updated_at,
    messages,
    metadata: null,
  })
  const message = (text: string, ref = `message:${ID}`) => ({
    role: 'user',
    id: ID,
    content: { encrypted: sealer.seal(ref, text) },
  })
  const keep = () => openKeyStore().save(key)
  const list = (...sessions: unknown[]) => router.always('GET', '/api/v1/*', json({ sessions }))
  const locked = () => `locked: key ${key.keyId} is needed`

  beforeEach(async () => {
    key = await generateKey(2)
    sealer = makeSealer(key, SESSION)
    list(summary())
  })

  test('[U35] is locked without its key: a sentence names it, and nothing is sent', async () => {
    list(summary())
    expect(await run('--session', SESSION, 'go on')).toBe(1)
    expect(io.stderr).toBe(`error: this session is ${locked()}; import it with \`switchyard keys import\`\n`)
    expect(router.requests.filter(({ method }) => method === 'POST')).toEqual([])
  })

  test('[U35] is found wherever it belongs, and a key that others can read is not used', async () => {
    await keep()
    const file = path.join(configFolder(), 'keys', `${key.keyId}.json`)
    chmodSync(file, 0o644)
    list()
    router.script('GET', DETAIL, json({ session: detail() }))
    expect(await run('--session', SESSION, 'go on')).toBe(1)
    expect(io.stderr).toContain('error: this session is locked: others on this machine can read the key')
    expect(router.requests.filter(({ method }) => method === 'POST')).toEqual([])
  })

  test('a conversation opens it once, with a key that may be imported in its course', async () => {
    list(summary())
    io = scriptedIo({ isTty: true })
    io.lines.push(...['one', 'two', 'three'].map((text) => ({ kind: 'line', text }) as const))
    const { readLine } = io
    let prompts = 0
    io.readLine = async (prompt) => {
      if (++prompts === 2) await keep()
      return readLine(prompt)
    }
    router.always('GET', paths.run, json({ status: 'idle', data: { trace_id: 't' } }))
    router.always('POST', paths.execute, stream([{ event: completed('ok') }]))
    expect(await run('--session', SESSION)).toBe(0)
    expect(io.stderr).toContain(`this session is ${locked()}`)
    expect(router.count('POST', paths.execute)).toBe(2)
    expect(router.count('GET', paths.run)).toBe(1)
    expect(router.requests.filter(({ path: at }) => at.startsWith(`${SESSIONS}?scope`))).toHaveLength(2)
  })

  test('with its key goes on, once what an earlier process left unsealed is handed in', async () => {
    await keep()
    list(summary())
    const left = {
      status: 'awaiting_encrypt',
      data: { to_encrypt: { 'message:a0': 'before' }, trace_id: 't' },
    }
    router.script('GET', paths.run, json(left))
    router.script('POST', paths.continue, stream([{ event: idle }]))
    answers()
    expect(await run('--session', SESSION, 'go on')).toBe(0)
    expect(router.requests.filter(({ method }) => method === 'POST').map(({ path: at }) => at)).toEqual([
      paths.continue,
      paths.execute,
      paths.continue,
    ])
    expect(Object.keys(sentSealed())).toEqual(['message:a0'])
  })

  test.each([
    [`run_input:${SESSION}`, 'note', 'the last prompt was not sealed before the router stopped, and is gone'],
    ['message:a0', 'note', 'what was said last was not sealed before the router stopped, and is gone'],
    ['trace:a0', 'nothing', 'is gone'],
  ])('[D20] where the router has lost %s, the next run says it: %s', async (ref, said, words) => {
    await keep()
    const data = { to_encrypt: {}, trace_id: 't' }
    router.script('GET', paths.run, json({ status: 'awaiting_encrypt', data, lost: [ref] }))
    answers()
    expect(await run('--session', SESSION, 'go on')).toBe(0)
    expect(io.stderr.includes(words)).toBe(said === 'note')
    expect(io.stderr.includes('a command of that run may have been carried out')).toBe(said === 'note')
  })

  test('[U35] the list marks it, and whether its key is elsewhere', async () => {
    list(summary(), sessionSummary)
    expect(await cli('sessions', 'list')).toBe(0)
    const [first, second] = io.stdout.split('\n')
    expect(first).toMatch(/a title {2}encrypted {2}locked$/)
    expect(second).toMatch(/a title$/)
    await keep()
    io.stdout = ''
    await cli('sessions', 'list')
    expect(io.stdout.split('\n')[0]).toMatch(/a title {2}encrypted$/)
  })

  test('[U35] its messages are opened with the key, and each that is not says why', async () => {
    await keep()
    const foreign = makeSealer(await generateKey(2), SESSION).seal(`message:${ID}`, 'x')
    const messages = [
      message('hello\n'),
      message('moved', 'message:elsewhere'),
      { role: 'user', id: ID, content: { encrypted: foreign } },
    ]
    router.always('GET', DETAIL, json({ session: detail(messages) }))
    expect(await cli('sessions', 'show', SESSION)).toBe(0)
    expect(io.stdout).toContain('── user\nhello\n')
    expect(io.stdout).toMatch(/\(damaged: .*for this place\)/)
    expect(io.stdout).toContain(
      `(refused: it is sealed with key ${foreign.key_id}, which is not the key of its session)`,
    )
    io.stdout = ''
    await cli('sessions', 'show', SESSION, '--json')
    const shown = JSON.parse(io.stdout) as { messages: { content: unknown }[] }
    expect(shown.messages[0]?.content).toEqual({ plaintext: 'hello\n' })
    expect(shown.messages[2]?.content).toEqual({ encrypted: foreign })
  })

  test('[D48] an envelope of version 1 under another key of this machine, which binds it to no place, is not opened', async () => {
    await keep()
    const unbound = await generateKey(1)
    await openKeyStore().save(unbound)
    const other = makeSealer(unbound, '0197d0a2-6c1e-7c52-9a55-0c6a6f1d2bff')
    const moved = other.seal(`message:${ID}`, 'not of this session')
    // That key would open it in any place.
    expect(makeSealer(unbound, SESSION).open('message:elsewhere', moved)).toMatchObject({ ok: true })
    const messages = [{ role: 'assistant', id: ID, content: { encrypted: moved } }]
    router.always('GET', DETAIL, json({ session: detail(messages) }))
    await cli('sessions', 'show', SESSION)
    const fact = {
      ...{ id: ID, scope: 'session', session_id: SESSION, content: '', encrypted: moved },
      created_at: sessionSummary.created_at,
      updated_at: sessionSummary.updated_at,
    }
    router.always('GET', '/api/v1/memory', json({ memories: [fact] }))
    await cli('memory', 'list')
    tracePage(
      [
        {
          ...event({ type: 'message', role: 'user', provider: '', model: '' }, 1),
          payload: { encrypted: moved },
        },
      ],
      0,
      51,
    )
    tracePage([], 1, 50)
    await cli('trace', SESSION)
    expect(io.stdout.match(/refused: it is sealed with key kf_/g)).toHaveLength(3)
    expect(io.stdout).not.toContain('not of this session')
  })

  test('[D48] an envelope in a session that is in plain text is refused', async () => {
    await keep()
    router.always('GET', DETAIL, json({ session: { ...detail([message('x')]), key_id: null } }))
    await cli('sessions', 'show', SESSION)
    expect(io.stdout).toContain('(refused: it is sealed, and its session is one in plain text)')
  })

  const event = (payload: Payload, n: number) => {
    const id = `0197d0a2-6c1e-7c52-9a55-0c6a6f1d2c${String(n).padStart(2, '0')}`
    return {
      event_type: payload.type,
      task_type: 'edit',
      provider: 'ollama',
      model: 'small',
      created_at: '2026-01-02T03:04:05.000Z',
      id,
      payload: { encrypted: sealer.seal(`trace:${id}`, JSON.stringify(payload)) },
    }
  }
  const tracePage = (events: unknown[], offset = 0, limit = 1000) => {
    const at = `${TRACES}?limit=${limit}&offset=${offset}`
    router.always('GET', at, json({ trace: { session_id: SESSION, events } }))
  }

  test('[U35, D28] its trace is opened event by event', async () => {
    await keep()
    const spoke: Payload = { type: 'message', role: 'assistant', provider: 'ollama', model: 'small' }
    const events = [event(spoke, 1), { ...event(spoke, 2), id: ID }]
    tracePage(events, 0, 51)
    tracePage([], 2, 49)
    expect(await cli('trace', SESSION)).toBe(0)
    const [first, second] = io.stdout.split('\n')
    expect(first).toBe('2026-01-02 03:04:05  message            assistant  ollama/small')
    expect(second).toContain('damaged')
    io.stdout = ''
    await cli('trace', SESSION, '--json')
    const [opened, closed] = io.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(opened.payload).toEqual({ plaintext: spoke })
    expect(closed).toEqual(events[1])
  })

  test('[U35] explain tells of its turns with the key, and without it names the key', async () => {
    const events = [
      event({ type: 'classification', intent: 'edit', source: 'explicit', reason: 'by command' }, 1),
      event({ type: 'message', role: 'assistant', provider: 'ollama', model: 'small' }, 2),
    ]
    tracePage(events)
    tracePage([], 2)
    router.always('GET', paths.run, json({ status: 'idle', data: { trace_id: 't' } }))
    expect(await cli('explain', SESSION)).toBe(0)
    expect(io.stdout).toContain(locked())
    expect(io.stdout).toContain('intent    edit (encrypted)')
    await keep()
    io.stdout = ''
    expect(await cli('explain', SESSION)).toBe(0)
    expect(io.stdout).toContain('intent    edit: by command')
    expect(io.stdout).not.toContain('encrypted')
  })

  test('[EC 20.2] what it used is added up from its trace with the key, and without it the calls are counted', async () => {
    const group = { request_count: 2, sealed_count: 2 }
    const told = {
      total: { sealed_count: 2 },
      by_model: [{ ...group, provider: 'ollama', model: 'small' }],
      by_task_type: [{ ...group, task_type: 'edit' }],
    }
    router.always('GET', paths.usage, json(told))
    tracePage([event(cost('ollama/small', 10, 2, '0.5'), 1), event(cost('ollama/small', 30, 4, '0.25'), 2)])
    tracePage([], 2)
    expect(await cli('usage', SESSION)).toBe(0)
    expect(io.stdout).toContain('total  2 calls  in ? · out ? tokens · cost unknown')
    expect(io.stderr).toBe(`note: what 2 calls used is encrypted (${locked()})\n`)
    await keep()
    io.stdout = ''
    io.stderr = ''
    expect(await cli('usage', SESSION)).toBe(0)
    expect(io.stdout).toContain('total  2 calls  in 40 · out 6 tokens · $0.75\n')
    expect(io.stdout).toContain('  edit  2 calls  in 40 · out 6 tokens · $0.75\n')
    expect(io.stderr).toBe('')
  })

  test('[U43] a call that was cut counts as one, though its trace has no amounts of it', async () => {
    await keep()
    const counts = { request_count: 2, sealed_count: 1, unknown_count: 1 }
    const cut = { request_count: 1, unknown_count: 1 }
    const told = {
      total: { sealed_count: 1, unknown_count: 2 },
      by_model: [
        { ...cut, provider: 'ollama', model: 'other' },
        { ...counts, provider: 'ollama', model: 'small' },
      ],
      by_task_type: [
        { ...counts, task_type: 'edit' },
        { ...cut, task_type: 'plan' },
      ],
    }
    router.always('GET', paths.usage, json(told))
    tracePage([event(cost('ollama/small', 10, 2, '0.5'), 1)])
    tracePage([], 1)
    expect(await cli('usage', SESSION)).toBe(0)
    const amounts = 'in 10 · out 2 tokens · $0.5'
    expect(io.stdout).toBe(
      [
        `total  3 calls  ${amounts}`,
        '',
        'by model',
        '  ollama/other   1 call  in ? · out ? tokens · cost unknown',
        `  ollama/small  2 calls  ${amounts}`,
        '',
        'by task',
        `  edit  2 calls  ${amounts}`,
        '  plan   1 call  in ? · out ? tokens · cost unknown',
        '',
      ].join('\n'),
    )
    expect(io.stderr).toBe('note: not everything is known; the sums hold only what is\n')
    io.stdout = ''
    await cli('usage', SESSION, '--json')
    const { total } = JSON.parse(io.stdout) as { total: Record<string, unknown> }
    expect(total.unknown_count).toBe(2)
    expect(total).not.toHaveProperty('sealed_count')
  })

  test('[U43] a call that its trace does not tell of is said to be missing', async () => {
    await keep()
    const told = {
      total: { sealed_count: 2 },
      by_model: [{ request_count: 2, provider: 'ollama', model: 'small' }],
      by_task_type: [],
    }
    router.always('GET', paths.usage, json(told))
    tracePage([event(cost('ollama/small', 10, 2, '0.5'), 1)])
    tracePage([], 1)
    expect(await cli('usage', SESSION)).toBe(0)
    expect(io.stderr).toBe('note: not everything is known; the sums hold only what is\n')
  })

  test('[U35, D50] its facts are opened with the key, and can be named to be forgotten', async () => {
    const fact = {
      id: ID,
      scope: 'session',
      session_id: SESSION,
      content: '',
      encrypted: sealer.seal(`memory:${ID}`, JSON.stringify({ key: 'tests', content: 'npm test' })),
      created_at: '2026-01-02T03:04:05.000Z',
      updated_at: '2026-01-02T03:04:05.000Z',
    }
    router.always('GET', '/api/v1/memory', json({ memories: [fact] }))
    router.always('GET', `/api/v1/memory?session_id=${SESSION}`, json({ memories: [fact] }))
    expect(await cli('memory', 'list')).toBe(0)
    expect(io.stdout).toBe(`${ID}  2026-01-02 03:04  ${locked()}  session ${SESSION}\n`)
    expect(await cli('memory', 'forget', 'tests', '--session', SESSION)).toBe(1)
    expect(io.stderr).toContain(`1 fact cannot be read (${locked()})`)
    expect(io.stderr).toContain('`switchyard keys import`, or name the id')
    expect(io.stderr).not.toContain('nothing is remembered')
    await keep()
    io.stdout = ''
    await cli('memory', 'list')
    expect(io.stdout).toBe(`${ID}  2026-01-02 03:04  tests: npm test  session ${SESSION}\n`)
    router.script('DELETE', `/api/v1/memory/${ID}`, json({ deleted: true }))
    expect(await cli('memory', 'forget', 'tests', '--session', SESSION)).toBe(0)
  })
})
