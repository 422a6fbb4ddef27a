import { type Command, InvalidArgumentError, Option } from 'commander'
import { policyWarnings } from '../../core/policy-check.ts'
import type { TraceEvent } from '../../protocol/execution/trace.ts'
import { type CommandDeps, CommandStop, must, openClient, requireId } from '../command-context.ts'
import { EXIT } from '../exit-code.ts'
import { standingText } from '../explain/standing.ts'
import {
  type Decision,
  decisionsOf,
  type KeptPolicy,
  keepPolicies,
  type Turn,
  turnsOf,
  verdictOf,
} from '../explain/turns.ts'
import { summaryLine, turnText, warningsText } from '../explain/view.ts'
import { openTrace } from '../opened-trace.ts'
import { makePaint } from '../paint.ts'
import { SessionKeys } from '../session-keys.ts'
import { tracePages } from '../trace-pages.ts'

type ExplainOptions = { turn?: number; last?: boolean; json?: boolean }

/** `explain`: why each turn of a session went where it went. */
export function addExplainCommand(
  program: Command,
  deps: CommandDeps,
  end: (exitCode: number) => void,
): void {
  program
    .command('explain <session>')
    .summary('show why each turn went where it went, and decide it again')
    .description(
      'Tells of each turn of a session what it was taken for, which rule and which model that came to, what went into the prompt and what stayed out, what was asked, called and paid. Then it decides the turn again from the trace, here on this machine: what does not come to the same is said, and the exit code is 1.',
    )
    .addOption(new Option('--turn <n>', 'this turn alone, counted from 1').argParser(turnNumber))
    .addOption(new Option('--last', 'the last turn alone').conflicts('turn'))
    .option('--json', 'print JSON, a turn on each line, with its events and what was checked')
    .addHelpText(
      'after',
      '\nExamples:\n  switchyard explain 0197d0a2-6c1e-7c52-9a55-0c6a6f1d2b11\n  switchyard explain 0197d0a2-6c1e-7c52-9a55-0c6a6f1d2b11 --last\n  switchyard explain 0197d0a2-6c1e-7c52-9a55-0c6a6f1d2b11 --json | jq .check',
    )
    .action(async (typed: string, _options: unknown, command: Command) => {
      const session = requireId(typed, 'session')
      const { options, io, client } = await openClient<ExplainOptions>(deps, command)
      const keys = new SessionKeys()
      const events: TraceEvent[] = []
      const locked = new Map<TraceEvent, string>()
      const policies = new Map<string, KeptPolicy>()
      for await (const page of tracePages(client, session)) {
        const opened = await openTrace(client, keys, session, page.events)
        for (const event of opened.events) events.push(event)
        for (const [event, why] of opened.locked) locked.set(event, why)
        keepPolicies(page, policies)
      }
      const all = turnsOf(events)
      const turns = chosen(all, options)
      if (turns.length === 0 && !options.json) io.err('no turns\n')
      const runs = new Set(all.map(({ run }) => run)).size
      const paint = io.outIsTty ? io.paint : makePaint(false)
      if (turns.length > 1 && !options.json) io.out(`${paint.bold(summaryLine(turns))}\n\n`)
      const used = new Map<string, KeptPolicy>()
      let differs = false
      for (const [index, turn] of turns.entries()) {
        const decisions = decisionsOf(turn, policies)
        differs ||= verdictOf(decisions) === 'differs'
        for (const { key, kept } of decisions) if (kept !== null) used.set(key, kept)
        if (options.json) io.out(`${JSON.stringify(asJson(turn, decisions))}\n`)
        else io.out(`${index > 0 ? '\n' : ''}${turnText(turn, decisions, runs, paint, locked)}`)
      }
      if (!options.json) {
        if (options.turn === undefined) io.out(standingText(must(await client.currentRun(session)), paint))
        io.out(
          warningsText(
            [...used.values()].map(({ policy }) => policyWarnings(policy)),
            paint,
          ),
        )
      }
      end(differs ? EXIT.failed : EXIT.ok)
    })
}

/** The turns that were asked for. */
function chosen(turns: Turn[], { turn, last }: ExplainOptions): Turn[] {
  if (last) return turns.slice(-1)
  if (turn === undefined) return turns
  if (turn > turns.length)
    throw new CommandStop(EXIT.usage, `there is no turn ${turn}: the trace holds ${turns.length}`)
  return turns.slice(turn - 1, turn)
}

/** A turn for scripts: its events as the router tells them, and what came of deciding each route again. */
const asJson = ({ number, run, events }: Turn, decisions: readonly Decision[]): unknown => ({
  turn: number,
  ...(run === undefined ? {} : { run }),
  check: verdictOf(decisions),
  decided_again: decisions.map(({ check, kept }) => ({
    ...check,
    ...(kept?.altered ? { policy_altered: true } : {}),
  })),
  events,
})

function turnNumber(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 1.')
  return Number(text)
}
