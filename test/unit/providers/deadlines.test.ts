import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { OpenAiCompatibleProvider } from '../../../src/providers/openai-compatible.ts'
import { DEFAULT_DEADLINES, OWN_MACHINE_DEADLINES } from '../../../src/providers/upstream-call.ts'
import { type ScriptedAnswer, scriptedFetch } from '../../support/node/scripted-upstream.ts'
import { piecesUntil } from '../../support/node/scripted-upstream-completion.ts'
import { chatDialect } from '../../support/node/scripted-upstream-dialects.ts'
import { collect, makeContext, makeDescriptor, makeRequest } from './support.ts'

const SILENT: ScriptedAnswer = { ending: 'hang' }
const SPEAKING: ScriptedAnswer = { body: piecesUntil(chatDialect, 'Hm').join(''), ending: 'hang' }

describe('how long an endpoint may be silent', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it.each([
    ['a hosted model, before its first byte', SILENT, { local: false, reasoning: false }, 2 * 60_000],
    [
      'a hosted model that thinks, before its first byte',
      SILENT,
      { local: false, reasoning: true },
      5 * 60_000,
    ],
    ['a machine of the user’s, before its first byte', SILENT, { local: true, reasoning: false }, 5 * 60_000],
    ['a hosted model, after its first words', SPEAKING, { local: false, reasoning: true }, 5 * 60_000],
    // It may be writing a long call, which it shows when it is whole.
    [
      'a machine of the user’s, after its first words',
      SPEAKING,
      { local: true, reasoning: false },
      14 * 60_000,
    ],
  ])('[D21] %s', async (_whose, answer, { local, reasoning }, ms) => {
    const provider = new OpenAiCompatibleProvider(
      { id: 'openai-compat:lab', displayName: 'Lab', baseUrl: 'http://lab.internal/v1', local, auth: 'none' },
      DEFAULT_DEADLINES,
      OWN_MACHINE_DEADLINES,
    )
    const model = makeDescriptor({ local, capabilities: { streaming: true, tools: true, reasoning } })
    const { context } = makeContext({ fetch: scriptedFetch(answer).fetch })
    let settled = false
    const events = collect(provider, makeRequest({ model }), context).finally(() => {
      settled = true
    })
    await vi.advanceTimersByTimeAsync(ms - 1)
    expect(settled).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect((await events).at(-1)).toMatchObject({ type: 'failed', failure: { category: 'timeout' } })
    expect(vi.getTimerCount()).toBe(0)
  })
})
