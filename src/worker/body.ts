import type { Context } from 'hono'
import type { ZodType } from 'zod'
import { type Failure, failure } from '../protocol/execution/errors.ts'
import { codeOfIssue } from '../protocol/execution/unknown-names.ts'
import { isDeeperThan, MAX_JSON_DEPTH } from '../protocol/json-depth.ts'
import { err, ok, type Result } from '../protocol/result.ts'
import { digestOf } from '../storage/digest.ts'

/** Larger request bodies are refused unread (EC 1.5). */
export const MAX_BODY_BYTES = 10 * 1024 * 1024
/** Findings named in one answer. */
const MAX_ISSUES = 20

export type Body<T> = { value: T; digest: string }

/**
 * Reads and decodes a JSON body (EC 1.4): 413 when it is too large, 415 for another content type, 400 for text that is
 * no JSON, 422 for JSON of the wrong shape, with a name that nothing bears, or nested too deeply. `digest` tells two bodies apart (D20).
 */
export async function readBody<T>(c: Context, schema: ZodType<T>): Promise<Result<Body<T>, Failure>> {
  const type = (c.req.header('Content-Type') ?? '').split(';', 1)[0]?.trim().toLowerCase()
  if (type !== 'application/json' && !type?.endsWith('+json')) {
    return err({
      ...failure('invalid_request', 'send the body as `Content-Type: application/json`'),
      status: 415,
    })
  }
  const read = await readText(c.req.raw)
  if (!read.ok) return read
  const text = read.value
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    return err({ ...failure('invalid_request', 'the body is not valid JSON'), status: 400 })
  }
  const parsed = schema.safeParse(json, { reportInput: true })
  if (!parsed.success) {
    const issues = parsed.error.issues
      .slice(0, MAX_ISSUES)
      .map(({ path, message }) => ({ path: path.map(String).join('.'), message }))
    const [first] = issues
    const [worst] = parsed.error.issues
    const code = worst === undefined ? 'invalid_request' : codeOfIssue(worst)
    const where = first?.path ? `\`${first.path}\`: ` : ''
    return err(failure(code, `the body does not fit: ${where}${first?.message ?? ''}`, { issues }))
  }
  if (isDeeperThan(parsed.data, MAX_JSON_DEPTH)) {
    const details = { max_depth: MAX_JSON_DEPTH }
    return err(
      failure('invalid_request', `the body is nested more than ${MAX_JSON_DEPTH} levels deep`, details),
    )
  }
  return ok({ value: parsed.data, digest: await digestOf(`${new URL(c.req.url).pathname}\n${text}`) })
}

const TOO_LARGE: Failure = {
  ...failure('invalid_request', `the body is larger than ${MAX_BODY_BYTES} bytes`, {
    max_bytes: MAX_BODY_BYTES,
  }),
  status: 413,
}
const NOT_UTF8: Failure = { ...failure('invalid_request', 'the body is not valid UTF-8'), status: 400 }

/** The body as text. It is given up as soon as it is longer than allowed or no text. */
async function readText(request: Request): Promise<Result<string, Failure>> {
  if (Number(request.headers.get('Content-Length') ?? 0) > MAX_BODY_BYTES) return err(TOO_LARGE)
  if (request.body === null) return ok('')
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false })
  let bytes = 0
  let text = ''
  const reader: ReadableStreamDefaultReader<Uint8Array> = request.body.getReader()
  const giveUp = async (why: Failure): Promise<Result<string, Failure>> => {
    await reader.cancel()
    return err(why)
  }
  for (;;) {
    const { done, value } = await reader.read()
    if (!done) bytes += value.byteLength
    if (bytes > MAX_BODY_BYTES) return giveUp(TOO_LARGE)
    try {
      text += done ? decoder.decode() : decoder.decode(value, { stream: true })
    } catch {
      return giveUp(NOT_UTF8)
    }
    if (done) return ok(text)
  }
}
