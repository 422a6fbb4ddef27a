import type { Command } from 'commander'
import { v7 as uuidv7 } from 'uuid'
import type { SwitchyardClient } from '../../client/client.ts'
import { MAX_MEMORY_CONTENT_CHARS, MAX_MEMORY_KEY_CHARS } from '../../protocol/execution/memory.ts'
import {
  type CommandDeps,
  CommandStop,
  must,
  optionsOf,
  requireClient,
  requireId,
  routerUrl,
} from '../command-context.ts'
import { EXIT } from '../exit-code.ts'
import { type OpenedFact, openFacts } from '../opened-facts.ts'
import { oneLine, printable } from '../printable.ts'
import { SessionKeys } from '../session-keys.ts'

/** What a list shows of one fact. */
const MAX_LISTED_CHARS = 120

type MemoryOptions = { session?: string; json?: boolean; localOnly?: boolean }

/** `memory list | set | forget`. */
export function addMemoryCommands(
  program: Command,
  deps: CommandDeps,
  end: (exitCode: number) => void,
): void {
  const memory = program
    .command('memory')
    .summary('list, set and forget what models remember')
    .description('Works with the facts that models are told in later turns: about you, or in one session.')
    .addHelpText(
      'after',
      `
Examples:
  switchyard memory list
  switchyard memory set editor "uses vim, and spaces instead of tabs"
  switchyard memory forget editor`,
    )

  const open = async (command: Command) => {
    const { session, ...others } = optionsOf<MemoryOptions>(command)
    const options = {
      ...others,
      ...(session === undefined ? {} : { session: requireId(session, 'session') }),
    }
    const io = deps.makeIo(options)
    return { options, io, client: await requireClient(routerUrl(options), io) }
  }

  memory
    .command('list')
    .description(
      'Lists facts, the newest first: those about you and, beside them, those of sessions. Those of encrypted sessions are opened with their keys on this machine.',
    )
    .option('--session <id>', 'only those of this session')
    .option('--json', 'print JSON, with the facts in full')
    .addHelpText('after', '\nExample:\n  switchyard memory list --json')
    .action(async (_options: unknown, command: Command) => {
      const { options, io, client } = await open(command)
      const filter = options.session === undefined ? {} : { session_id: options.session }
      const facts = await openFacts(client, new SessionKeys(), must(await client.memory.list(filter)))
      const records = facts.map(({ fact }) => fact)
      if (options.json) io.out(`${JSON.stringify(records, null, 2)}\n`)
      else for (const fact of facts) io.out(`${factLine(fact)}\n`)
      if (facts.length === 0 && !options.json) io.err('nothing is remembered\n')
      end(EXIT.ok)
    })

  memory
    .command('set <key> <text...>')
    .description(
      'Remembers a fact under a key, in the place of the one that has it. Those of an encrypted session are recorded by models: ask for it in a run.',
    )
    .option('--session <id>', 'in this session only, not in all; not in an encrypted one')
    .option('--local-only', 'no remote model may see it')
    .addHelpText('after', '\nExample:\n  switchyard memory set tests "run them with npm test"')
    .action(async (key: string, words: string[], _options: unknown, command: Command) => {
      const content = words.join(' ')
      requireLength('key', key, MAX_MEMORY_KEY_CHARS)
      requireLength('text', content, MAX_MEMORY_CONTENT_CHARS)
      const { options, io, client } = await open(command)
      const facts = await factsIn(client, options.session)
      const known = facts.find(({ fact }) => fact.key === key)?.fact
      const put = await client.memory.put(known?.id ?? uuidv7(), {
        ...(options.session === undefined
          ? { scope: 'user' }
          : { scope: 'session', session_id: options.session }),
        key,
        content,
        ...(options.localOnly ? { local_only: true } : {}),
      })
      if (!put.ok && options.session !== undefined) await requirePlainText(client, options.session)
      const fact = must(put)
      io.err(`remembered ${oneLine(key, MAX_LISTED_CHARS)} (${fact.id})\n`)
      end(EXIT.ok)
    })

  memory
    .command('forget <key-or-id>')
    .description('Forgets a fact. There is no way back.')
    .option('--session <id>', 'a fact of this session, not one about you')
    .addHelpText('after', '\nExample:\n  switchyard memory forget editor')
    .action(async (name: string, _options: unknown, command: Command) => {
      const { options, io, client } = await open(command)
      const opened = await factsIn(client, options.session)
      const facts = opened.map(({ fact }) => fact)
      const fact = facts.find(({ key }) => key === name) ?? facts.find(({ id }) => id === name.toLowerCase())
      if (!fact) throw new CommandStop(EXIT.failed, notFound(name, opened, options.session))
      must(await client.memory.delete(fact.id))
      io.err(`forgot ${oneLine(fact.key ?? fact.id, MAX_LISTED_CHARS)}\n`)
      end(EXIT.ok)
    })
}

/** What the router would refuse is refused before it is asked, in words for a command line. */
function requireLength(what: 'key' | 'text', value: string, mostChars: number): void {
  if (value.trim() === '') throw new CommandStop(EXIT.usage, `the ${what} of a fact must not be empty`)
  if (value.length > mostChars)
    throw new CommandStop(EXIT.usage, `the ${what} of a fact has at most ${mostChars} characters`)
}

async function factsIn(client: SwitchyardClient, session: string | undefined): Promise<OpenedFact[]> {
  const filter = session === undefined ? { scope: 'user' as const } : { session_id: session }
  return openFacts(client, new SessionKeys(), must(await client.memory.list(filter)))
}

/** Why no fact has this name. One whose key cannot be read may have it (U35). */
function notFound(name: string, facts: readonly OpenedFact[], session: string | undefined): string {
  const closed = facts.filter(({ locked }) => locked !== undefined)
  const [first] = closed
  if (!first) return `nothing is remembered under "${name}"`
  const [count, one] = closed.length === 1 ? ['1 fact', 'it'] : [`${closed.length} facts`, 'one of them']
  const where = session ?? first.fact.session_id
  return `whether ${one} is "${name}" cannot be told, for ${count} cannot be read (${printable(first.locked ?? '')}): get the key with \`switchyard keys import\`, or name the id, which \`switchyard memory list --session ${where}\` shows`
}

/** The router takes no text for an encrypted session but in a run, whose client seals it (EC 17.3). */
async function requirePlainText(client: SwitchyardClient, session: string): Promise<void> {
  const found = await client.sessions.get(session)
  if (!found.ok || found.value.key_id == null) return
  const message = `facts of an encrypted session are recorded by models, in its runs: \`switchyard run --session ${session} "remember that …"\``
  throw new CommandStop(EXIT.failed, message)
}

function factLine({ fact: record, locked }: OpenedFact) {
  const { id, updated_at: updatedAt, session_id: sessionId, key, content, local_only: local } = record
  const fact = oneLine(locked ?? (key === undefined ? content : `${key}: ${content}`), MAX_LISTED_CHARS)
  const marks = [sessionId === undefined ? '' : `session ${sessionId}`, local ? 'local only' : ''].filter(
    (mark) => mark,
  )
  return [id, updatedAt.slice(0, 16).replace('T', ' '), fact, ...marks].join('  ')
}
