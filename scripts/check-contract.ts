/**
 * `npm run check:contract -- FOLDER`: compares our OpenAPI document with the one of the contract, which is kept
 * elsewhere and written by hand. Exit status 0: nothing differs but what is listed; 1: something does; 2: no answer.
 */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildOpenApi } from '../src/protocol/execution/openapi.ts'
import { compareDocuments } from './lib/contract/compare-documents.ts'
import { ContractDocument } from './lib/contract/document.ts'
import { judge } from './lib/contract/judge.ts'
import { INTENDED_DIFFERENCES } from './lib/intended-differences.ts'

const CONTRACT = join('spec', 'execution-openapi.json')

const USAGE = `Usage: npm run check:contract -- FOLDER

Compares the OpenAPI document of this program with FOLDER/${CONTRACT}, by meaning and not by text, and prints
every difference. Fails on those that scripts/lib/intended-differences.ts does not list, and on what it lists in vain.`

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

const [folder, ...more] = process.argv.slice(2)
if (folder === '--help' || folder === '-h') {
  console.log(USAGE)
  process.exit(0)
}
if (folder === undefined || more.length > 0) give(`One folder is needed.\n\n${USAGE}`)

const differences = compareDocuments(readContract(folder), ContractDocument.parse(buildOpenApi()))
const { intended, unintended, stale } = judge(differences, INTENDED_DIFFERENCES)

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
process.exitCode = unintended.length + stale.length === 0 ? 0 : 1
