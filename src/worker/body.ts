import type { Context } from 'hono'
import type { ZodType } from 'zod'
import { assert } from '../protocol/assert.ts'
import { type Failure, failure } from '../protocol/execution/errors.ts'
import { isDeeperThan, MAX_JSON_DEPTH } from '../protocol/json-depth.ts'
import { err, ok, type Result } from '../protocol/result.ts'
import { digestOf } from '../storage/digest.ts'
import { MAX_BODY_BYTES } from '../storage/limits.ts'
import { type BodyIssue, issuesOf, misfit } from './body-issues.ts'

export type Body<T> = { value: T; digest: string }

/**
 * Reads and decodes a JSON body (EC 1.4): 413 when it is too large, 415 for another content type, 400 for text that is
 * no JSON, 422 for JSON of the wrong shape, with a name that nothing bears, or nested too deeply. `digest` tells two bodies apart (D20).
 * @param alsoWrong what else is wrong with a body, as it came, that has the right shape; told after what the schema finds
 */
export async function readBody<T>(
  c: Context,
  schema: ZodType<T>,
  alsoWrong: (json: unknown) => readonly BodyIssue[] = () => [],
): Promise<Result<Body<T>, Failure>> {
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
  const [first, ...others] = [...(parsed.success ? [] : issuesOf(parsed.error)), ...alsoWrong(json)]
  if (first !== undefined) return err(misfit(first, others))
  assert(parsed.success, 'a body that does not fit has no issue')
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
