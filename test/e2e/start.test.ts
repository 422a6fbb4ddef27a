import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../support/node/free-port.ts'

/** `npm start` as a user types it, in a folder of his own, without a terminal. */

const ROOT = path.join(import.meta.dirname, '../..')

const PROJECT = {
  'README.md': '# Tidal\n\nTidal predicts the height of the tide for a harbour, offline.\n',
  'package.json': '{\n  "name": "tidal",\n  "description": "Tide tables"\n}\n',
  'src/predict.ts': '/** Sums the constituents of a harbour. */\nexport const predict = (x: number) => x\n',
}

let folder: string
let project: string
let state: string
let config: string
let port: number

beforeAll(async () => {
  folder = realpathSync(mkdtempSync(path.join(os.tmpdir(), 'switchyard-start-')))
  project = path.join(folder, 'project')
  state = path.join(folder, 'state')
  config = path.join(folder, 'config')
  port = await freePort()
  for (const [name, content] of Object.entries(PROJECT)) {
    mkdirSync(path.dirname(path.join(project, name)), { recursive: true })
    writeFileSync(path.join(project, name), content)
  }
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

type Ended = { code: number | null; out: string; err: string }

async function npmStart(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  const child = spawn('npm', ['--prefix', ROOT, 'start', '--silent', '--', ...args], {
    cwd: project,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      PORT: String(port),
      XDG_CONFIG_HOME: config,
      // Nobody listens there: the demo model is used, whatever runs on this machine.
      OLLAMA_HOST: `127.0.0.1:${await freePort()}`,
      SWITCHYARD_API_KEY: '',
      SWITCHYARD_MODEL: '',
      ...env,
    },
  })
  const said = { out: '', err: '' }
  child.stdout.setEncoding('utf8').on('data', (piece: string) => {
    said.out += piece
  })
  child.stderr.setEncoding('utf8').on('data', (piece: string) => {
    said.err += piece
  })
  const [code] = await once(child, 'close')
  return { code, ...said }
}

/** The command lines on this machine that name the test's folder: only what was started for it does. */
function processesOfTest(): string[] {
  const all =
    process.platform === 'linux'
      ? readdirSync('/proc')
          .filter((name) => /^\d+$/.test(name))
          .map(commandOf)
      : execFileSync('ps', ['-A', '-o', 'command='], { encoding: 'utf8' }).split('\n')
  return all.filter((command) => command.includes(folder))
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    // It ended meanwhile.
    return ''
  }
}

const toolLines = (text: string) => text.split('\n').filter((line) => line.startsWith('• '))

/** `npm start` itself gives a router a minute; what it then says must be seen. */
const PATIENCE = { timeout: 120_000 }

describe('npm start', PATIENCE, () => {
  test('does a first task with at least two tool calls, tells the route and the usage, and leaves nothing running', async () => {
    const { code, out, err } = await npmStart(['--persist-to', state])
    expect(err).toContain(`Made an account on http://127.0.0.1:${port}.`)
    expect(toolLines(err)).toEqual([
      '• list_files . 3 files',
      expect.stringMatching(/^• read_file README\.md 3 lines/),
      expect.stringMatching(/^• read_file package\.json 4 lines/),
    ])
    expect(out).toContain('tidal: Tide tables (package.json:3)')
    expect(out).toContain('"Tidal predicts the height of the tide for a harbour, offline." (README.md:3)')
    expect(out).toContain('built-in demo model')
    expect(err).toMatch(/^→ ollama\/switchyard-demo {2}\(default route; intent \w+/m)
    expect(err).toMatch(/^in \d+ · out \d+ tokens/m)
    expect(err).toContain(`rm -rf ${state}`)
    expect(code).toBe(0)
    expect(processesOfTest()).toEqual([])
    expect(readdirSync(state)).not.toContain('router.lock')
    const credentials = path.join(config, 'switchyard/credentials.json')
    expect(statSync(credentials).mode & 0o777).toBe(0o600)
    expect(err).toContain(credentials)
    expect(out + err).not.toContain('sk-smista-api01-')
  })

  test('a wiped state gets a new account and says so; the prompt is the one given', async () => {
    rmSync(state, { recursive: true })
    const { code, out, err } = await npmStart(['--persist-to', state, 'where are the constituents summed?'])
    expect(err).toContain('does not know the stored key any more')
    expect(toolLines(err).length).toBeGreaterThanOrEqual(2)
    expect(out).toContain('src/predict.ts:1  /** Sums the constituents of a harbour. */')
    expect(code).toBe(0)
    expect(processesOfTest()).toEqual([])
  })

  test('a busy port is one line that names it and another, and exit code 2', async () => {
    const other = createServer((_request, response) => response.end('hello')).listen(0, '127.0.0.1')
    await once(other, 'listening')
    const busy = (other.address() as AddressInfo).port
    const { code, out, err } = await npmStart(['--persist-to', state], { PORT: String(busy) })
    expect({ code, out, err }).toEqual({
      code: 2,
      out: '',
      err: `error: Port ${busy} on 127.0.0.1 is in use by another program. Choose another: PORT=${busy + 1} npm start\n`,
    })
    other.close()
  })

  test('[D42] --lan with a router that already runs is refused: that one would tell devices nothing', async () => {
    const running = createServer((_request, response) => {
      response.setHeader('Content-Type', 'application/json').end('{"status":"ok","version":"0.0.0"}')
    }).listen(0, '127.0.0.1')
    await once(running, 'listening')
    const { port: taken } = running.address() as AddressInfo
    const { code, err } = await npmStart(['--lan', '--persist-to', state], { PORT: String(taken) })
    expect({ code, err }).toEqual({
      code: 2,
      err: `error: A router already runs at http://127.0.0.1:${taken}. It does not know where devices could reach it: stop it, then start again with --lan.\n`,
    })
    running.close()
  })

  test('--help starts nothing', async () => {
    const { code, out } = await npmStart(['--help'])
    expect(code).toBe(0)
    expect(out).toContain('SWITCHYARD_MODEL')
  })
})
