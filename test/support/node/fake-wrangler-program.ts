import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { answer, type FakeAccount, makeCall } from './fake-wrangler.ts'

/** The fake wrangler as a process. Its first two arguments are the file of the account and the record of the calls. */

const [stateFile = '', recordFile = '', ...argv] = process.argv.slice(2)
const account = JSON.parse(readFileSync(stateFile, 'utf8')) as FakeAccount
// Ends only when its stdin does: one that was left open is a test that hangs.
const call = makeCall(process.cwd(), argv, await text(process.stdin), process.env.CLOUDFLARE_ACCOUNT_ID)
appendFileSync(recordFile, `${JSON.stringify(call)}\n`)
const { code, stdout, stderr, told } = answer(account, call)
writeFileSync(stateFile, JSON.stringify(account))
for (const entry of [{ type: 'wrangler-session', version: 1 }, ...told]) {
  appendFileSync(process.env.WRANGLER_OUTPUT_FILE_PATH ?? '', `${JSON.stringify(entry)}\n`)
}
process.stdout.write(stdout)
process.stderr.write(stderr)
process.exitCode = code
