import { availableParallelism } from 'node:os'
import path from 'node:path'
import { cloudflareTest, readD1Migrations } from '@cloudflare/vitest-plugin'
import { defineConfig } from 'vitest/config'
import { OLLAMA_BASE_URL, PROVIDERS } from './test/support/workers/deployment.ts'

/** `npm run test:long` runs the long tier, which is no part of `npm test`, and `npm run test:full` everything else (D54). */
const tier = (folder: string) => {
  if (process.env.SWITCHYARD_LONG !== '1')
    return { include: [`test/${folder}/**/*.test.ts`], exclude: ['**/*.long.test.ts', '**/*.full.test.ts'] }
  const kinds = process.env.SWITCHYARD_FULL === '1' ? '{long,full}' : 'long'
  return { include: [`test/${folder}/**/*.${kinds}.test.ts`] }
}

const inWorkerd = async () =>
  cloudflareTest({
    wrangler: { configPath: './wrangler.toml' },
    miniflare: {
      bindings: {
        TEST_MIGRATIONS: await readD1Migrations(path.join(import.meta.dirname, 'migrations')),
        LOCAL_DEV: '1',
        RATE_LIMIT_BURST: '0',
        OLLAMA_BASE_URL,
        PROVIDERS: JSON.stringify(PROVIDERS),
        SWITCHYARD_FULL: process.env.SWITCHYARD_FULL ?? '0',
      },
      // Nothing leaves a test: what is not scripted by the test itself is refused.
      outboundService: (request: Request) => new Response(`blocked ${request.url}`, { status: 599 }),
    },
  })

/** The packages that the Worker imports. */
const WORKER_PACKAGES = [
  '@ai-sdk/anthropic/internal',
  '@ai-sdk/google/internal',
  '@ai-sdk/openai-compatible',
  '@ai-sdk/openai/internal',
  // The tests' own: they seal as a client does.
  '@noble/ciphers/chacha.js',
  'drizzle-orm',
  'drizzle-orm/d1',
  'drizzle-orm/sqlite-core',
  'hono',
  'hono/cors',
  'hono/factory',
  'uuid',
  'zod',
]

/** Nothing here takes long by itself; a machine that is busy with something else may. */
const PATIENCE_MS = 20_000

/** What a test stubs is put back after it, whatever becomes of it. */
const inNode = {
  environment: 'node' as const,
  setupFiles: ['test/support/node/setup.ts'],
  restoreMocks: true,
  unstubEnvs: true,
  unstubGlobals: true,
}

export default defineConfig(async () => ({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          ...tier('unit'),
          ...inNode,
          // Loading every module anew for each file takes longer than the tests do.
          isolate: false,
          // By default two cores get one worker, and the other core nothing to do.
          maxWorkers: Math.max(2, availableParallelism() - 1),
          testTimeout: PATIENCE_MS,
          sequence: { groupOrder: 0 },
        },
      },
      {
        plugins: [await inWorkerd()],
        test: {
          name: 'workers',
          // A file is mostly one workerd that waits for its disk: two at a time suit two cores.
          maxWorkers: 2,
          isolate: false,
          testTimeout: PATIENCE_MS,
          sequence: { groupOrder: 1 },
          // The packages come as a few bundles instead of hundreds of modules.
          deps: { optimizer: { ssr: { enabled: true, include: WORKER_PACKAGES } } },
          ...tier('workers'),
          setupFiles: ['test/support/workers/setup.ts'],
        },
      },
      {
        test: {
          name: 'e2e',
          ...tier('e2e'),
          ...inNode,
          testTimeout: 60_000,
          hookTimeout: 60_000,
          fileParallelism: false,
          // Real routers and their time limits come last, with the machine to themselves.
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
}))
