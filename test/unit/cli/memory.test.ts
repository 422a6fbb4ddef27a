import { version } from 'uuid'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { saveCredentials } from '../../../src/cli/credentials.ts'
import { runCli } from '../../../src/cli/program.ts'
import { configHome } from '../../support/node/config-home.ts'
import { type ScriptedIo, scriptedIo } from '../../support/node/scripted-io.ts'
import {
  json,
  refusal,
  type ScriptedRouter,
  startScriptedRouter,
} from '../../support/node/scripted-router.ts'
import { SESSION } from '../../support/node/scripted-router-turns.ts'

let router: ScriptedRouter
let io: ScriptedIo

beforeEach(async () => {
  router = await startScriptedRouter()
  io = scriptedIo()
  configHome({})
  vi.stubEnv('SWITCHYARD_URL', router.url)
  saveCredentials(router.url, {
    user_id: 'u1',
    api_key: 'sk-stored',
    token: { value: 't0', expires_at: '2099-01-01T00:00:00.000Z' },
  })
  router.always('GET', '/api/v1/auth/me', json({ user_id: 'u1' }))
})
afterEach(async () => {
  expect(router.unexpected).toEqual([])
  await router.close()
})

const cli = (...argv: string[]) => runCli(argv, { makeIo: () => io })
const ID = '0197d0a2-6c1e-7c52-9a55-0c6a6f1d2b11'
const fact = (fields: Record<string, unknown> = {}) => ({
  id: ID,
  scope: 'user',
  key: 'editor',
  content: 'vim',
  created_at: '2026-01-02T03:04:05.000Z',
  updated_at: '2026-01-02T03:04:05.000Z',
  ...fields,
})
const LIST = '/api/v1/memory'
const USER_FACTS = `${LIST}?scope=user`
const SESSION_FACTS = `${LIST}?session_id=${SESSION}`
/** The last request that changed something. */
const change = () => router.requests.findLast(({ method }) => method !== 'GET')

describe('memory list', () => {
  test('[D50] shows each fact on a line of its own, whatever is in it', async () => {
    const inSession = fact({
      scope: 'session',
      session_id: SESSION,
      key: undefined,
      content: 'a\n\u001b[2Jb',
    })
    router.script('GET', LIST, json({ memories: [fact({ local_only: true }), inSession] }))
    expect(await cli('memory', 'list')).toBe(0)
    expect(io.stdout).toBe(
      `${ID}  2026-01-02 03:04  editor: vim  local only\n` +
        `${ID}  2026-01-02 03:04  a \\u{1b}[2Jb  session ${SESSION}\n`,
    )
  })

  test('[D50] of one session, as JSON', async () => {
    router.script('GET', SESSION_FACTS, json({ memories: [] }))
    expect(await cli('memory', 'list', '--session', SESSION, '--json')).toBe(0)
    expect(io.stdout).toBe('[]\n')
  })

  test('says so when there is nothing', async () => {
    router.script('GET', LIST, json({ memories: [] }))
    expect(await cli('memory', 'list')).toBe(0)
    expect(io.stdout).toBe('')
    expect(io.stderr).toBe('nothing is remembered\n')
  })
})

describe('memory set', () => {
  test('[D50] replaces the fact that has the key', async () => {
    router.script('GET', USER_FACTS, json({ memories: [fact()] }))
    router.script('PUT', `${LIST}/${ID}`, json({ memory: fact({ content: 'emacs now' }) }))
    expect(await cli('memory', 'set', 'editor', 'emacs', 'now')).toBe(0)
    expect(change()?.body).toEqual({ scope: 'user', key: 'editor', content: 'emacs now' })
    expect(io.stderr).toBe(`remembered editor (${ID})\n`)
  })

  test('[D22] [D50] makes a fact under a UUIDv7 of its own when the key is new', async () => {
    router.script('GET', SESSION_FACTS, json({ memories: [fact({ key: 'other' })] }))
    router.always('PUT', `${LIST}/*`, json({ memory: fact() }))
    expect(await cli('memory', 'set', 'editor', 'vim', '--session', SESSION, '--local-only')).toBe(0)
    expect(change()?.body).toEqual({
      scope: 'session',
      session_id: SESSION,
      key: 'editor',
      content: 'vim',
      local_only: true,
    })
    expect(version(change()?.path.split('/').at(-1) ?? '')).toBe(7)
  })

  test('a refusal is told, with exit 1', async () => {
    router.script('GET', USER_FACTS, json({ memories: [fact()] }))
    router.script('PUT', `${LIST}/${ID}`, refusal(422, 'invalid_request'))
    expect(await cli('memory', 'set', 'editor', 'x')).toBe(1)
    expect(io.stderr).toContain('scripted invalid_request')
  })
})

describe('memory set in an encrypted session', () => {
  test('[D50] is refused by the router, and the command says who records facts there', async () => {
    router.script('GET', SESSION_FACTS, json({ memories: [] }))
    router.always('PUT', `${LIST}/*`, refusal(422, 'invalid_request'))
    const session = {
      ...{ id: SESSION, title: '', key_id: 'kf2_x', messages: [], metadata: null },
      ...{ created_at: '2026-01-02T03:04:05.000Z', updated_at: '2026-01-02T03:04:05.000Z' },
    }
    router.script('GET', `/api/v1/sessions/${SESSION}`, json({ session }))
    expect(await cli('memory', 'set', 'editor', 'vim', '--session', SESSION)).toBe(1)
    expect(io.stderr).toContain(
      `recorded by models, in its runs: \`switchyard run --session ${SESSION} "remember that …"\``,
    )
  })
})

describe('memory forget', () => {
  test.each([
    ['its key', 'editor'],
    ['its id', ID.toUpperCase()],
  ])('[D50] a fact by %s', async (_, name) => {
    router.script('GET', USER_FACTS, json({ memories: [fact()] }))
    router.script('DELETE', `${LIST}/${ID}`, json({ deleted: true }))
    expect(await cli('memory', 'forget', name)).toBe(0)
    expect(io.stderr).toBe('forgot editor\n')
  })

  test('of what nobody remembers is a failure', async () => {
    router.script('GET', SESSION_FACTS, json({ memories: [] }))
    expect(await cli('memory', 'forget', 'editor', '--session', SESSION)).toBe(1)
    expect(io.stderr).toContain('nothing is remembered under "editor"')
    expect(change()).toBeUndefined()
  })
})
