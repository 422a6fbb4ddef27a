import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { expect, test } from 'vitest'
import { deploy } from '../../scripts/lib-node/deploy/deploy.mjs'
import { WRANGLER_COMMAND, wranglerIn } from '../../scripts/lib-node/deploy/wrangler-run.mjs'
import { deployableCheckout } from '../support/node/checkout.ts'
import { tempFolder } from '../support/node/temp-folder.ts'

/** `npm run deploy -- --dry-run` with the real wrangler and the real sources. */

const ROOT = path.join(import.meta.dirname, '../..')

/** A dry run is for looking before one acts: it must not feel like a deployment. */
const DRY_RUN_MS = 20_000

async function npmRunDeploy(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const child = spawn('npm', ['--prefix', ROOT, 'run', '--silent', 'deploy', '--', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
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

/** A dry run in a checkout of its own. */
async function dryRunIn(root: string) {
  const said: string[] = []
  const complained: string[] = []
  const code = await deploy(
    { dryRun: true },
    {
      root,
      env: {},
      stop: new AbortController().signal,
      wranglerIn: (place) => wranglerIn(WRANGLER_COMMAND, place),
      net: {
        fetch: () => Promise.reject(new Error('asked the network')),
        nowMs: () => 0,
        pause: async () => {},
      },
      say: (line) => void said.push(line),
      complain: (line) => void complained.push(line),
    },
  )
  return { code, out: said.join('\n'), err: complained.join('\n') }
}

const bindingsIn = (out: string): string[] =>
  (/^ {2}bindings +(.*)$/m.exec(out)?.[1] ?? '').split(', ').map((binding) => binding.split(' ')[0] ?? '')

test('a dry run needs no login and no network, says each step in under 20 s, and ends well', async () => {
  const asked: string[] = []
  const cloudflare = createServer((request, response) => {
    asked.push(request.url ?? '')
    response.writeHead(500).end()
  }).listen(0, '127.0.0.1')
  await once(cloudflare, 'listening')
  const startMs = performance.now()
  const { code, out, err } = await npmRunDeploy(['--dry-run'], {
    HOME: tempFolder(),
    XDG_CONFIG_HOME: tempFolder(),
    CLOUDFLARE_API_TOKEN: '',
    CLOUDFLARE_API_BASE_URL: `http://127.0.0.1:${(cloudflare.address() as AddressInfo).port}/client/v4`,
  })
  const tookMs = performance.now() - startMs
  cloudflare.close()
  expect({ code, err, asked }).toEqual({ code: 0, err: '', asked: [] })
  expect(tookMs).toBeLessThan(DRY_RUN_MS)
  for (const said of [
    /^ {2}built +\S+, \d+ KiB compressed$/m,
    /0000_start\.sql/,
    /1\. check the login[\s\S]*2\. find the D1 database[\s\S]*3\. apply[\s\S]*4\. make the secret BOOTSTRAP_TOKEN[\s\S]*5\. upload the code[\s\S]*6\. ask \/status/,
    /Nothing was changed\.$/m,
  ]) {
    expect(out).toMatch(said)
  }
  expect(bindingsIn(out)).toEqual(expect.arrayContaining(['SESSION', 'DB']))
})

test('[D43] what would be uploaded has the variables of the configuration and no LOCAL_DEV', async () => {
  const root = deployableCheckout({
    'wrangler.deploy.toml': '[vars]\nALLOWED_ORIGINS = "https://app.example"\n',
  })
  const before = readdirSync(root, { recursive: false }).sort()
  const { code, out, err } = await dryRunIn(root)
  expect({ code, err }).toEqual({ code: 0, err: '' })
  // The variable that was set is the control for the one that is absent.
  expect(bindingsIn(out)).toContain('ALLOWED_ORIGINS')
  expect(bindingsIn(out)).not.toContain('LOCAL_DEV')
  const bundle = readFileSync(path.join(root, '.wrangler/deploy/bundle/main.js'), 'utf8')
  expect(bundle).toContain('BOOTSTRAP_TOKEN')
  expect(bundle).not.toMatch(/LOCAL_DEV['"]?\s*[:=](?!=)/)
  // Nothing but its own folder, and not the configuration that other commands read.
  expect(readdirSync(root).sort()).toEqual([...before, '.wrangler'].sort())
  expect(existsSync(path.join(root, '.wrangler/deploy/wrangler.toml'))).toBe(false)
})

test('a configuration that wrangler refuses is told in its words', async () => {
  const root = deployableCheckout({
    'wrangler.deploy.toml': 'routes = [{ pattern = "a.example", zone_name = 1 }]',
  })
  const { code, err } = await dryRunIn(root)
  expect(code).toBe(1)
  expect(err).toMatch(
    /^wrangler could not finish the deployment of the code\.\nwrangler said:\n {2}✘ \[ERROR\]/,
  )
})

test('an argument that it does not have is named, with exit code 2; --help starts nothing', async () => {
  const unknown = await npmRunDeploy(['--var', 'LOCAL_DEV:1'])
  expect(unknown).toEqual({
    code: 2,
    out: '',
    err: '--var is no option of npm run deploy; --help lists them.\n',
  })
  const help = await npmRunDeploy(['--help'])
  expect({ code: help.code, err: help.err }).toEqual({ code: 0, err: '' })
  expect(help.out).toContain('--dry-run')
})
