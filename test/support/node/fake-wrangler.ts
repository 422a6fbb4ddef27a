import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { RunWrangler, WranglerResult } from '../../../scripts/lib-node/deploy/wrangler-run.mjs'

/** Stands in for wrangler in a deployment: holds what a Cloudflare account would, and words answers as the real one. */

export type FakeAccount = {
  /** null: not logged in. */
  accounts: { id: string; name: string }[] | null
  databases: { uuid: string; name: string }[]
  migrations: string[]
  applied: string[]
  /** null: there is no Worker yet. */
  secrets: Record<string, string> | null
  deployments: number
  targets: string[]
  /** First words of the calls that fail, like `d1 migrations`. */
  failing: string[]
}

/** One call: `config` is the text of the file that it named. */
export type FakeCall = { argv: string[]; stdin: string; config: string; accountId: string | null }

export const makeCall = (
  root: string,
  argv: readonly string[],
  stdin: string,
  accountId: string | undefined,
): FakeCall => {
  const file = argv[argv.indexOf('--config') + 1]
  const config = argv.includes('--config') ? readFileSync(path.resolve(root, file ?? ''), 'utf8') : ''
  return { argv: [...argv], stdin, config, accountId: accountId ?? null }
}

/** What the call does to the account, and how it ends. */
export function answer(account: FakeAccount, { argv, stdin }: FakeCall): WranglerResult {
  const called = (words: string) => words.split(' ').every((word, index) => argv[index] === word)
  const says = (stdout: string, told: Record<string, unknown>[] = []) => ({
    code: 0,
    stdout,
    stderr: '',
    told,
  })
  const fails = (message: string, stdout = '') => ({
    code: 1,
    stdout,
    stderr: `\u001B[31m✘ \u001B[41;31m[\u001B[41;97mERROR\u001B[41;31m]\u001B[0m ${message}\n\n🪵  Logs were written to "x.log"\n`,
    told: [],
  })
  const failing = account.failing.find(called)
  if (failing !== undefined) return fails(`the scripted failure of ${failing}`, 'Total Upload: 1 KiB\n')
  if (called('whoami --json')) {
    if (account.accounts === null) return { ...says('{"loggedIn":false}\n'), code: 1 }
    return says(JSON.stringify({ loggedIn: true, authType: 'OAuth Token', accounts: account.accounts }))
  }
  if (called('d1 list --json')) return says(JSON.stringify(account.databases))
  if (called('d1 create')) {
    account.databases.push({ uuid: 'made-by-the-fake', name: argv[2] ?? '' })
    return says('✅ Successfully created DB\n')
  }
  if (called('d1 migrations apply DB --remote')) {
    const open = account.migrations.filter((name) => !account.applied.includes(name))
    account.applied.push(...open)
    return says(
      open.length === 0 ? '✅ No migrations to apply!\n' : open.map((name) => `│ ${name} │ ✅ │\n`).join(''),
    )
  }
  if (called('secret list')) {
    if (account.secrets === null) return fails('Worker "switchyard" not found.')
    return says(JSON.stringify(Object.keys(account.secrets).map((name) => ({ name, type: 'secret_text' }))))
  }
  if (called('secret put')) {
    account.secrets = { ...account.secrets, [argv[2] ?? '']: stdin }
    return says('✨ Success!\n')
  }
  if (called('deploy')) {
    account.secrets ??= {}
    account.deployments++
    const { targets } = account
    return says('Deployed\n', [{ type: 'deploy', version: 1, targets, bundle_size: { gzip_bytes: 307_200 } }])
  }
  return fails(`Unknown arguments: ${argv.join(' ')}`)
}

/** The fake in this process, which is quick. */
export function fakeWrangler(root: string, account: FakeAccount) {
  const calls: FakeCall[] = []
  const run: RunWrangler = async (args, { input = '', accountId } = {}) => {
    const call = makeCall(root, args, input, accountId)
    calls.push(call)
    return answer(account, call)
  }
  return { run, account, calls: () => calls.splice(0) }
}

/** The fake as a command, for what only processes show. */
export function fakeWranglerCommand(folder: string, account: FakeAccount) {
  const state = path.join(folder, 'account.json')
  const record = path.join(folder, 'calls.ndjson')
  writeFileSync(state, JSON.stringify(account))
  return {
    command: [process.execPath, path.join(import.meta.dirname, 'fake-wrangler-program.ts'), state, record],
    account: (): FakeAccount => JSON.parse(readFileSync(state, 'utf8')),
    calls: (): FakeCall[] =>
      existsSync(record)
        ? readFileSync(record, 'utf8')
            .split('\n')
            .filter(Boolean)
            .map((line) => JSON.parse(line))
        : [],
  }
}
