/**
 * `npm run check:contract -- FOLDER`: compares our two contracts with those of others, which are kept elsewhere: the
 * OpenAPI document of the execution API, and the reference of the remote protocol. Exit status 0: nothing differs but
 * what is listed; 1: something does; 2: no answer.
 */

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildOpenApi } from '../src/protocol/execution/openapi.ts'
import { compareDocuments } from './lib/contract/compare-documents.ts'
import type { Difference } from './lib/contract/difference.ts'
import { ContractDocument } from './lib/contract/document.ts'
import { judge } from './lib/contract/judge.ts'
import { checkRemoteReference, type RemoteFindings } from './lib/contract/remote-reference.ts'
import { INTENDED_DIFFERENCES, type IntendedDifference } from './lib/intended-differences.ts'
import { REMOTE_INTENDED_DIFFERENCES } from './lib/remote-intended-differences.ts'

const CONTRACT = join('spec', 'execution-openapi.json')
const REMOTE = join('reference', 'remote-v1')

const USAGE = `Usage: npm run check:contract -- FOLDER

Compares the OpenAPI document of this program with FOLDER/${CONTRACT}, by meaning and not by text, and prints
every difference. Fails on those that scripts/lib/intended-differences.ts does not list, and on what it lists in vain.
Then reads the example frames under FOLDER/${REMOTE} with our types, and compares its schemas with ours; what
differs there on purpose is listed in scripts/lib/remote-intended-differences.ts.`

function give(up: string): never {
  console.error(up)
  process.exit(2)
}

function readContract(folder: string): ContractDocument {
  const file = join(folder, CONTRACT)
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    return give(code === 'ENOENT' ? `There is no ${file}.` : `${file} cannot be read (${code}).`)
  }
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    return give(`${file} is not JSON.`)
  }
  const parsed = ContractDocument.safeParse(json)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  return give(`${file} is no OpenAPI 3.1 document: ${issue?.path.join('.')}: ${issue?.message}`)
}

function readRemote(folder: string): RemoteFindings {
  const reference = join(folder, REMOTE)
  if (!existsSync(reference)) give(`There is no ${reference}.`)
  try {
    return checkRemoteReference(reference)
  } catch (cause) {
    return give(`${reference} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`)
  }
}

/** Prints every difference under its reason, and tells whether nothing is left that has none. */
function report(differences: readonly Difference[], list: readonly IntendedDifference[]): boolean {
  const { intended, unintended, stale } = judge(differences, list)
  for (const reason of new Set(intended.map((entry) => entry.reason))) {
    console.log(`intended: ${reason}`)
    for (const entry of intended) {
      if (entry.reason === reason) console.log(`  ${entry.difference.at}: ${entry.difference.what}`)
    }
  }
  for (const { at, what, theirs, ours } of unintended) {
    console.log(`NOT INTENDED  ${at}: ${what}: contract ${theirs}, ours ${ours}`)
  }
  for (const { at, what } of stale) console.log(`LISTED IN VAIN  ${at}: ${what}`)
  console.log(
    `\n${intended.length} intended, ${unintended.length} not intended, ${stale.length} listed in vain`,
  )
  return unintended.length + stale.length === 0
}

const [folder, ...more] = process.argv.slice(2)
if (folder === '--help' || folder === '-h') {
  console.log(USAGE)
  process.exit(0)
}
if (folder === undefined || more.length > 0) give(`One folder is needed.\n\n${USAGE}`)

const contract = readContract(folder)
const remote = readRemote(folder)

console.log('Execution API\n')
const executionAgrees = report(
  compareDocuments(contract, ContractDocument.parse(buildOpenApi())),
  INTENDED_DIFFERENCES,
)

console.log('\nRemote protocol\n')
const remoteAgrees = report(remote.differences, REMOTE_INTENDED_DIFFERENCES)
for (const problem of remote.problems) console.log(`FRAME  ${problem}`)
console.log(
  `${remote.frames} example frames, ${remote.problems.length} of them not read or not written as they are`,
)

process.exitCode = executionAgrees && remoteAgrees && remote.problems.length === 0 ? 0 : 1
