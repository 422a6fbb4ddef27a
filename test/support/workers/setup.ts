import { applyD1Migrations, reset } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { vi } from 'vitest'

// Files share a workerd, since to start one takes longer than most files do: each begins with empty storage and with
// nothing mocked. `wrangler dev` and the tests get their tables from the same migrations.
vi.restoreAllMocks()
vi.unstubAllGlobals()
vi.useRealTimers()
await reset()
await applyD1Migrations(env.DB, env.TEST_MIGRATIONS)

// The router notes every upstream call; a test that looks at the notes spies on them.
console.info = () => {}
