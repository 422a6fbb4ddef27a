import { realpathSync } from 'node:fs'
import type { Command } from 'commander'
import type { SwitchyardClient } from '../../client/client.ts'
import { messageRef } from '../../protocol/execution/content-refs.ts'
import type { SessionDetail, SessionMessageDetail, SessionSummary } from '../../protocol/execution/session.ts'
import { ok, type Result } from '../../protocol/result.ts'
import { type CommandDeps, must, openClient, requireConsent, requireId } from '../command-context.ts'
import { EXIT } from '../exit-code.ts'
import type { CliIo } from '../io.ts'
import { oneLine, printable, printableAnswer } from '../printable.ts'
import { SessionKeys } from '../session-keys.ts'

const MAX_TITLE_CHARS = 60

/** `sessions list | show | archive | delete`. */
export function addSessionCommands(
  program: Command,
  deps: CommandDeps,
  end: (exitCode: number) => void,
): void {
  const sessions = program
    .command('sessions')
    .summary('list, show, archive and delete sessions')
    .description('Works with the sessions of your account.')
    .addHelpText(
      'after',
      `
Examples:
  switchyard sessions list --here
  switchyard sessions show 0197d0a2-6c1e-7c52-9a55-0c6a6f1d2b11
  switchyard sessions archive 0197d0a2-6c1e-7c52-9a55-0c6a6f1d2b11 --restore`,
    )

  const open = <T extends object>(command: Command) => openClient<T>(deps, command)

  sessions
    .command('list')
    .description('Lists sessions, the newest change first.')
    .option('--here', 'only those of the current folder')
    .option('--archived', 'archived ones, too')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  switchyard sessions list --here --archived')
    .action(async (_options: unknown, command: Command) => {
      const { options, io, client } = await open<{ here?: boolean; archived?: boolean; json?: boolean }>(
        command,
      )
      const filter = options.here ? { scope: realpathSync(process.cwd()) } : {}
      const all = must(await client.sessions.list(filter))
      const listed = all.filter((session) => options.archived || !session.archived)
      const keys = new SessionKeys()
      if (options.json) io.out(`${JSON.stringify(listed, null, 2)}\n`)
      else for (const session of listed) io.out(`${await summaryLine(session, keys)}\n`)
      if (listed.length === 0 && !options.json) io.err('no sessions\n')
      end(EXIT.ok)
    })

  sessions
    .command('show <id>')
    .description(
      'Prints the messages of a session, the oldest first. Those of an encrypted session are opened with the key on this machine.',
    )
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  switchyard sessions show 0197d0a2-6c1e-7c52-9a55-0c6a6f1d2b11')
    .action(async (typed: string, _options: unknown, command: Command) => {
      const id = requireId(typed, 'session')
      const { options, io, client } = await open<{ json?: boolean }>(command)
      const session = must(await client.sessions.get(id))
      const messages = await openMessages(client, session, new SessionKeys())
      if (options.json) io.out(`${JSON.stringify({ ...session, messages: messages.map(asJson) }, null, 2)}\n`)
      else show(session, messages, io)
      end(EXIT.ok)
    })

  sessions
    .command('archive <id>')
    .description('Archives a session, or takes it back.')
    .option('--restore', 'take it back')
    .addHelpText('after', '\nExample:\n  switchyard sessions archive 0197d0a2-6c1e-7c52-9a55-0c6a6f1d2b11')
    .action(async (typed: string, _options: unknown, command: Command) => {
      const id = requireId(typed, 'session')
      const { options, io, client } = await open<{ restore?: boolean }>(command)
      const session = must(await client.sessions.update(id, { archived: !options.restore }))
      io.err(`${session.archived ? 'archived' : 'restored'} ${session.id}\n`)
      end(EXIT.ok)
    })

  sessions
    .command('delete <id>')
    .description('Deletes a session with everything that belongs to it. There is no way back.')
    .option('--yes', 'do not ask')
    .addHelpText(
      'after',
      '\nExample:\n  switchyard sessions delete 0197d0a2-6c1e-7c52-9a55-0c6a6f1d2b11 --yes',
    )
    .action(async (typed: string, _options: unknown, command: Command) => {
      const id = requireId(typed, 'session')
      const { options, io, client } = await open<{ yes?: boolean }>(command)
      end(await remove(client, io, id, options.yes))
    })
}

async function remove(
  client: SwitchyardClient,
  io: CliIo,
  id: string,
  yes: boolean | undefined,
): Promise<number> {
  if (!(await requireConsent(io, yes, `Delete session ${id} for good?`))) {
    io.err('nothing was deleted\n')
    return EXIT.failed
  }
  must(await client.sessions.delete(id))
  io.err(`deleted ${id}\n`)
  return EXIT.ok
}

/** An encrypted session whose key is elsewhere is marked as locked, before anybody tries to work in it (U35). */
async function summaryLine(session: SessionSummary, keys: SessionKeys): Promise<string> {
  const isLocked = session.key_id != null && !(await keys.has(session.key_id))
  const marks = [
    session.archived ? 'archived' : '',
    session.encrypted ? 'encrypted' : '',
    isLocked ? 'locked' : '',
  ].filter((mark) => mark)
  const title = oneLine(session.title ?? '', MAX_TITLE_CHARS) || '(untitled)'
  return [session.id, session.updated_at.slice(0, 16).replace('T', ' '), title, ...marks].join('  ')
}

/** A message with its text, or with why there is none (U35). */
type Opened = { message: SessionMessageDetail; text: Result<string, string> }

function openMessages(
  client: SwitchyardClient,
  session: SessionDetail,
  keys: SessionKeys,
): Promise<Opened[]> {
  keys.learn(session.id, session.key_id)
  return Promise.all(
    session.messages.map(async (message) => {
      const { content, id } = message
      if ('plaintext' in content) return { message, text: ok(content.plaintext) }
      const ref = messageRef(id ?? 'unknown')
      return { message, text: await keys.open(client, session.id, ref, content.encrypted) }
    }),
  )
}

const asJson = ({ message, text }: Opened): SessionMessageDetail =>
  text.ok ? { ...message, content: { plaintext: text.value } } : message

function show(session: SessionDetail, messages: readonly Opened[], io: CliIo): void {
  const shown = (raw: string) => (io.outIsTty ? printableAnswer(raw) : raw)
  io.out(`${oneLine(session.title, MAX_TITLE_CHARS) || '(untitled)'}  ${session.id}\n`)
  for (const { message, text } of messages) {
    const content = text.ok ? shown(text.value) : `(${printable(text.error)})`
    io.out(`\n${speaker(message)}\n${content}\n`)
  }
}

function speaker({ role, provider, model, interrupted }: SessionMessageDetail): string {
  const by = provider && model ? ` (${provider}/${model})` : ''
  return `── ${role}${by}${interrupted ? ', interrupted' : ''}`
}
