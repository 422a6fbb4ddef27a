import type { Command } from './command.ts'
import type { Conversation, Finding } from './conversation.ts'
import type { Evidence } from './evidence.ts'
import { failureLines, type Planner, readFile, type Wish } from './plan.ts'

type CommandOf<K extends Command['kind']> = Extract<Command, { kind: K }>

/** The end of a command's output is where the verdict is. */
const MAX_OUTPUT_LINES = 20
/** Two are too many already; a few more help to choose. */
const MAX_PLACES = 10

/** "Replace X with Y in FILE": reads the file, and edits it when the text stands there exactly once. */
export const planReplace =
  (intent: CommandOf<'replace'>, offered: ReadonlySet<string>): Planner =>
  (evidence) => {
    const { path, old, new: next } = intent
    const content = evidence.files.get(path)
    const places = content === undefined ? [] : linesWith(content, old)
    const edit: Wish = { name: 'edit_file', arguments: { path, old, new: next } }
    return {
      stages: [content === undefined ? [readFile(path)] : [], places.length === 1 ? [edit] : []],
      answer: () => {
        if (content === undefined)
          return [`${path} was not read, so nothing was changed.`, ...failureLines(evidence)]
        if (places.length === 0) return [`"${old}" does not occur in ${path}; nothing was changed.`]
        if (places.length > 1) {
          const where = places.map((line) => `${path}:${line}`).join(', ')
          return [`"${old}" occurs in several places (${where}); say more of the line that you mean.`]
        }
        if (!offered.has('edit_file'))
          return [`I may not edit here. ${path}:${places[0]} would get "${next}".`]
        return [outcomeOf(evidence, `Replaced "${old}" with "${next}" (${path}:${places[0]}).`)]
      },
    }
  }

/** "Create FILE with TEXT". */
export const planWrite =
  ({ path, content }: CommandOf<'write'>, offered: ReadonlySet<string>): Planner =>
  (evidence) => ({
    stages: [[{ name: 'write_file', arguments: { path, content } }]],
    answer: () => [
      offered.has('write_file') ? outcomeOf(evidence, `Wrote ${path}.`) : `I may not write files here.`,
    ],
  })

/** "Run `npm test`". */
export const planRun =
  ({ command }: CommandOf<'run'>, { findings }: Conversation, offered: ReadonlySet<string>): Planner =>
  () => ({
    stages: [[{ name: 'shell', arguments: { command } }]],
    answer: () => {
      const run = findings.findLast(
        ({ name, arguments: args }) => name === 'shell' && args.command === command,
      )
      return run === undefined ? [runRefused(command, offered)] : describeRun(command, run)
    },
  })

const runRefused = (command: string, offered: ReadonlySet<string>): string =>
  offered.has('shell') ? `\`${command}\` was not run.` : `I may not run commands here.`

function describeRun(command: string, { content, failed }: Finding): string[] {
  const lines = content.trimEnd().split('\n')
  const shown = lines.slice(-MAX_OUTPUT_LINES)
  const cut = lines.length > shown.length ? [`  … ${lines.length - shown.length} lines before`] : []
  return [
    `\`${command}\` ${failed ? 'did not succeed' : 'ran'}:`,
    ...cut,
    ...shown.map((line) => `  ${line}`),
  ]
}

function outcomeOf(evidence: Evidence, success: string): string {
  const [failure] = evidence.failures
  return failure === undefined ? success : `Nothing was changed: ${failure.reason}`
}

/** The lines that hold a text, once per place. */
function linesWith(content: string, text: string): number[] {
  const lines: number[] = []
  let line = 1
  let counted = 0
  for (let at = content.indexOf(text); at !== -1; at = content.indexOf(text, at + 1)) {
    for (; counted < at; counted++) if (content[counted] === '\n') line++
    lines.push(line)
    if (lines.length === MAX_PLACES) break
  }
  return lines
}
