import type { z } from 'zod'
import { err, ok, type Result } from '../protocol/result.ts'
import { CATALOGUE_TOTAL_MS } from './bounds.ts'
import type { CallContext, ProviderFailure } from './provider.ts'
import { MalformedAnswer, UpstreamCall } from './upstream-call.ts'

/**
 * Asks an endpoint for something about its models: `GET`, or `POST` when there is a body.
 * @param path what follows the base URL, with its slash
 * @param shape what the answer must look like
 * @param options.auth the headers that carry the key; a bearer token without it
 */
export async function catalogueRequest<T extends z.ZodType>(
  endpoint: { baseUrl: string; local: boolean },
  context: CallContext,
  path: string,
  shape: T,
  { body, auth = bearer }: { body?: unknown; auth?: (key: string) => Record<string, string> } = {},
): Promise<Result<z.infer<T>, ProviderFailure>> {
  const { credential } = context
  const call = new UpstreamCall({
    fetch: context.egress(endpoint),
    signal: context.signal,
    totalMs: CATALOGUE_TOTAL_MS,
    redaction: { ...(credential === undefined ? {} : { credential }), texts: [], names: [] },
  })
  try {
    const response = await call.fetch(`${endpoint.baseUrl}${path}`, {
      headers: {
        accept: 'application/json',
        ...(credential ? auth(credential) : {}),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    })
    const parsed = shape.safeParse(await readJson(response))
    if (!parsed.success) throw new MalformedAnswer('its list of models cannot be read')
    return ok(parsed.data)
  } catch (error) {
    return err(call.failureOf(error))
  } finally {
    call.end()
  }
}

const bearer = (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` })

/** The body of an answer as JSON. @throws MalformedAnswer, without a word of the body */
export async function readJson(response: Response): Promise<unknown> {
  const text = await response.text()
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new MalformedAnswer('its answer cannot be read', { cause: error })
  }
}
