import { readFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { credentialsPath, saveCredentials } from '../../../src/cli/credentials.ts'
import { runCli } from '../../../src/cli/program.ts'
import { configHome } from '../../support/node/config-home.ts'
import { type ScriptedIo, scriptedIo } from '../../support/node/scripted-io.ts'
import {
  json,
  refusal,
  type ScriptedRouter,
  startScriptedRouter,
} from '../../support/node/scripted-router.ts'

const ME = '/api/v1/auth/me'
const USER = '0197d0a2-6c1e-7c52-9a55-0c6a6f1d2b00'

let router: ScriptedRouter
let io: ScriptedIo
beforeEach(async () => {
  router = await startScriptedRouter()
  io = scriptedIo()
  configHome()
  vi.stubEnv('SWITCHYARD_URL', router.url)
  const token = { value: 't0', expires_at: '2099-01-01T00:00:00.000Z' }
  saveCredentials(router.url, { user_id: USER, api_key: 'sk-old', token })
  router.always('GET', ME, json({ user_id: USER }))
})
afterEach(async () => {
  expect(router.unexpected).toEqual([])
  await router.close()
})
const cli = (...argv: string[]) => runCli(argv, { makeIo: () => io })

describe('account delete', () => {
  const deleted = json({ deleted: true })
  const stored = () => readFileSync(credentialsPath(), 'utf8')

  test('asks for the words to be typed, sends token and key, and forgets the key', async () => {
    io = scriptedIo({ isTty: true })
    io.lines.push(
      { kind: 'line', text: 'yes' },
      { kind: 'interrupted' },
      { kind: 'line', text: ' delete my account ' },
    )
    expect(await cli('account', 'delete')).toBe(1)
    expect(await cli('account', 'delete')).toBe(1)
    expect(router.count('DELETE', ME)).toBe(0)
    expect(stored()).toContain('sk-old')
    router.script('DELETE', ME, deleted)
    expect(await cli('account', 'delete')).toBe(0)
    expect(io.stderr).toContain(USER)
    const headers = router.requests.at(-1)?.headers
    expect([headers?.authorization, headers?.['x-smista-api-key']]).toEqual(['Bearer t0', 'sk-old'])
    expect(stored()).not.toContain('sk-old')
  })

  test('without a terminal it needs --yes, and is told so before anything is asked', async () => {
    expect(await cli('account', 'delete')).toBe(2)
    expect(router.requests).toEqual([])
    router.script('DELETE', ME, deleted)
    expect(await cli('account', 'delete', '--yes')).toBe(0)
    expect(stored()).not.toContain('sk-old')
  })

  test('a refusal keeps what is stored', async () => {
    router.script('DELETE', ME, refusal(401, 'invalid_api_key'))
    expect(await cli('account', 'delete', '--yes')).toBe(3)
    expect(stored()).toContain('sk-old')
  })

  test('the account of SWITCHYARD_API_KEY is deleted, and another that is stored stays so', async () => {
    vi.stubEnv('SWITCHYARD_API_KEY', 'sk-env')
    router.script(
      'POST',
      '/api/v1/auth/sign-in',
      json({ token: 't9', expires_at: '2099-01-01T00:00:00.000Z' }),
    )
    router.always('GET', ME, json({ user_id: 'another' }))
    router.script('DELETE', ME, deleted)
    expect(await cli('account', 'delete', '--yes')).toBe(0)
    expect(router.requests.at(-1)?.headers['x-smista-api-key']).toBe('sk-env')
    expect(stored()).toContain('sk-old')
  })
})
