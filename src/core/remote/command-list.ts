import type { RemoteCommandInfo } from '../../protocol/remote/snapshot.ts'

/** What a command does, and what is typed behind its name. */
const COMMANDS: Readonly<Record<string, { description: string; argument?: string }>> = {
  about: { description: 'Shows what this router is, and its version.' },
  change_title: { description: 'Gives the session another title.', argument: '<title>' },
  context: { description: 'Shows what the last turn sent to its model.' },
  effort: { description: 'Shows or sets how much the model thinks.', argument: '[value]' },
  help: { description: 'Lists the commands.' },
  info: { description: 'Shows what this router is, and its version.' },
  mcp: { description: 'Lists the MCP servers.' },
  model: { description: 'Shows or sets the model of this session.', argument: '[profile]' },
  perf: { description: 'Shows how long the last turn took.' },
  status: { description: 'Shows what the session does.' },
  tasks: { description: 'Lists what waits in the queue.' },
  title: { description: 'Gives the session another title.', argument: '<title>' },
  usage: { description: 'Shows the tokens and the cost of the session.' },
}

/** The commands that `execute_command` serves, as a client may offer them; sorted by name. */
export const REMOTE_COMMANDS: readonly RemoteCommandInfo[] = Object.entries(COMMANDS)
  .map(
    ([name, { description, argument }]): RemoteCommandInfo => ({
      name,
      description,
      insertion: argument === undefined ? `/${name}` : `/${name} `,
      action: 'execute',
    }),
  )
  .sort((a, b) => (a.name < b.name ? -1 : 1))
