import { bundle } from './bundle.ts'
import { context } from './context.ts'
import { fanOut } from './fan-out.ts'
import { firstToken } from './first-token.ts'
import { gateway } from './gateway.ts'
import { history } from './history.ts'
import type { Bench } from './lib/bench.ts'
import { replay } from './replay.ts'
import { routing } from './routing.ts'
import { rows } from './rows.ts'
import { sealed } from './sealed.ts'
import { streamHour } from './stream-hour.ts'
import { streaming } from './streaming.ts'

const BENCHES: readonly Bench[] = [
  firstToken,
  rows,
  bundle,
  routing,
  context,
  history,
  sealed,
  gateway,
  fanOut,
  streaming,
  replay,
  streamHour,
]

const HELP = `npm run bench -- [name…]

Runs the benches named, or all of them. Each prints its figures beside the budgets of the design; none fails for being
slow, since a figure means something only beside another of the same run.

${BENCHES.map(({ name, what }) => `  ${name.padEnd(14)} ${what}`).join('\n')}
`

/** @returns the exit code */
async function main(given: readonly string[]): Promise<number> {
  if (given.includes('--help') || given.includes('-h')) {
    console.log(HELP)
    return 0
  }
  const unknown = given.find((name) => BENCHES.every((bench) => bench.name !== name))
  if (unknown !== undefined) {
    console.error(`There is no bench "${unknown}". There are: ${BENCHES.map(({ name }) => name).join(', ')}`)
    return 2
  }
  const chosen = given.length === 0 ? BENCHES : BENCHES.filter(({ name }) => given.includes(name))
  for (const { name, what, run } of chosen) {
    console.log(`\n== ${name}: ${what}`)
    await run((line) => console.log(line))
  }
  return 0
}

process.exitCode = await main(process.argv.slice(2))
