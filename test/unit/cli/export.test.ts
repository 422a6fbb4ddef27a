import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { saveCredentials } from '../../../src/cli/credentials.ts'
import { runCli } from '../../../src/cli/program.ts'
import { configHome } from '../../support/node/config-home.ts'
import { type ScriptedIo, scriptedIo } from '../../support/node/scripted-io.ts'
import {
  json,
  type Reply,
  refusal,
  type ScriptedRouter,
  startScriptedRouter,
} from '../../support/node/scripted-router.ts'
import { SESSION, sessionSummary } from '../../support/node/scripted-router-turns.ts'

const ME = '/api/v1/auth/me'
const ALL = '/api/v1/export'
const ONE = `/api/v1/sessions/${SESSION}/export`
const USER = '0197d0a2-6c1e-7c52-9a55-0c6a6f1d2b00'

let router: ScriptedRouter
let io: ScriptedIo
let cwd: string
beforeEach(async () => {
  router = await startScriptedRouter()
  io = scriptedIo()
  cwd = configHome().cwd
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

const opening = { type: 'export', version: 1, user_id: USER, exported_at: '2026-01-01T00:00:00.000Z' }
const session = { type: 'session', ...sessionSummary }
const end = (sessions: number, next?: string) => ({ type: 'end', sessions, ...(next ? { next } : {}) })
const text = (records: object[]) => records.map((record) => `${JSON.stringify(record)}\n`).join('')

/** Lines in pieces that end anywhere; then the end of the answer, or a broken connection. */
const lines =
  (records: object[], ending: 'end' | 'cut' = 'end'): Reply =>
  async (response) => {
    response.writeHead(200, { 'Content-Type': 'application/x-ndjson' })
    const whole = Buffer.from(text(records))
    for (let at = 0; at < whole.length; at += 7) {
      await new Promise<void>((resolve) => response.write(whole.subarray(at, at + 7), () => resolve()))
    }
    if (ending === 'end') response.end()
    else response.destroy()
  }

describe('export', () => {
  test('one session goes to stdout as it came, what this version does not know included', async () => {
    const records = [opening, { ...session, title: 'ünïcödé ✓', later: { added: true } }, end(1)]
    router.script('GET', ONE, lines(records))
    expect(await cli('export', SESSION)).toBe(0)
    expect(io.stdout).toBe(text(records))
    expect(io.stderr).toBe('')
    expect(router.requests.at(-1)?.headers.accept).toBe('application/x-ndjson')
  })

  test('pages become one export: one opening, one end with all sessions', async () => {
    const [a, b] = [SESSION, SESSION.replace('0197', '0198')]
    const first = { ...session, id: a }
    const second = { ...session, id: b }
    router.script('GET', ALL, lines([opening, first, end(1, a)]))
    router.script('GET', `${ALL}?after=${a}`, lines([opening, second, end(1, b)]))
    router.script('GET', `${ALL}?after=${b}`, lines([opening, end(0)]))
    const file = path.join(cwd, 'mine.ndjson')
    expect(await cli('export', '--output', file)).toBe(0)
    expect(readFileSync(file, 'utf8')).toBe(text([opening, first, second, end(2)]))
    expect(readdirSync(cwd)).toEqual(['mine.ndjson'])
    expect((statSync(file).mode & 0o777).toString(8)).toBe('600')
    expect(io.stdout).toBe('')
    expect(io.stderr).toBe(`${file}: 2 sessions\n`)
  })

  test.each([
    ['whose connection breaks', lines([opening, session], 'cut'), 3, 'not whole'],
    ['without an end', lines([opening, session]), 3, 'broke off before its end'],
    ['that is empty', lines([]), 3, 'broke off before its end'],
    ['whose lines are something else', lines([{ type: 'hello' }, end(0)]), 1, 'promised shape'],
    ['that is refused', refusal(404, 'session_not_found'), 1, 'session_not_found'],
  ] as const)(
    'an answer %s leaves what was there, and nothing half done',
    async (_name, reply, code, sentence) => {
      router.script('GET', ONE, reply)
      const file = path.join(cwd, 'mine.ndjson')
      writeFileSync(file, 'from before')
      expect(await cli('export', SESSION, '--output', file)).toBe(code)
      expect(io.stderr).toContain(sentence)
      expect(readFileSync(file, 'utf8')).toBe('from before')
      expect(readdirSync(cwd)).toEqual(['mine.ndjson'])
    },
  )

  test('of an unknown session is not told to restore it, since archived ones are exported as they are', async () => {
    router.script('GET', ONE, refusal(404, 'session_not_found'))
    expect(await cli('export', SESSION)).toBe(1)
    expect(io.stderr).toContain('`switchyard sessions list` shows your sessions')
    expect(io.stderr).not.toContain('restore')
  })

  test('a later page that fails makes the whole a failure', async () => {
    router.script('GET', ALL, lines([opening, session, end(1, SESSION)]))
    router.script('GET', `${ALL}?after=${SESSION}`, lines([opening], 'cut'))
    const file = path.join(cwd, 'mine.ndjson')
    expect(await cli('export', '--output', file)).toBe(3)
    expect(existsSync(file)).toBe(false)
    expect(readdirSync(cwd)).toEqual([])
  })

  test('a file that cannot be written is told before anything is asked for', async () => {
    expect(await cli('export', '--output', path.join(cwd, 'missing', 'mine.ndjson'))).toBe(1)
    expect(io.stderr).toContain('cannot be written (ENOENT)')
    expect(router.count('GET', ALL)).toBe(0)
  })

  test('a folder in its place is told, and nothing is left over', async () => {
    router.script('GET', ALL, lines([opening, end(0)]))
    const file = path.join(cwd, 'taken')
    mkdirSync(path.join(file, 'x'), { recursive: true })
    expect(await cli('export', '--output', file)).toBe(1)
    expect(io.stderr).toContain('cannot be written')
    expect(readdirSync(cwd)).toEqual(['taken'])
  })

  test('progress is told on a terminal only', async () => {
    router.script('GET', ALL, lines([opening, session, end(1)]))
    io = scriptedIo({ isTty: true })
    expect(await cli('export')).toBe(0)
    expect(io.stderr).toBe('\r1 session\r\u001b[K')
  })

  test('Ctrl-C leaves nothing half done: exit 130', async () => {
    const file = path.join(cwd, 'mine.ndjson')
    router.script('GET', ALL, (response) => {
      response.writeHead(200, { 'Content-Type': 'application/x-ndjson' })
      response.write(text([opening, session]), () => process.emit('SIGINT'))
    })
    expect(await cli('export', '--output', file)).toBe(130)
    expect(readdirSync(cwd)).toEqual([])
  })
})
