import type { ChatMessage } from './chat-request.ts'

/** A tool call with what came back. `failed` also covers a call that was declined. */
export type Finding = { name: string; arguments: Record<string, unknown>; content: string; failed: boolean }

/** A conversation as this model sees it: the present question, and what was found to answer it. */
export type Conversation = {
  /** The last words of the user, without the files that were attached in front of them. */
  question: string
  /** Files that came with the request, or with the instructions of the project. */
  attached: { path: string; content: string }[]
  /** In the order of the calls, since the last words of the user: what was found before may be out of date. */
  findings: Finding[]
  /** Rounds of tool calls since the last words of the user. */
  rounds: number
}

/** How the router says that a result is an error, in a dialect that has no flag for it. */
const FAILED = /^(error: |this call was not run)/i

/** How the router separates attached files from the words of the user. */
const CONTEXT_HEAD = 'Context of the request:\n'
const REQUEST_HEAD = '\n\nRequest:\n'

export function readConversation(messages: readonly ChatMessage[]): Conversation {
  const lastUser = messages.findLastIndex(({ role }) => role === 'user')
  const since = messages.slice(lastUser + 1)
  const words = splitRequest(messages[lastUser]?.content ?? '')
  const instructions = messages
    .filter(({ role }) => role === 'system')
    .flatMap(({ content }) => blocks(content))
  return {
    question: words.question,
    attached: [...words.attached, ...instructions],
    findings: readFindings(since),
    rounds: since.filter(({ tool_calls }) => (tool_calls?.length ?? 0) > 0).length,
  }
}

function splitRequest(text: string): { question: string; attached: Conversation['attached'] } {
  const head = text.indexOf(CONTEXT_HEAD)
  // The last one: an attached file may hold the same words.
  const request = text.lastIndexOf(REQUEST_HEAD)
  if (head === -1 || request < head) return { question: text.trim(), attached: [] }
  const before = text.slice(0, head)
  const question = `${before}${text.slice(request + REQUEST_HEAD.length)}`.trim()
  return { question, attached: blocks(text.slice(head + CONTEXT_HEAD.length, request)) }
}

/** Parts headed by `# path`. A heading of a document has spaces or no dot and slash, and stays in its part. */
function blocks(text: string): Conversation['attached'] {
  const found: { path: string; lines: string[] }[] = []
  let afterBlank = true
  for (const line of text.split('\n')) {
    const path = afterBlank ? /^# (\S*[./]\S*)$/.exec(line)?.[1] : undefined
    afterBlank = line.trim() === ''
    if (path !== undefined) found.push({ path, lines: [] })
    else found.at(-1)?.lines.push(line)
  }
  return found.map(({ path, lines }) => ({ path, content: lines.join('\n').trimEnd() }))
}

/** Pairs each call with its result: by id where both have one, else the next result of that name. */
function readFindings(messages: readonly ChatMessage[]): Finding[] {
  const findings: Finding[] = []
  messages.forEach((message, at) => {
    const results = resultsAfter(messages, at)
    for (const call of message.tool_calls ?? []) {
      const { name } = call.function
      const byId = results.findIndex(({ tool_call_id: id }) => id !== undefined && id === call.id)
      const byName = results.findIndex(({ tool_name }) => tool_name === undefined || tool_name === name)
      const [result] = results.splice(byId === -1 ? byName : byId, byId === -1 && byName === -1 ? 0 : 1)
      const content = result?.content ?? ''
      const failed = result === undefined || FAILED.test(content)
      findings.push({ name, arguments: call.function.arguments, content, failed })
    }
  })
  return findings
}

function resultsAfter(messages: readonly ChatMessage[], at: number): ChatMessage[] {
  const results: ChatMessage[] = []
  for (const message of messages.slice(at + 1)) {
    if (message.role !== 'tool') break
    results.push(message)
  }
  return results
}
