import type { ChatMessage } from '../../../src/host/demo/chat-request.ts'
import { complete } from '../../../src/host/demo/model.ts'

export const ALL_TOOLS = ['read_file', 'write_file', 'edit_file', 'shell', 'list_files', 'search_files']

export type Call = { name: string; arguments: Record<string, unknown> }

/** Answers a call; a text that begins with `Error: ` is a failure, as the router hands it on. */
export type Workspace = (call: Call) => string

/** A workspace of some files, answering as the tools of the command line do. */
export const workspaceOf =
  (files: Readonly<Record<string, string>>): Workspace =>
  ({ name, arguments: args }) => {
    const path = String(args.path ?? '')
    switch (name) {
      case 'read_file':
        return files[path] ?? `Error: ${path}: no such file or folder`
      case 'list_files': {
        const names = Object.keys(files).sort()
        return [...names, `[${names.length} files in .]`].join('\n')
      }
      case 'search_files':
        return search(files, String(args.query))
      case 'edit_file':
        return `Changed ${path}.`
      default:
        return 'done'
    }
  }

function search(files: Readonly<Record<string, string>>, query: string): string {
  const rows = Object.entries(files).flatMap(([path, content]) =>
    content
      .split('\n')
      .flatMap((line, at) =>
        line.toLowerCase().includes(query.toLowerCase()) ? [`${path}:${at + 1}: ${line}`] : [],
      ),
  )
  return [...rows, `[${rows.length} matches]`].join('\n')
}

export type Talk = { rounds: Call[][]; calls: Call[]; answer: string; messages: ChatMessage[] }

/** Carries one question to its answer, as the router does: each round's calls, then their results. */
export function talk(
  question: string,
  workspace: Workspace,
  options: { tools?: readonly string[]; before?: readonly ChatMessage[]; mostRounds?: number } = {},
): Talk {
  const { tools = ALL_TOOLS, before = [], mostRounds = 20 } = options
  const messages: ChatMessage[] = [...before, { role: 'user', content: question }]
  const rounds: Call[][] = []
  while (rounds.length <= mostRounds) {
    const completion = complete({
      model: 'switchyard-demo',
      messages,
      tools: tools.map((name) => ({ function: { name } })),
      stream: false,
    })
    const answer = completion.pieces.join('')
    if (completion.toolCalls.length === 0) return { rounds, calls: rounds.flat(), answer, messages }
    const calls = completion.toolCalls.map((call) => call.function)
    rounds.push(calls)
    messages.push({ role: 'assistant', content: answer, tool_calls: completion.toolCalls })
    for (const { id, function: call } of completion.toolCalls) {
      messages.push({ role: 'tool', content: workspace(call), tool_name: call.name, tool_call_id: id })
    }
  }
  throw new Error(`no answer after ${mostRounds} rounds`)
}
