import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { deploy } from '../../../scripts/lib-node/deploy/deploy.mjs'
import { type RunWrangler, wranglerIn } from '../../../scripts/lib-node/deploy/wrangler-run.mjs'
import { type FakeAccount, fakeWrangler, fakeWranglerCommand } from '../../support/node/fake-wrangler.ts'
import { tempFolder } from '../../support/node/temp-folder.ts'

/** The whole sequence of `npm run deploy` in a small checkout, against a program that answers like wrangler. */

const ADA = { id: 'a'.repeat(32), name: 'Ada' }
const BOB = { id: 'b'.repeat(32), name: 'Bob' }
const URL = 'https://switchyard.ada.workers.dev'
const PLACEHOLDER = '00000000-0000-0000-0000-000000000000'
const WRANGLER_TOML = `name = "switchyard"
main = "src/worker/main.ts"
compatibility_date = "2026-10-28"

[alias]
"zod" = "./src/bundled/zod.ts"
"one-package" = "another-package"

[[d1_databases]]
binding = "DB"
database_name = "switchyard"
database_id = "${PLACEHOLDER}"
migrations_dir = "migrations"
`

const fresh: FakeAccount = {
  accounts: [ADA],
  databases: [{ uuid: 'of-another', name: 'other' }],
  migrations: ['0000_start.sql', '0001_more.sql'],
  applied: [],
  secrets: null,
  deployments: 0,
  targets: [URL],
  failing: [],
}

const SMALL = {
  'wrangler.toml': WRANGLER_TOML,
  'migrations/0000_start.sql': '',
  'migrations/0001_more.sql': '',
  'migrations/meta/_journal.json': '{}',
}

const up = () => Response.json({ status: 'ok', version: '1.2.3' })

/** What a run sees of the world besides wrangler, and what it said. */
function surroundings(answer: () => Response = up) {
  const said: string[] = []
  const complained: string[] = []
  const asked: string[] = []
  let nowMs = 0
  const world = {
    net: {
      fetch: async (url: string | URL | Request) => {
        asked.push(String(url))
        return answer()
      },
      nowMs: () => nowMs,
      pause: async (ms: number) => {
        nowMs += ms
      },
    },
    say: (line: string) => void said.push(line),
    complain: (line: string) => void complained.push(line),
  }
  return { world, told: () => ({ out: said.join('\n'), err: complained.join('\n'), asked }) }
}

const UNSTOPPED = new AbortController().signal

function checkout(changes: Partial<FakeAccount> = {}, files: Record<string, string> = {}) {
  const root = tempFolder({ ...SMALL, ...files })
  const { run: wrangler, account, calls } = fakeWrangler(root, { ...structuredClone(fresh), ...changes })
  const run = async ({ env = {}, answer = up, around = (real: RunWrangler): RunWrangler => real } = {}) => {
    const { world, told } = surroundings(answer)
    const code = await deploy(
      { dryRun: false },
      { ...world, root, env, stop: UNSTOPPED, wranglerIn: () => around(wrangler) },
    )
    return { code, ...told(), calls: calls() }
  }
  return { root, account, run }
}

/** The words of a call that say what it does. */
const verbs = (calls: readonly { argv: string[] }[]) =>
  calls.map(({ argv }) => argv.filter((word) => !word.startsWith('-')).join(' '))

const CONFIG = '.wrangler/deploy/wrangler.toml'

describe('a first deployment', () => {
  test('creates the database, migrates it, makes the secret, and only then uploads the code', async () => {
    const { root, account, run } = checkout()
    const { code, out, err, asked, calls } = await run()
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(verbs(calls)).toEqual([
      'whoami',
      'd1 list',
      'd1 create switchyard',
      'd1 list',
      `d1 migrations apply DB ${CONFIG}`,
      `secret list json ${CONFIG}`,
      `secret put BOOTSTRAP_TOKEN ${CONFIG}`,
      `deploy ${CONFIG}`,
    ])
    expect(account).toMatchObject({ deployments: 1, applied: fresh.migrations })
    expect(asked).toEqual([`${URL}/status`])
    expect(out).toContain(`${URL} answers, release 1.2.3`)
    expect(out).toContain('applied 0000_start.sql, 0001_more.sql')
    // What the repository holds is left as it was; what wrangler reads has the real id and stands on its own.
    expect(readFileSync(path.join(root, 'wrangler.toml'), 'utf8')).toBe(WRANGLER_TOML)
    const { config = '' } = calls.at(-1) ?? {}
    expect(config).toContain('database_id = "made-by-the-fake"')
    expect(config).toContain(`account_id = "${ADA.id}"`)
    expect(config).toContain(`main = "${root}/src/worker/main.ts"`)
    expect(config).toContain(`migrations_dir = "${root}/migrations"`)
    expect(config).toContain(`zod = "${root}/src/bundled/zod.ts"`)
    expect(config).toContain('one-package = "another-package"')
  })

  test('[D43] shows the bootstrap token in its last words alone, and gives it to wrangler by stdin alone', async () => {
    const { account, run } = checkout()
    const { out, err, calls } = await run()
    const token = account.secrets?.BOOTSTRAP_TOKEN ?? ''
    expect(token).toMatch(/^[A-Za-z0-9_-]{43}$/)
    const [before = '', after = '', ...more] = out.split(token)
    expect({ before: before.includes('It is shown only now'), more, err }).toEqual({
      before: true,
      more: [],
      err: '',
    })
    expect(after.trim().split('\n').at(-1)?.trim()).toBe(
      `npm run switchyard -- login --url ${URL} --bootstrap-token`,
    )
    expect(
      calls.filter(({ stdin }) => stdin !== '').map(({ argv, stdin }) => [argv[0], argv[1], stdin]),
    ).toEqual([['secret', 'put', token]])
    expect(JSON.stringify(calls.map(({ argv, config }) => [argv, config]))).not.toContain(token)
  })
})

describe('a second deployment', () => {
  test('changes the code and nothing else', async () => {
    const { account, run } = checkout()
    await run()
    const before = structuredClone(account)
    const { code, out, calls } = await run()
    expect(code).toBe(0)
    expect(account).toEqual({ ...before, deployments: 2 })
    expect(verbs(calls)).toEqual([
      'whoami',
      'd1 list',
      `d1 migrations apply DB ${CONFIG}`,
      `secret list json ${CONFIG}`,
      `deploy ${CONFIG}`,
    ])
    expect(out).not.toContain(before.secrets?.BOOTSTRAP_TOKEN)
    expect(out).toContain('BOOTSTRAP_TOKEN is set already, kept')
  })

  test('makes the secret when only that is missing', async () => {
    const { account, run } = checkout({ secrets: { OTHER: 'x' } })
    expect((await run()).code).toBe(0)
    expect(Object.keys(account.secrets ?? {})).toEqual(['OTHER', 'BOOTSTRAP_TOKEN'])
  })
})

describe('the account', () => {
  test('without a login it is said how to log in, and nothing is done', async () => {
    const { code, out, err, calls } = await checkout({ accounts: null }).run()
    expect({ code, err, verbs: verbs(calls) }).toEqual({
      code: 1,
      err: 'Not logged in to Cloudflare: run `npx wrangler login`, or set CLOUDFLARE_API_TOKEN to an API token.',
      verbs: ['whoami'],
    })
    expect(out).not.toContain('token')
  })

  test('of several, the user chooses: they are listed with their ids, and nothing is done', async () => {
    const { code, err, calls } = await checkout({ accounts: [ADA, BOB] }).run()
    expect({ code, verbs: verbs(calls) }).toEqual({ code: 1, verbs: ['whoami'] })
    for (const said of [
      `${ADA.id}  Ada`,
      `${BOB.id}  Bob`,
      `CLOUDFLARE_ACCOUNT_ID=${ADA.id} npm run deploy`,
    ]) {
      expect(err).toContain(said)
    }
  })

  test('that was chosen is the one that every later call is for', async () => {
    const { run } = checkout({ accounts: [ADA, BOB] })
    const { code, calls } = await run({ env: { CLOUDFLARE_ACCOUNT_ID: BOB.id } })
    expect(code).toBe(0)
    expect(new Set(calls.slice(1).map(({ accountId }) => accountId))).toEqual(new Set([BOB.id]))
  })

  test('that the login does not have is refused', async () => {
    const { run } = checkout({ accounts: [ADA] })
    const { code, err } = await run({ env: { CLOUDFLARE_ACCOUNT_ID: BOB.id } })
    expect({ code, first: err.split('\n')[0] }).toEqual({
      code: 1,
      first: `This login has no account ${BOB.id}. It has:`,
    })
  })

  test('of a token that may not list accounts is taken as it was named, and asked for when it was not', async () => {
    const { run } = checkout({ accounts: [] })
    expect((await run()).err).toContain('set CLOUDFLARE_ACCOUNT_ID')
    expect((await run({ env: { CLOUDFLARE_ACCOUNT_ID: BOB.id } })).code).toBe(0)
  })
})

describe('a step that fails', () => {
  test.each([
    ['whoami', 'The login could not be checked.', []],
    ['d1 list', 'The D1 databases of the account could not be listed.', ['whoami']],
    ['d1 create', 'The D1 database switchyard could not be created.', ['whoami', 'd1 list']],
  ])(
    '%s: the sentence says which, with what wrangler said, without colours or a trace',
    async (failing, sentence, before) => {
      const { code, err, calls } = await checkout({ failing: [failing] }).run()
      expect({ code, err }).toEqual({
        code: 1,
        err: `${sentence}\nwrangler said:\n  ✘ [ERROR] the scripted failure of ${failing}`,
      })
      expect(verbs(calls).slice(0, -1)).toEqual(before)
    },
  )

  test('a failing migration stops before the secret and the code, and the next run goes on', async () => {
    const { account, run } = checkout({ failing: ['d1 migrations'] })
    const first = await run()
    expect({ code: first.code, last: verbs(first.calls).at(-1) }).toEqual({
      code: 1,
      last: `d1 migrations apply DB ${CONFIG}`,
    })
    expect(first.err).toContain('the code was not deployed')
    expect(account).toMatchObject({ deployments: 0, secrets: null })
    Object.assign(account, { failing: [] })
    expect((await run()).code).toBe(0)
    expect(account).toMatchObject({ deployments: 1, applied: fresh.migrations })
    expect(account.databases).toHaveLength(2)
  })

  test('a secret that cannot be listed is not made anew', async () => {
    const { code, calls } = await checkout({
      secrets: { BOOTSTRAP_TOKEN: 'old' },
      failing: ['secret list'],
    }).run()
    expect({ code, last: calls.at(-1)?.argv.slice(0, 2) }).toEqual({ code: 1, last: ['secret', 'list'] })
  })

  test('a token that was set before the upload failed is shown all the same, since it could not be shown again', async () => {
    const { account, run } = checkout({ failing: ['deploy'] })
    const first = await run()
    const token = account.secrets?.BOOTSTRAP_TOKEN ?? 'none'
    expect({ code: first.code, shown: first.out.split(token).length - 1 }).toEqual({ code: 1, shown: 1 })
    Object.assign(account, { failing: [] })
    expect((await run()).code).toBe(0)
    expect(account.secrets).toEqual({ BOOTSTRAP_TOKEN: token })
  })

  test('a token whose setting failed may hold all the same: it is shown, and the next run goes on', async () => {
    const { account, run } = checkout()
    const first = await run({
      around: (wrangler) => async (args, how) => {
        const result = await wrangler(args, how)
        return args[1] === 'put' ? { ...result, code: 1 } : result
      },
    })
    const token = account.secrets?.BOOTSTRAP_TOKEN ?? 'none'
    expect(first.code).toBe(1)
    expect(first.err).toContain('The secret BOOTSTRAP_TOKEN could not be set.')
    expect(first.out).toContain('Whether the bootstrap token was set is not known.')
    expect(first.out.endsWith(`\n\n  ${token}`)).toBe(true)
    const second = await run()
    expect(second.code).toBe(0)
    expect(second.out).toContain('BOOTSTRAP_TOKEN is set already, kept')
    expect(account.secrets).toEqual({ BOOTSTRAP_TOKEN: token })
  })

  test('a token that was set is shown even when the program itself fails after it', async () => {
    const { world, told } = surroundings()
    const { root, account } = checkout()
    const { run: wrangler } = fakeWrangler(root, account)
    const broken = deploy(
      { dryRun: false },
      {
        ...world,
        root,
        env: {},
        stop: UNSTOPPED,
        wranglerIn: () => async (args, how) => {
          if (args[0] === 'deploy') throw new Error('wrangler could not be started')
          return wrangler(args, how)
        },
      },
    )
    await expect(broken).rejects.toThrow('could not be started')
    expect(told().out).toContain(account.secrets?.BOOTSTRAP_TOKEN ?? 'none')
  })

  test('an address that does not answer in time is told, with the token', async () => {
    const { account, run } = checkout()
    const { code, err, out, asked } = await run({
      answer: () => new Response('no such host', { status: 530 }),
    })
    expect(code).toBe(1)
    expect(err).toContain(`${URL} does not answer yet (HTTP 530)`)
    expect(out).toContain(account.secrets?.BOOTSTRAP_TOKEN)
    // Bounded: 150 s, one question each 2 s.
    expect(asked).toHaveLength(76)
  })

  test('a page of somebody else at the address is no answer', async () => {
    const { err } = await checkout().run({ answer: () => new Response('<h1>Hello</h1>') })
    expect(err).toContain('HTTP 200, but not from a router')
  })

  test('an address that answers later is waited for', async () => {
    let n = 0
    const { code, asked } = await checkout().run({
      answer: () => (++n < 4 ? new Response('', { status: 404 }) : up()),
    })
    expect({ code, asked: asked.length }).toEqual({ code: 0, asked: 4 })
  })
})

describe('the local mode', () => {
  test.each([
    ['wrangler.toml', { 'wrangler.toml': `${WRANGLER_TOML}\n[vars]\nLOCAL_DEV = "1"\n` }],
    ['wrangler.deploy.toml', { 'wrangler.deploy.toml': '[vars]\nLOCAL_DEV = "1"\n' }],
  ])('[D43] LOCAL_DEV in %s is refused before anything is done', async (_file, files) => {
    const { root, run } = checkout({}, files)
    const { code, err, calls } = await run()
    expect({ code, calls }).toEqual({ code: 2, calls: [] })
    expect(err).toContain('LOCAL_DEV is set in the configuration')
    expect(existsSync(path.join(root, '.wrangler'))).toBe(false)
  })

  test('[D43] LOCAL_DEV as a secret of the Worker is refused before the code is uploaded', async () => {
    const { account, run } = checkout({ secrets: { BOOTSTRAP_TOKEN: 'x', LOCAL_DEV: '1' } })
    const { code, err } = await run()
    expect({ code, deployments: account.deployments }).toEqual({ code: 1, deployments: 0 })
    expect(err).toContain('npx wrangler secret delete LOCAL_DEV')
  })
})

describe('settings of the user', () => {
  test('go over the repository’s, and the database is named after the Worker', async () => {
    const { root, account, run } = checkout()
    writeFileSync(
      path.join(root, 'wrangler.deploy.toml'),
      `name = "lab"
account_id = "${BOB.id}"
workers_dev = false
routes = [{ pattern = "llm.example.com", custom_domain = true }]
[vars]
ALLOWED_ORIGINS = "https://app.example"
`,
    )
    Object.assign(account, { accounts: [ADA, BOB], targets: ['llm.example.com (custom domain)'] })
    const { code, asked, calls } = await run()
    expect(code).toBe(0)
    expect(asked).toEqual(['https://llm.example.com/status'])
    expect(account.databases.map(({ name }) => name)).toEqual(['other', 'lab'])
    const { config = '', accountId } = calls.at(-1) ?? {}
    expect(accountId).toBe(BOB.id)
    for (const line of ['name = "lab"', 'workers_dev = false', 'ALLOWED_ORIGINS = "https://app.example"']) {
      expect(config).toContain(line)
    }
  })

  test.each([
    ['no TOML', 'name = x', /no valid TOML/],
    ['a key that is not theirs', 'main = "x.ts"', /Unrecognized key: "main"/],
    ['a name that is no host label', 'name = "My_Router"', /name: must be/],
    ['an account id of another shape', 'account_id = "ada"', /account_id: must be/],
    [
      'a variable that is no text',
      '[vars]\nSHARED_PROVIDERS = true',
      /vars.SHARED_PROVIDERS: must be a text/,
    ],
    [
      'a key of a provider in clear',
      '[vars]\nPROVIDER_LAB_API_KEY = "k"',
      /PROVIDER_LAB_API_KEY is a secret/,
    ],
    [
      'what the router cannot use',
      `[vars]\nMODEL_FACTS = '[{"model":"openai/x","max_context_tokens":"many"}]'\nRETENTION_TRACES_DAYS = "soon"\nPROVIDERS = "lab"`,
      /^The router could not use all of its variables:\n {2}PROVIDERS must be a JSON list.*\n {2}MODEL_FACTS\[0\].max_context_tokens: .*\n {2}RETENTION_TRACES_DAYS must be a whole number of days.*$/,
    ],
    ['the bootstrap token in clear', '[vars]\nBOOTSTRAP_TOKEN = "k"', /BOOTSTRAP_TOKEN is a secret/],
  ])('%s is refused with a sentence, before anything is done', async (_what, text, expected) => {
    const { code, err, calls } = await checkout({}, { 'wrangler.deploy.toml': text }).run()
    expect({ code, calls }).toEqual({ code: 2, calls: [] })
    expect(err).toMatch(expected)
  })
})

describe('wrangler as a process', () => {
  const deployBy = async (stop: AbortSignal) => {
    const root = tempFolder(SMALL)
    const fake = fakeWranglerCommand(tempFolder(), fresh)
    const { world, told } = surroundings()
    const code = await deploy(
      { dryRun: false },
      { ...world, root, env: {}, stop, wranglerIn: (place) => wranglerIn(fake.command, place) },
    )
    return { root, code, ...told(), account: fake.account(), calls: fake.calls() }
  }

  test('gets the token on its stdin, the account in its environment, and no stdin to wait for otherwise', async () => {
    const { root, code, err, out, account, calls } = await deployBy(UNSTOPPED)
    expect({ code, err, deployments: account.deployments }).toEqual({ code: 0, err: '', deployments: 1 })
    const token = account.secrets?.BOOTSTRAP_TOKEN ?? 'none'
    expect(out).toContain(token)
    expect(calls.map(({ argv, stdin, accountId }) => [argv[0], stdin, accountId])).toEqual([
      ['whoami', '', process.env.CLOUDFLARE_ACCOUNT_ID ?? null],
      ['d1', '', ADA.id],
      ['d1', '', ADA.id],
      ['d1', '', ADA.id],
      ['d1', '', ADA.id],
      ['secret', '', ADA.id],
      ['secret', token, ADA.id],
      ['deploy', '', ADA.id],
    ])
    for (const file of ['wrangler.toml', 'told.ndjson']) {
      expect(readFileSync(path.join(root, '.wrangler/deploy', file), 'utf8')).not.toContain(token)
    }
  }, 30_000)

  test('that left half a line behind loses nothing of what it told before', async () => {
    const scratch = tempFolder()
    const tells = `const fs = require('node:fs')
fs.writeFileSync(process.env.WRANGLER_OUTPUT_FILE_PATH, '{"type":"deploy"}\\n[1]\\n{"type":"dep')`
    const run = wranglerIn([process.execPath, '-e', tells], { root: scratch, scratch, stop: UNSTOPPED })
    expect(await run([])).toMatchObject({ code: 0, told: [{ type: 'deploy' }] })
  }, 30_000)

  test('is not started once the user has interrupted', async () => {
    const { code, calls, account } = await deployBy(AbortSignal.abort())
    expect({ code, calls, account }).toEqual({ code: 1, calls: [], account: fresh })
  })
})
