import { applyD1Migrations } from 'cloudflare:test'
import { env } from 'cloudflare:workers'

// Storage lives as long as a test file; `wrangler dev` and the tests get their tables from the same migrations.
await applyD1Migrations(env.DB, env.TEST_MIGRATIONS)

// The router notes every upstream call; a test that looks at the notes spies on them.
console.info = () => {}
