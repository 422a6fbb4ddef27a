import { ExportRecord } from '../protocol/execution/export.ts'
import { err, ok, type Result } from '../protocol/result.ts'
import type { ClientFailure } from './failure.ts'
import { connectionFailure, type HttpRequest, type Transport } from './http.ts'

/** A record of an export with the line that it came as, which may hold more than this version knows. */
export type ExportedLine = { line: string; record: ExportRecord }

/** A line is one message with its calls, or less: far above what the router takes in one request. */
const MAX_LINE_CHARS = 64 * 1024 * 1024

export type ExportOptions = {
  transport: Transport
  /** The first page; later ones are asked for by the `next` of the page before. */
  request: (after: string | undefined) => HttpRequest
}

/**
 * An export as one sequence of records, whatever its pages: one `export`, what belongs to it, one `end` with the number
 * of sessions in all. The last item is a failure where it broke off, and an export whose last item is no `end` is not
 * whole.
 */
export async function* readExport({
  transport,
  request,
}: ExportOptions): AsyncGenerator<Result<ExportedLine, ClientFailure>> {
  let sessions = 0
  for (let after: string | undefined; ; ) {
    let ending: Extract<ExportRecord, { type: 'end' }> | null = null
    for await (const one of readPage(transport, request(after))) {
      if (!one.ok) {
        yield one
        return
      }
      const { record } = one.value
      if (record.type === 'end') ending = record
      // The pages behind the first open like it, and what is read here is one export.
      else if (record.type !== 'export' || after === undefined) yield one
    }
    if (ending === null) {
      yield err({ kind: 'network', message: 'the export broke off before its end' })
      return
    }
    sessions += ending.sessions
    if (ending.next === undefined) {
      const record: ExportRecord = { type: 'end', sessions }
      yield ok({ line: JSON.stringify(record), record })
      return
    }
    after = ending.next
  }
}

async function* readPage(
  transport: Transport,
  request: HttpRequest,
): AsyncGenerator<Result<ExportedLine, ClientFailure>> {
  const answer = await transport.send(request)
  if (!answer.ok) {
    yield answer
    return
  }
  const { body, status } = answer.value
  if (body === null) return
  const decoder = new TextDecoder()
  const reader = body.getReader()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      rest += decoder.decode(value, { stream: true })
      const lines = rest.split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        const parsed = parseLine(line, status)
        yield parsed
        if (!parsed.ok) return
      }
      if (rest.length > MAX_LINE_CHARS) {
        yield err({ kind: 'unexpected_body', status, message: 'a line of the export is too long' })
        return
      }
    }
  } catch (error) {
    yield err(connectionFailure(error, request.signal, 'the router'))
  } finally {
    // Also when the consumer stops early: the connection must not stay open behind its back.
    reader.cancel().catch(() => undefined)
  }
}

function parseLine(line: string, status: number): Result<ExportedLine, ClientFailure> {
  let body: unknown
  try {
    body = JSON.parse(line)
  } catch {
    return err({ kind: 'unexpected_body', status, message: 'a line of the export is not JSON' })
  }
  const parsed = ExportRecord.safeParse(body)
  if (parsed.success) return ok({ line, record: parsed.data })
  const issue = parsed.error.issues[0]
  const where = issue && issue.path.length > 0 ? ` at ${issue.path.join('.')}` : ''
  return err({
    kind: 'unexpected_body',
    status,
    message: `a line of the export does not have the promised shape${where}: ${issue?.message ?? 'unknown'}`,
  })
}
