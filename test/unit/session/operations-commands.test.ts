import { describe, expect, test, vi } from 'vitest'
import { makeRequest, makeRule } from '../../support/core/builders.ts'
import { OperatedSession } from '../../support/node/operated-session.ts'

const rejected = (code: string) => ({ receipt: 'rejected', result: { type: 'error', code } })
const command = (text: string) => ({ type: 'execute_command', command: text }) as const
const set = (model: string, reasoning_effort = 'default') =>
  ({ type: 'set_session_settings', model, reasoning_effort }) as const

const body = makeRequest({
  text: 'first',
  rules: [makeRule({ name: 'r', model: 'anthropic/big' })],
  defaultRoute: { model: 'ollama/small' },
})

function running(): OperatedSession {
  const session = new OperatedSession()
  session.execute(body)
  return session
}

function idle(): OperatedSession {
  const session = running()
  session.answer('done')
  return session
}

describe('set_session_settings', () => {
  test('[D09] applies both fields; devices are shown the state anew', async () => {
    const session = idle()
    const answer = await session.ask(set('anthropic/big'))
    expect(answer).toMatchObject({
      receipt: 'applied',
      result: {
        type: 'session_settings_updated',
        settings: { selected_model: 'anthropic/big', reasoning_effort: 'default', can_change: true },
      },
    })
    expect(session.cuts).toBe(1)
    expect(session.operations.settings()?.selected_model).toBe('anthropic/big')
  })

  test('[RF 20] is busy while a turn goes on, and unknown names change nothing', async () => {
    const session = running()
    expect(await session.ask(set('anthropic/big'))).toMatchObject(rejected('busy'))
    session.answer('done')
    expect(await session.ask(set('no/such'))).toMatchObject(rejected('invalid_request'))
    expect(await session.ask(set('anthropic/big', 'high'))).toMatchObject(rejected('invalid_request'))
    expect(session.operations.settings()?.selected_model).toBe('auto')
    expect(session.cuts).toBe(0)
  })

  test('[D09] before the first run nothing is known, and nothing can be set', async () => {
    const session = new OperatedSession()
    expect(session.operations.settings()).toBeNull()
    expect(await session.ask(set('auto'))).toMatchObject(rejected('invalid_request'))
  })

  test('"default clears the effort override": `auto` again leaves nothing behind', async () => {
    const session = idle()
    await session.ask(set('ollama/small'))
    expect(session.session.settings).toEqual({ model: 'ollama/small', effort: null })
    await session.ask(set('auto'))
    expect(session.session.settings).toBeNull()
  })
})

describe('execute_command', () => {
  test.each([
    ['/help', 'Remote commands'],
    ['/status', 'Status'],
    ['/info', 'About Switchyard'],
    ['/about', 'About Switchyard'],
    ['/usage', 'Usage'],
    ['/perf', 'Performance'],
    ['/context', 'Context'],
    ['/tasks', 'Tasks'],
    ['/mcp', 'MCP servers'],
    ['/model', 'Model'],
    ['/effort', 'Reasoning effort'],
  ])('[RF 21] %s shows %s, while a turn goes on as well, and leaves no message', async (name, title) => {
    for (const session of [running(), idle()]) {
      const said = session.said()
      const { receipt, result } = await session.ask(command(` ${name.toUpperCase()} `))
      expect(receipt).toBe('applied')
      expect(result).toMatchObject({ type: 'command_executed', command: name, title })
      expect(result).toHaveProperty('output', expect.stringMatching(/\S/))
      expect(session.said()).toEqual(said)
    }
  })

  test('[RF 21] outputs of several lines have breaks that Markdown keeps', async () => {
    const { result } = await idle().ask(command('/status'))
    expect(result).toMatchObject({ output: expect.stringContaining('State: idle  \nLast model: ollama/m') })
  })

  test('/usage sums what models used', async () => {
    const { result } = await idle().ask(command('/usage'))
    expect(result).toMatchObject({ output: expect.stringContaining('1 tokens in, 1 tokens out') })
  })

  test('/tasks shows what is queued', async () => {
    const session = running()
    await session.ask({ type: 'queue', prompt: 'later on' })
    expect((await session.ask(command('/tasks'))).result).toMatchObject({ output: '1. later on' })
  })

  test('[RF 21] /model takes an exact name: an unknown one is told first, then that a turn goes on', async () => {
    const session = running()
    expect(await session.ask(command('/model no/such'))).toMatchObject(rejected('invalid_request'))
    expect(await session.ask(command('/model anthropic/big'))).toMatchObject(rejected('busy'))
    session.answer('done')
    expect((await session.ask(command('/model anthropic/big'))).result).toMatchObject({
      command: '/model',
      output: expect.stringContaining('anthropic/big: big (selected)'),
    })
    expect(session.operations.settings()?.selected_model).toBe('anthropic/big')
  })

  test('[RF 21] /effort takes an effort of the profile, `off` for the default', async () => {
    const session = idle()
    expect((await session.ask(command('/effort off'))).receipt).toBe('applied')
    expect(await session.ask(command('/effort med'))).toMatchObject(rejected('invalid_request'))
  })

  test.each(['/title', '/change_title'])(
    '[RF 21] %s gives the session a title, at any time',
    async (name) => {
      const session = running()
      expect((await session.ask(command(`${name}  My  words `))).result).toMatchObject({
        type: 'command_executed',
        command: name,
        title: 'Session title',
      })
      expect(session.session.title).toBe('My  words')
      expect(await session.ask(command(name))).toMatchObject(rejected('invalid_request'))
      expect(await session.ask(command(`${name} ${'x'.repeat(513)}`))).toMatchObject(
        rejected('invalid_request'),
      )
      expect(session.session.title).toBe('My  words')
    },
  )

  test.each(['/clear', '/status now', 'hello'])('%s is an unsupported operation', async (text) => {
    expect(await idle().ask(command(text))).toMatchObject(rejected('unsupported_operation'))
  })

  test('[D29] a title is stored with its receipt, or not at all', async () => {
    const logged = vi.spyOn(console, 'error').mockImplementation(() => {})
    const session = idle()
    session.breaksNext = true
    await session.ask(command('/title new'), { requestId: 'r' })
    expect(session.session.title).toBe('')
    expect(session.receipts()).toEqual([])
    await session.ask(command('/title new'), { requestId: 'r' })
    expect(session.session.title).toBe('new')
    logged.mockRestore()
  })

  test('[D47] of an encrypted session /context says where it stands', async () => {
    const session = new OperatedSession({ keyId: 'kf2_key' })
    expect((await session.ask(command('/context'))).result).toMatchObject({
      output: expect.stringContaining('encrypted'),
    })
    expect((await session.ask(command('/status'))).result).toMatchObject({
      output: expect.stringContaining('Encrypted with the key kf2\\_key'),
    })
  })
})
