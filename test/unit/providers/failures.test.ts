import { describe, expect, it } from 'vitest'
import { ERROR_STATUS } from '../../../src/protocol/execution/errors.ts'
import { ProviderErrorCategory } from '../../../src/protocol/execution/models.ts'
import {
  categorize,
  categoryToCode,
  isFallbackEligible,
  retryAfterMs,
} from '../../../src/providers/failures.ts'
import { describeFailure, readErrorBody } from '../../../src/providers/provider-message.ts'

describe('categories of provider failures', () => {
  it('[EC 3] each has its public code', () => {
    const codes = ProviderErrorCategory.options.map((category) => [category, categoryToCode(category)])
    expect(Object.fromEntries(codes)).toEqual({
      authentication: 'provider_authentication',
      context_length: 'context_length_exceeded',
      invalid_configuration: 'invalid_provider_configuration',
      invalid_credentials: 'invalid_provider_credentials',
      invalid_request: 'invalid_request',
      missing_credentials: 'missing_provider_credentials',
      model_not_found: 'model_not_found',
      provider_unavailable: 'provider_unavailable',
      rate_limit: 'rate_limited',
      storage: 'storage_error',
      timeout: 'request_timeout',
      unknown: 'provider_error',
      unsupported_capability: 'provider_unsupported_capability',
    })
    expect(codes.every(([, code]) => code !== undefined && code in ERROR_STATUS)).toBe(true)
  })

  it('[EC 3] four of them may move on to a fallback', () => {
    expect(ProviderErrorCategory.options.filter(isFallbackEligible)).toEqual([
      'provider_unavailable',
      'rate_limit',
      'timeout',
      'unknown',
    ])
  })

  it.each([
    [
      400,
      "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
      'context_length',
    ],
    [400, 'prompt is too long: 210000 tokens > 200000 maximum', 'context_length'],
    [500, 'the input length exceeds the context length', 'context_length'],
    [
      400,
      'request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it',
      'context_length',
    ],
    [400, 'nope context_length_exceeded', 'context_length'],
    [404, 'The model `x` does not exist or you do not have access to it. model_not_found', 'model_not_found'],
    [400, 'lab-9 is not a valid model ID: unknown model', 'model_not_found'],
    [
      413,
      'Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 9000',
      'rate_limit',
    ],
    [403, 'Rate limit exceeded for organization', 'rate_limit'],
    [429, 'insufficient_quota', 'authentication'],
    [402, 'Insufficient credits. Add more', 'authentication'],
    [400, 'registry.ollama.ai/library/gemma does not support tools', 'unsupported_capability'],
    [400, '"qwen" does not support thinking', 'unsupported_capability'],
    [400, 'temperature must be at most 2', 'invalid_request'],
    [401, 'rate limit', 'invalid_credentials'],
    [403, 'region', 'authentication'],
    [404, 'page not found', 'unknown'],
    [418, '', 'unknown'],
    [502, '', 'provider_unavailable'],
    [undefined, 'something', 'unknown'],
  ] as const)('[EC 3] HTTP %s "%s" is %s', (status, hints, category) => {
    expect(categorize(status, hints)).toBe(category)
  })

  it.each([
    [{ 'retry-after': '12' }, 12_000],
    [{ 'retry-after': '0.5' }, 500],
    [{ 'retry-after-ms': '250', 'retry-after': '1' }, 250],
    [{ 'retry-after': 'Mon, 02 Nov 2026 10:00:30 GMT' }, 30_000],
    [{ 'retry-after': 'Mon, 02 Nov 2026 09:00:00 GMT' }, 0],
    [{ 'retry-after': 'soon' }, undefined],
    [{ 'retry-after': '-1' }, 0],
    [{ 'retry-after': '9'.repeat(400) }, 24 * 60 * 60_000],
    [{ 'retry-after': 'Fri, 31 Dec 9999 23:59:59 GMT' }, 24 * 60 * 60_000],
    [{ 'retry-after-ms': '9'.repeat(400) }, 24 * 60 * 60_000],
    [{}, undefined],
  ])('the wait in %j is %s ms', (headers, ms) => {
    expect(retryAfterMs(new Headers(headers), Date.parse('2026-11-02T10:00:00Z'))).toBe(ms)
  })
})

describe('what a provider says', () => {
  it.each([
    ['{"error":"plain"}', 'plain'],
    ['{"error":{"message":"nested","type":"t","code":"c"}}', 'nested'],
    ['[{"error":{"message":"listed"}}]', 'listed'],
    ['{"message":"flat"}', 'flat'],
    ['{"detail":"detail"}', 'detail'],
    ['404 page not found', '404 page not found'],
    ['<html>login</html>', undefined],
    ['{"weird":1}', undefined],
    ['null', undefined],
    ['', undefined],
  ])('is found in %s', (body, text) => {
    expect(readErrorBody(body).text).toBe(text)
  })

  const say = (text: string, redaction: Partial<Parameters<typeof describeFailure>[2]> = {}) =>
    describeFailure('invalid_request', { status: 400, text }, { texts: [], names: [], ...redaction })
  const bare = 'the provider refused the request (HTTP 400)'

  it('is repeated when it is harmless, and cut when it is long', () => {
    expect(say('temperature must be at most 2')).toBe(`${bare}: temperature must be at most 2`)
    expect(say('the API key configuration is odd')).toBe(`${bare}: the API key configuration is odd`)
    expect(say('a\n\u0007 b')).toBe(`${bare}: a b`)
    expect(say('x '.repeat(500))).toHaveLength(bare.length + 2 + 201)
  })

  it('loses keys, links, and quotations that are not names of the request', () => {
    expect(
      say('key abc-123 and sk-proj-1234567890 at https://a.example/?k=1', { credential: 'abc-123' }),
    ).toBe(`${bare}: key [key] and [key] at [link]`)
    expect(say(`model "lab-7b" can't take 'my words' or \`these\``, { names: ['lab-7b'] })).toBe(
      `${bare}: model "lab-7b" can't take “…” or “…”`,
    )
  })

  it('takes no time that grows with the square of its length', () => {
    const started = performance.now()
    for (const unit of [" 'a", '" \'a"', 'model prompt ', 'sk-', 'http://a']) {
      const body = unit.repeat(100_000 / unit.length)
      const { text = '', hints } = readErrorBody(JSON.stringify({ error: { message: body, code: 'c' } }))
      categorize(400, hints)
      say(text, { credential: 'abc-123' })
    }
    expect(performance.now() - started).toBeLessThan(2_000)
  })

  it('is sorted by its beginning, and by its code behind whatever length', () => {
    const { hints } = readErrorBody(
      JSON.stringify({ error: { message: 'x'.repeat(100_000), code: 'model_not_found' } }),
    )
    expect(categorize(404, hints)).toBe('model_not_found')
  })

  it('loses what a cut would have made unrecognisable', () => {
    // Four characters of the secret stand before the cut, and blanks that collapse before that.
    const cutAfter = (opening: string) =>
      say(`bad${' '.repeat(2_000 - 7 - opening.length)}${opening}hunter2${' more'.repeat(1_000)}`)
    for (const opening of ['sk-', 'https:', 'abc-']) expect(cutAfter(opening)).toBe(`${bare}: bad`)
    for (const opening of ['"my hunter ', "'my hunter ", '`my hunter '])
      expect(cutAfter(opening)).toBe(`${bare}: bad “…”`)
  })

  it('is not repeated at all when a part of the prompt stands in it', () => {
    const texts = ['please refactor the\n  billing module today']
    expect(say('cannot parse: refactor the billing module', { texts })).toBe(bare)
    expect(say('cannot parse: hunter2', { texts: ['hunter2'] })).toBe(bare)
    expect(say('cannot parse this', { texts })).toBe(`${bare}: cannot parse this`)
  })

  it('is not repeated for a refused key, of which it likes to show a part', () => {
    expect(
      describeFailure(
        'invalid_credentials',
        { status: 401, text: 'bad key abc…xyz' },
        { texts: [], names: [] },
      ),
    ).toBe('the provider refused the API key (HTTP 401)')
  })
})
