import path from 'node:path'
import { cloudflareTest, readD1Migrations } from '@cloudflare/vitest-plugin'
import { defineConfig } from 'vitest/config'
import { OLLAMA_BASE_URL, PROVIDERS } from './test/support/workers/deployment.ts'

/** `npm run test:long` runs the long tier, which is no part of `npm test` (D54). */
const tier = (folder: string) =>
  process.env.SWITCHYARD_LONG === '1'
    ? { include: [`test/${folder}/**/*.long.test.ts`] }
    : { include: [`test/${folder}/**/*.test.ts`], exclude: ['**/*.long.test.ts'] }

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
      },
      // Nothing leaves a test: what is not scripted by the test itself is refused.
      outboundService: (request: Request) => new Response(`blocked ${request.url}`, { status: 599 }),
    },
  })

export default defineConfig(async () => ({
  test: {
    projects: [
      {
        test: { name: 'unit', ...tier('unit'), environment: 'node' },
      },
      {
        plugins: [await inWorkerd()],
        test: {
          name: 'workers',
          ...tier('workers'),
          setupFiles: ['test/support/workers/setup.ts'],
        },
      },
      {
        test: {
          name: 'e2e',
          ...tier('e2e'),
          environment: 'node',
          testTimeout: 60_000,
          hookTimeout: 60_000,
          fileParallelism: false,
        },
      },
    ],
  },
}))
