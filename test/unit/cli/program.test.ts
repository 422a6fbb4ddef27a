import { existsSync, readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { credentialsPath, loadCredentials, saveCredentials } from '../../../src/cli/credentials.ts'
import { makeProgram, runCli } from '../../../src/cli/program.ts'
import { ok } from '../../../src/protocol/result.ts'
import { ROUTER_VERSION } from '../../../src/protocol/version.ts'
import { configHome } from '../../support/node/config-home.ts'
import { type ScriptedIo, scriptedIo } from '../../support/node/scripted-io.ts'
import {
  json,
  refusal,
  type ScriptedRouter,
  startScriptedRouter,
  stream,
} from '../../support/node/scripted-router.ts'
import { completed, paths, SESSION, sessionSummary } from '../../support/node/scripted-router-turns.ts'

let router: ScriptedRouter
let io: ScriptedIo
let cwd: string

beforeEach(async () => {
  router = await startScriptedRouter()
  io = scriptedIo()
  cwd = configHome({ global: '[routing.default]\nmodel = "ollama/small"\n' }).cwd
  vi.stubEnv('SWITCHYARD_URL', router.url)
})
afterEach(async () => {
  expect(router.unexpected).toEqual([])
  await router.close()
})

const cli = (...argv: string[]) => runCli(argv, { makeIo: () => io })
const SIGN_IN = '/api/v1/auth/sign-in'
const ME = '/api/v1/auth/me'
const token = json({ token: 't1', expires_at: '2099-01-01T00:00:00.000Z' })

/** Stores an account whose token is good. */
function signedIn(): void {
  saveCredentials(router.url, {
    user_id: 'u1',
    api_key: 'sk-stored',
    token: { value: 't0', expires_at: '2099-01-01T00:00:00.000Z' },
  })
  router.always('GET', ME, json({ user_id: 'u1' }))
}

const allCommands = (command: Command): Command[] => [command, ...command.commands.flatMap(allCommands)]

describe('help', () => {
  const program = makeProgram({ makeIo: () => scriptedIo() }, () => undefined)

  test('names every command, environment variable and exit code', async () => {
    expect(await cli('--help')).toBe(0)
    for (const command of program.commands) expect(io.stdout).toContain(`\n  ${command.name()}`)
    for (const code of ['0 ', '1 ', '2 ', '3 ', '130 '])
      expect(io.stdout).toMatch(new RegExp(`\\n  ${code} *\\w`))
    for (const name of ['SWITCHYARD_URL', 'SWITCHYARD_API_KEY', 'ANTHROPIC_API_KEY', 'NO_COLOR'])
      expect(io.stdout).toContain(name)
  })

  const paths = allCommands(program)
    .slice(1)
    .map((command) => [command.parent === program ? '' : (command.parent?.name() ?? ''), command.name()])

  test('there are all the commands that there should be', () => {
    expect(paths.map((names) => names.join(' ').trim())).toEqual([
      'run',
      'prompts',
      'login',
      'logout',
      'status',
      'whoami',
      'account',
      'account delete',
      'apikey',
      'apikey list',
      'apikey new',
      'apikey revoke',
      'apikey rotate',
      'keys',
      'keys list',
      'keys export',
      'keys import',
      'models',
      'sessions',
      'sessions list',
      'sessions show',
      'sessions archive',
      'sessions delete',
      'usage',
      'trace',
      'explain',
      'grants',
      'grants list',
      'grants revoke',
      'memory',
      'memory list',
      'memory set',
      'memory forget',
      'pair',
      'devices',
      'devices list',
      'devices rename',
      'devices revoke',
      'requests',
      'requests list',
      'requests accept',
      'requests deny',
      'export',
      'config',
      'config path',
      'config show',
      'config init',
      'config publish',
    ])
  })

  test.each(paths)('`%s %s --help` has an example, its sub-commands and --url', async (...names) => {
    const argv = names.filter((name) => name !== '')
    expect(await cli(...argv, '--help')).toBe(0)
    expect(io.stdout).toMatch(/\nExamples?:\n {2}(git diff \| )?switchyard /)
    expect(io.stdout).toContain('--url')
    const command = argv.reduce<Command>(
      (parent, name) => parent.commands.find((one) => one.name() === name) ?? parent,
      program,
    )
    for (const sub of command.commands) expect(io.stdout).toContain(`\n  ${sub.name()}`)
  })

  test('--version is the release', async () => {
    expect(await cli('--version')).toBe(0)
    expect(io.stdout).toBe(`${ROUTER_VERSION}\n`)
  })
})

describe('mistakes of the user are sentences with exit 2', () => {
  test.each([
    [[], 'Usage:'],
    [['fly'], "unknown command 'fly'"],
    [['run', '--fly', 'x'], "unknown option '--fly'"],
    [['run', '--yes', '--deny', 'x'], 'cannot be used with'],
    [['run', '--command', 'fly', 'x'], 'Allowed choices'],
    [['run', '--model', 'gpt', 'x'], 'not a model reference'],
    [['run', '--model', 'ollama/x', '--input'], '--input takes the lines of stdin: give the prompt as words'],
    [['run', '--model', 'ollama/x', '--input', '-'], '--input takes the lines of stdin'],
    [['--url', 'ftp://x', 'status'], 'not the address of a router'],
    [['--url', 'http://x/?token=1', 'status'], 'no user name, query or fragment'],
    [['sessions'], 'Usage:'],
    [['sessions', 'show'], "missing required argument 'id'"],
    [['sessions', 'delete', SESSION], 'add --yes'],
    [['logout'], 'add --yes'],
    [['config', 'init', '--model', 'x'], 'not a model reference'],
    [
      ['run', '--model', 'mistral/large', 'x'],
      'there is no provider "mistral"; the providers are anthropic, gemini, openai, ollama and openai-compat:<name>',
    ],
    [['prompts', '--cwd', '/nowhere'], 'the folder /nowhere does not exist'],
    [['memory', 'set', '', 'y'], 'the key of a fact must not be empty'],
    [['memory', 'set', 'x', ' '], 'the text of a fact must not be empty'],
    [['memory', 'set', 'k'.repeat(201), 'y'], 'the key of a fact has at most 200 characters'],
  ])('%j', async (argv, sentence) => {
    signedIn()
    expect(await cli(...argv)).toBe(2)
    expect(io.stderr).toContain(sentence)
    expect(io.stderr).not.toMatch(/\n\s+at /)
    expect(io.stdout).toBe('')
    expect(router.requests.filter(({ path }) => path !== ME)).toEqual([])
  })

  test.each([
    [['sessions', 'show', 'abc']],
    [['sessions', 'archive', 'abc']],
    [['sessions', 'delete', 'abc', '--yes']],
    [['apikey', 'revoke', 'abc', '--yes']],
    [['run', '--session', 'abc', 'x']],
    [['usage', 'abc']],
    [['trace', 'abc']],
    [['export', 'abc']],
    [['memory', 'list', '--session', 'abc']],
    [['memory', 'set', 'k', 'v', '--session', 'abc']],
    [['memory', 'forget', 'k', '--session', 'abc']],
  ])('[EC 1] %j: what can be no id is refused before anything is asked', async (argv) => {
    signedIn()
    expect(await cli(...argv)).toBe(2)
    expect(io.stderr).toMatch(
      /^error: "abc" is no id of a (session; `switchyard sessions|key; `switchyard apikey) list` shows them\n$/,
    )
    expect(router.requests).toEqual([])
  })

  test('[EC 1] an id may be spelt in any way that a UUID can be', async () => {
    signedIn()
    router.script('DELETE', `/api/v1/sessions/${SESSION}`, json({ deleted: true }))
    expect(await cli('sessions', 'delete', `{${SESSION.toUpperCase()}}`, '--yes')).toBe(0)
  })

  test('a configuration that does not hold is told with its line', async () => {
    cwd = configHome({ project: '[tools.permissions]\nshell = "maybe"\n' }).cwd
    expect(await cli('run', '--cwd', cwd, 'x')).toBe(2)
    expect(io.stderr).toContain(
      `${cwd}/.switchyard/config.toml:2: tools.permissions.shell: must be one of "allow", "ask", "deny"\n`,
    )
  })
})

describe('run', () => {
  test('carries a prompt of several words to the answer', async () => {
    signedIn()
    router.script('POST', '/api/v1/sessions', json({ session: sessionSummary }, 201))
    router.script('POST', paths.execute, stream([{ event: completed('Four.') }]))
    expect(await cli('run', '--cwd', cwd, '--title', 'sum', 'two', 'plus', 'two')).toBe(0)
    expect(io.stdout).toBe('Four.\n')
    expect(router.requests.find(({ path }) => path === '/api/v1/sessions')?.body).toEqual({
      title: 'sum',
      scope: cwd,
    })
    expect(router.requests.at(-1)?.body).toMatchObject({
      input: { text: 'two plus two' },
      policy: { routing: { default: { model: 'ollama/small' } } },
    })
  })

  test('--model is the explicit model and, without configuration, the default route', async () => {
    cwd = configHome().cwd
    vi.stubEnv('SWITCHYARD_URL', router.url)
    signedIn()
    router.always('GET', '/api/v1/*', json({ sessions: [sessionSummary] }))
    router.script('POST', paths.execute, stream([{ event: completed('x') }]))
    expect(await cli('run', '--cwd', cwd, '--session', SESSION, '--model', 'ollama/tiny', 'hi')).toBe(0)
    expect(router.requests.at(-1)?.body).toMatchObject({
      input: { explicit_model: 'ollama/tiny' },
      policy: { routing: { default: { model: 'ollama/tiny' } } },
    })
  })

  test('--file may be repeated and does not swallow the prompt', async () => {
    signedIn()
    router.always('GET', '/api/v1/*', json({ sessions: [sessionSummary] }))
    cwd = configHome({ project: '' }).cwd
    vi.stubEnv('SWITCHYARD_URL', router.url)
    signedIn()
    router.script('POST', paths.execute, stream([{ event: completed('x') }]))
    const file = '.switchyard/config.toml'
    expect(
      await cli(
        'run',
        '--cwd',
        cwd,
        '--session',
        SESSION,
        '--model',
        'ollama/x',
        '--file',
        file,
        'read',
        'it',
      ),
    ).toBe(0)
    expect(router.requests.at(-1)?.body).toMatchObject({
      input: { text: 'read it' },
      attachments: { files: [{ path: file }] },
    })
  })

  test('without an account it says how to get one: exit 3', async () => {
    expect(await cli('run', '--cwd', cwd, 'hi')).toBe(3)
    expect(io.stderr).toContain('switchyard login')
  })

  test('what a project may not free is told before anything runs', async () => {
    cwd = configHome({
      global: '[routing.default]\nmodel = "ollama/small"\n',
      project: '[tools.permissions]\nshell = "allow"\n',
    }).cwd
    expect(await cli('run', '--cwd', cwd, 'hi')).toBe(3)
    expect(io.stderr).toContain('shell = "allow" has no effect')
  })

  test('without a prompt, at a terminal, a conversation begins', async () => {
    io = scriptedIo({ isTty: true })
    signedIn()
    io.lines.push({ kind: 'line', text: '/quit' })
    expect(await cli('run', '--cwd', cwd)).toBe(0)
    expect(io.stderr).toContain('/help')
  })
})

describe('accounts', () => {
  test('login makes an account, stores its key and prints it nowhere', async () => {
    router.script('POST', '/api/v1/auth/bootstrap', json({ user_id: 'u1', api_key: 'sk-new' }, 201))
    router.script('POST', SIGN_IN, token)
    router.script('GET', ME, json({ user_id: 'u1' }))
    expect(await cli('login')).toBe(0)
    expect(loadCredentials(router.url)).toMatchObject({
      value: { user_id: 'u1', api_key: 'sk-new', token: { value: 't1' } },
    })
    expect(io.stdout + io.stderr).not.toMatch(/sk-new|t1/)
  })

  test('[EC 2.2] a key that was shown once is stored even if signing in then fails', async () => {
    router.script('POST', '/api/v1/auth/bootstrap', json({ user_id: 'u1', api_key: 'sk-new' }, 201))
    router.script('POST', SIGN_IN, refusal(500, 'internal_error'))
    expect(await cli('login')).toBe(3)
    expect(loadCredentials(router.url)).toEqual(ok({ user_id: 'u1', api_key: 'sk-new' }))
  })

  test('login again uses the stored key and makes no second account', async () => {
    signedIn()
    router.script('POST', SIGN_IN, token)
    expect(await cli('login')).toBe(0)
    expect(router.requests[0]?.headers['x-smista-api-key']).toBe('sk-stored')
  })

  test('login on a local router that was reset makes a new account in the place of the one that is gone', async () => {
    signedIn()
    router.script('POST', SIGN_IN, refusal(401, 'invalid_api_key'), token)
    router.script('POST', '/api/v1/auth/bootstrap', json({ user_id: 'u2', api_key: 'sk-new' }, 201))
    router.always('GET', ME, json({ user_id: 'u2' }))
    expect(await cli('login')).toBe(0)
    expect(io.stderr).toContain('does not know the stored key any more')
    expect(loadCredentials(router.url)).toMatchObject({ value: { user_id: 'u2', api_key: 'sk-new' } })
  })

  test('login on a deployed router that does not know the stored key names every way on, and keeps the key', async () => {
    signedIn()
    router.script('POST', SIGN_IN, refusal(401, 'invalid_api_key'))
    router.script('POST', '/api/v1/auth/bootstrap', refusal(403, 'forbidden'))
    expect(await cli('login')).toBe(3)
    for (const said of [
      'does not know the stored API key any more',
      '--api-key',
      '--bootstrap-token',
      'logout',
    ])
      expect(io.stderr).toContain(said)
    expect(loadCredentials(router.url)).toMatchObject({ value: { api_key: 'sk-stored' } })
  })

  test('[U36] login makes no other account when the router only fails', async () => {
    signedIn()
    router.script('POST', SIGN_IN, refusal(500, 'internal_error'))
    expect(await cli('login')).toBe(3)
    expect(router.count('POST', '/api/v1/auth/bootstrap')).toBe(0)
  })

  test.each([
    ['typed', ['login', '--api-key'], {}, 'does not accept this API key (invalid_api_key)'],
    ['of the environment', ['whoami'], { SWITCHYARD_API_KEY: 'sk-env' }, 'the key in SWITCHYARD_API_KEY'],
  ])('a refused key that was %s is not answered with "run login"', async (_, argv, env, sentence) => {
    for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
    io.secrets.push('sk-typed')
    router.script('POST', SIGN_IN, refusal(401, 'invalid_api_key'))
    expect(await cli(...argv)).toBe(3)
    expect(io.stderr).toContain(sentence)
    expect(io.stderr).not.toContain('switchyard login')
  })

  test('--api-key stores an existing key that is typed unseen', async () => {
    io.secrets.push(' sk-mine\n')
    router.script('POST', SIGN_IN, token)
    router.script('GET', ME, json({ user_id: 'u7' }))
    expect(await cli('login', '--api-key')).toBe(0)
    expect(loadCredentials(router.url)).toMatchObject({ value: { user_id: 'u7', api_key: 'sk-mine' } })
    expect(await cli('login', '--api-key')).toBe(2)
  })

  test('--bootstrap-token is asked for when it has no value', async () => {
    io.secrets.push('boot')
    router.script(
      'POST',
      '/api/v1/auth/bootstrap',
      refusal(403, 'forbidden'),
      json({ user_id: 'u1', api_key: 'k' }, 201),
    )
    expect(await cli('login', '--bootstrap-token', 'wrong')).toBe(3)
    expect(io.stderr).toContain('the value of --bootstrap-token is wrong')
    router.script('POST', SIGN_IN, token)
    router.script('GET', ME, json({ user_id: 'u1' }))
    expect(await cli('login', '--bootstrap-token')).toBe(0)
    const sent = router.requests.map(({ headers }) => headers['x-smista-bootstrap-token'])
    expect(sent.slice(0, 2)).toEqual(['wrong', 'boot'])
  })

  test('logout ends the token and forgets the key, after a yes', async () => {
    io = scriptedIo({ isTty: true })
    signedIn()
    io.confirmations.push(false)
    expect(await cli('logout')).toBe(1)
    expect(loadCredentials(router.url)).toMatchObject({ value: { api_key: 'sk-stored' } })
    router.script('POST', '/api/v1/auth/sign-out', json({ revoked: true }))
    io.confirmations.push(true)
    expect(await cli('logout')).toBe(0)
    expect(loadCredentials(router.url)).toEqual(ok(null))
    expect(readFileSync(credentialsPath(), 'utf8')).not.toContain('sk-stored')
    expect(await cli('logout')).toBe(0)
    expect(io.stderr).toContain('nothing is stored')
  })

  test('status tells router and account; whoami the user', async () => {
    router.always('GET', '/status', json({ status: 'ok', version: '0.2.0' }))
    expect(await cli('status')).toBe(0)
    expect(io.stdout).toBe(
      `router   ${router.url}\nstatus   ok\nversion  0.2.0\naccount  none; run \`switchyard login\`\n`,
    )
    expect(await cli('whoami')).toBe(3)
    signedIn()
    io.stdout = ''
    expect(await cli('status')).toBe(0)
    expect(io.stdout).toContain('\naccount  u1\n')
    io.stdout = ''
    expect(await cli('whoami')).toBe(0)
    expect(io.stdout).toBe('u1\n')
  })

  test('status does not call an account signed in whose key is refused: exit 3', async () => {
    signedIn()
    router.always('GET', '/status', json({ status: 'ok', version: '0.2.0' }))
    router.always('GET', ME, refusal(401, 'invalid_token'))
    router.script('POST', SIGN_IN, refusal(401, 'invalid_api_key'))
    expect(await cli('status')).toBe(3)
    expect(io.stdout).toContain('\naccount  u1; not signed in\n')
    expect(io.stderr).toContain(
      `does not know the stored API key any more (invalid_api_key): run \`switchyard login`,
    )
  })

  test('a router that does not answer is exit 3 with a sentence', async () => {
    const gone = await startScriptedRouter()
    await gone.close()
    expect(await cli('status', '--url', gone.url)).toBe(3)
    expect(io.stderr).toContain('cannot be reached')
  })
})

describe('sessions', () => {
  const other = {
    ...sessionSummary,
    id: SESSION.replace('0197', '0198'),
    title: 'old\n\u001b[31m',
    archived: true,
  }

  test('list shows what is not archived, or all, or JSON', async () => {
    signedIn()
    router.always('GET', '/api/v1/sessions', json({ sessions: [sessionSummary, other] }))
    expect(await cli('sessions', 'list')).toBe(0)
    expect(io.stdout).toBe(`${SESSION}  2026-01-01 00:00  a title\n`)
    io.stdout = ''
    await cli('sessions', 'list', '--archived')
    expect(io.stdout.split('\n')[1]).toBe(`${other.id}  2026-01-01 00:00  old \\u{1b}[31m  archived`)
    io.stdout = ''
    await cli('sessions', 'list', '--json')
    expect(JSON.parse(io.stdout)).toEqual([sessionSummary])
  })

  test('show prints the messages with who wrote them', async () => {
    signedIn()
    router.script(
      'GET',
      `/api/v1/sessions/${SESSION}`,
      json({
        session: {
          id: SESSION,
          title: 'a title',
          created_at: sessionSummary.created_at,
          updated_at: sessionSummary.updated_at,
          metadata: {},
          messages: [
            { role: 'user', content: { plaintext: 'Hi' } },
            {
              role: 'assistant',
              content: { plaintext: 'Hel' },
              provider: 'ollama',
              model: 'm',
              interrupted: true,
            },
          ],
        },
      }),
    )
    expect(await cli('sessions', 'show', SESSION)).toBe(0)
    expect(io.stdout).toBe(
      `a title  ${SESSION}\n\n── user\nHi\n\n── assistant (ollama/m), interrupted\nHel\n`,
    )
  })

  test('archive, restore and delete say what they did', async () => {
    signedIn()
    router.script(
      'PUT',
      `/api/v1/sessions/${SESSION}`,
      json({ session: { ...sessionSummary, archived: true } }),
      json({ session: sessionSummary }),
    )
    expect(await cli('sessions', 'archive', SESSION)).toBe(0)
    expect(await cli('sessions', 'archive', SESSION, '--restore')).toBe(0)
    router.script(
      'DELETE',
      `/api/v1/sessions/${SESSION}`,
      json({ deleted: true }),
      refusal(404, 'session_not_found'),
    )
    expect(await cli('sessions', 'delete', SESSION, '--yes')).toBe(0)
    expect(await cli('sessions', 'delete', SESSION, '--yes')).toBe(1)
    expect(io.stderr).toContain(`archived ${SESSION}\nrestored ${SESSION}\ndeleted ${SESSION}\nerror: `)
    const bodies = router.requests.filter(({ method }) => method === 'PUT').map(({ body }) => body)
    expect(bodies).toEqual([{ archived: true }, { archived: false }])
  })
})

describe('config', () => {
  test('path names both files and whether they are there', async () => {
    expect(await cli('config', 'path')).toBe(0)
    const [global, project] = io.stdout.split('\n')
    expect(global).toMatch(/^global {2}\/.*\/switchyard\/config\.toml$/)
    expect(project).toMatch(/^project \/.*\/\.switchyard\/config\.toml {2}\(not there\)$/)
  })

  test('show prints the merged policy as TOML or JSON', async () => {
    expect(await cli('config', 'show')).toBe(0)
    expect(io.stdout).toContain('[routing.default]\nmodel = "ollama/small"')
    expect(io.stdout).toContain('[local_preferences]\nauto_apply = false')
    // Each table stands apart, and none is there for nothing.
    expect(io.stdout).not.toMatch(/\]\n\[/)
    io.stdout = ''
    expect(await cli('config', 'show', '--json')).toBe(0)
    expect(JSON.parse(io.stdout)).toMatchObject({ version: 1, source: 'merged' })
  })

  test('show tells, besides, what is read in another way than it is written', async () => {
    configHome({
      global: '[routing.default]\nmodel = "ollama/small"\n[privacy]\nrestricted_paths = ["~/x"]\n',
    })
    expect(await cli('config', 'show')).toBe(0)
    expect(io.stderr).toMatch(/^note: .*config\.toml:4: privacy\.restricted_paths\[0\]: /)
  })

  test('init writes a file that show accepts, and replaces one only with --force', async () => {
    configHome()
    expect(await cli('config', 'show')).toBe(2)
    expect(await cli('config', 'init', '--model', 'ollama/mine')).toBe(0)
    expect(await cli('config', 'show')).toBe(0)
    expect(io.stdout).toContain('model = "ollama/mine"')
    expect(await cli('config', 'init')).toBe(2)
    expect(io.stderr).toContain('--force')
    expect(await cli('config', 'init', '--force')).toBe(0)
    expect(existsSync(io.stderr.match(/wrote (.*)\n/)?.[1] ?? '')).toBe(true)
  })
})
