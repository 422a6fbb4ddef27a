import { type ChildProcess, spawn } from 'node:child_process'
import { copyFileSync, mkdirSync } from 'node:fs'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  json,
  numbered,
  openStream,
  type ScriptedRouter,
  startScriptedRouter,
  stream,
} from '../../support/node/scripted-router.ts'
import { idle, paths, SESSION, sessionSummary, text } from '../../support/node/scripted-router-turns.ts'
import { tempFolder } from '../../support/node/temp-folder.ts'

const LAUNCHER = path.resolve(import.meta.dirname, '../../../bin/switchyard.mjs')

type Finished = { code: number | null; stdout: string; stderr: string }

function launch(
  argv: string[],
  options: { env?: Record<string, string>; file?: string; stdin?: 'ignore' | 'pipe' } = {},
): { child: ChildProcess; finished: Promise<Finished> } {
  const child = spawn(process.execPath, [options.file ?? LAUNCHER, ...argv], {
    env: { PATH: process.env.PATH, HOME: tempFolder(), ...options.env },
    stdio: [options.stdin ?? 'ignore', 'pipe', 'pipe'],
  })
  let stdout = ''
  let stderr = ''
  child.stdout?.on('data', (chunk) => {
    stdout += chunk
  })
  child.stderr?.on('data', (chunk) => {
    stderr += chunk
  })
  const finished = new Promise<Finished>((resolve) =>
    child.on('close', (code) => resolve({ code, stdout, stderr })),
  )
  return { child, finished }
}

describe('bin/switchyard.mjs', () => {
  test('passes arguments, streams and the exit code on', async () => {
    const help = await launch(['sessions', 'list', '--help']).finished
    expect(help).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringContaining('switchyard sessions list'),
    })
    const wrong = await launch(['fly']).finished
    expect(wrong).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining("unknown command 'fly'"),
    })
  })

  test('an input that stays open does not hold a command that has read what it needs', async () => {
    const { child, finished } = launch(['login', '--api-key', '--url', 'http://127.0.0.1:9'], {
      stdin: 'pipe',
    })
    child.stdin?.write('sk-key\n')
    expect(await finished).toMatchObject({ code: 3, stderr: expect.stringContaining('cannot be reached') })
  })

  test('says what to do when nothing is installed', async () => {
    const folder = tempFolder()
    mkdirSync(path.join(folder, 'bin'))
    const file = path.join(folder, 'bin', 'switchyard.mjs')
    copyFileSync(LAUNCHER, file)
    const answer = await launch(['--help'], { file }).finished
    expect(answer.code).toBe(2)
    expect(answer.stderr).toContain('npm start')
    expect(answer.stderr).not.toMatch(/\n\s+at /)
  })
})

describe('Ctrl-C', () => {
  let router: ScriptedRouter
  beforeEach(async () => {
    router = await startScriptedRouter()
    router.always('GET', '/api/v1/*', json({ sessions: [sessionSummary] }))
    router.always('POST', '/api/v1/auth/sign-in', json({ token: 't', expires_at: '2099-01-01T00:00:00Z' }))
  })
  afterEach(() => router.close())

  const running = () => {
    let begun: () => void = () => undefined
    const generating = new Promise<void>((resolve) => {
      begun = resolve
    })
    router.script(
      'POST',
      paths.execute,
      openStream(numbered(1, [text('Once')]), () => setImmediate(begun)),
    )
    const argv = ['run', '--session', SESSION, '--model', 'ollama/small', '--cwd', tempFolder(), 'go']
    return { generating, ...launch(argv, { env: { SWITCHYARD_URL: router.url, SWITCHYARD_API_KEY: 'sk' } }) }
  }

  test.each(['SIGINT', 'SIGTERM'] as const)(
    '[U26] %s once stops the run: break, a word, exit 130',
    async (signal) => {
      router.script('POST', paths.continue, stream(numbered(2, [idle])))
      const { child, finished, generating } = running()
      await generating
      child.kill(signal)
      const { code, stdout, stderr } = await finished
      expect({ code, stdout }).toEqual({ code: 130, stdout: 'Once\n' })
      expect(stderr).toContain('stopped')
      expect(router.requests.at(-1)?.body).toEqual({ type: 'break' })
    },
  )

  test('twice leaves at once, even when the router does not answer', async () => {
    let asked: () => void = () => undefined
    const breaking = new Promise<void>((resolve) => {
      asked = resolve
    })
    router.script('POST', paths.continue, () => asked())
    const { child, finished, generating } = running()
    await generating
    child.kill('SIGINT')
    await breaking
    child.kill('SIGINT')
    expect((await finished).code).toBe(130)
  })
})
