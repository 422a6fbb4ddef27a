import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { deploy } from '../../scripts/lib-node/deploy/deploy.mjs'
import { WRANGLER_COMMAND, wranglerIn } from '../../scripts/lib-node/deploy/wrangler-run.mjs'
import { deployableCheckout } from '../support/node/checkout.ts'
import { startFakeCloudflare } from '../support/node/fake-cloudflare.ts'

/** That the fake wrangler of the unit tests words its answers as the real one: here the real one asks a fake Cloudflare. */

afterEach(() => vi.unstubAllEnvs())

async function deployFrom(root: string) {
  const said: string[] = []
  const asked: string[] = []
  const code = await deploy(
    { dryRun: false },
    {
      root,
      env: {},
      stop: new AbortController().signal,
      wranglerIn: (place) => wranglerIn(WRANGLER_COMMAND, place),
      net: {
        fetch: async (url) => {
          asked.push(String(url))
          return Response.json({ status: 'ok', version: '1.2.3' })
        },
        nowMs: () => 0,
        pause: async () => {},
      },
      say: (line) => void said.push(line),
      complain: (line) => void said.push(`! ${line}`),
    },
  )
  return { code, said: said.join('\n'), asked }
}

test('[D43] the real wrangler sets the secret before the first version that serves, and a second run keeps all but the code', async () => {
  const cloudflare = await startFakeCloudflare()
  vi.stubEnv('CLOUDFLARE_API_BASE_URL', cloudflare.url)
  vi.stubEnv('CLOUDFLARE_API_TOKEN', 'a-token')
  const root = deployableCheckout()
  const migrations = readdirSync(path.join(root, 'migrations')).filter((name) => name.endsWith('.sql'))

  const first = await deployFrom(root)
  expect(first.said).not.toContain('! ')
  expect({ code: first.code, asked: first.asked }).toEqual({
    code: 0,
    asked: [`${cloudflare.address}/status`],
  })
  const changes = cloudflare.calls().filter((call) => !call.startsWith('GET') && !call.endsWith('/query'))
  const worker = '/workers/scripts/switchyard'
  expect(changes.slice(0, 5)).toEqual([
    'POST /d1/database',
    // There is no Worker yet: wrangler makes an empty one, without an address, and tries again.
    `PUT ${worker}/secrets`,
    `PUT ${worker}`,
    `PUT ${worker}/secrets`,
    `PUT ${worker}`,
  ])
  expect(changes.indexOf(`POST ${worker}/subdomain`)).toBeGreaterThan(4)
  const { state } = cloudflare
  expect(state.databases).toEqual(['switchyard'])
  expect(state.applied).toEqual(migrations)
  expect(state.uploads[0]).toMatchObject({ bindings: [] })
  expect(state.uploads[1]?.bindings.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['SESSION', 'DB']),
  )
  expect(JSON.stringify(state.uploads)).not.toContain('LOCAL_DEV')
  const token = state.secrets.BOOTSTRAP_TOKEN ?? 'none'
  expect(first.said.split(token)).toHaveLength(2)
  // wrangler's own logs of its requests leave it out as well.
  for (const file of readdirSync(path.join(root, '.wrangler'), { recursive: true, withFileTypes: true })) {
    if (file.isFile())
      expect(readFileSync(path.join(file.parentPath, file.name), 'utf8')).not.toContain(token)
  }

  const second = await deployFrom(root)
  expect(second.said).not.toContain('! ')
  expect(second.said).toContain('all applied already')
  expect(second.said).not.toContain(token)
  expect(state).toMatchObject({
    databases: ['switchyard'],
    applied: migrations,
    secrets: { BOOTSTRAP_TOKEN: token },
  })
  expect(state.uploads).toHaveLength(3)
  await cloudflare.close()
}, 180_000)
