import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare } from 'miniflare'
import { parse } from 'smol-toml'
import { ROOT } from './repository.ts'
import { inTemporaryFolder } from './temporary.ts'
import { wrangler } from './wrangler.ts'

const ENTRY = 'bench/workers/measured.ts'

export type Runtime = { url: string }

/**
 * Runs the measured Worker in a workerd of its own, without wrangler's proxy in front of it, which costs more than what
 * is measured here. `vars` are its variables; its databases are fresh.
 */
export async function withRuntime<T>(
  vars: Readonly<Record<string, string>>,
  work: (runtime: Runtime) => Promise<T>,
): Promise<T> {
  return inTemporaryFolder(async (folder) => {
    await wrangler('deploy', ENTRY, '--dry-run', '--outdir', folder)
    const runtime = new Miniflare(
      convertV4MiniflareOptions({
        host: '127.0.0.1',
        port: 0,
        modules: [{ type: 'ESModule', path: path.join(folder, 'measured.js') }],
        modulesRoot: folder,
        compatibilityDate: compatibilityDate(),
        bindings: { LOCAL_DEV: '1', RATE_LIMIT_BURST: '0', ...vars },
        durableObjects: {
          SESSION: { className: 'Session', useSQLite: true },
          GATEWAY: { className: 'Gateway', useSQLite: true },
          ECHO: { className: 'Echo', useSQLite: true },
        },
        d1Databases: { DB: 'bench' },
        log: new Log(LogLevel.NONE),
        handleStructuredLogs: () => {},
      }),
    )
    try {
      const url = await runtime.ready
      const database = await runtime.getD1Database('DB')
      for (const statement of migrationStatements()) await database.prepare(statement).run()
      return await work({ url: url.origin })
    } finally {
      await runtime.dispose()
    }
  })
}

function compatibilityDate(): string {
  const date = parse(readFileSync(path.join(ROOT, 'wrangler.toml'), 'utf8')).compatibility_date
  if (typeof date !== 'string') throw new Error('wrangler.toml names no compatibility date')
  return date
}

function migrationStatements(): string[] {
  const folder = path.join(ROOT, 'migrations')
  return readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .sort()
    .flatMap((name) => readFileSync(path.join(folder, name), 'utf8').split('--> statement-breakpoint'))
}
