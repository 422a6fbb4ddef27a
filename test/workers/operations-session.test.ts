import { evictDurableObject } from 'cloudflare:test'
import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { makeExecute } from '../support/workers/bodies.ts'
import { Hold, until } from '../support/workers/hold.ts'
import { quietGateway } from '../support/workers/live-list.ts'
import { type Client, makeClient, turnAs } from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'
import { checkpointOf, crash, inside, transcriptOf } from '../support/workers/session-object.ts'
import { SharedSession } from '../support/workers/shared-session.ts'

const models = scriptModels()

let client: Client
let id: string
let session: SharedSession
beforeAll(async () => {
  client = await makeClient()
})
beforeEach(async () => {
  quietGateway()
  session = await SharedSession.open(client)
  id = session.id
})

const ask: SharedSession['ask'] = (...asked) => session.ask(...asked)

const submit = (prompt: string) => ({ type: 'submit_prompt', prompt }) as const
const queue = (prompt: string) => ({ type: 'queue', prompt }) as const
const accepted = (disposition: string) => ({
  receipt: 'applied',
  result: { type: 'prompt_accepted', disposition },
})
const rejected = (code: string) => ({ receipt: 'rejected', result: { type: 'error', code } })

/** Runs once over HTTP, so that the session has a policy. */
async function runOnce(): Promise<void> {
  models.script({ text: ['Hello'] })
  await turnAs(await client.execute(id, makeExecute('hi')), 'completed')
}

const isIdle = async () => {
  const { state } = await checkpointOf(id)
  return state?.active == null && state?.phase.k === 'Idle'
}

const said = async () => (await transcriptOf(id)).map(({ role, text }) => `${role}: ${text}`)

describe('a prompt from a device', () => {
  it('[D07] runs with the policy of the last run, and no tool that needs a computer', async () => {
    await runOnce()
    models.script({ text: ['From the phone'] })
    expect(await ask(submit('go on'))).toEqual(accepted('started'))
    await until(isIdle)
    expect(await said()).toEqual(['user: hi', 'assistant: Hello', 'user: go on', 'assistant: From the phone'])
    const offered = models.chats.at(-1)?.tools ?? []
    expect(offered).toContain('ask_user')
    for (const tool of ['read_file', 'write_file', 'edit_file', 'shell']) expect(offered).not.toContain(tool)
  })

  it('[D07] in a session that never had a run it takes the policy that its user has published', async () => {
    expect(await ask(submit('now'))).toMatchObject(rejected('invalid_request'))
    const { policy } = makeExecute('')
    const published = await client.send('PUT', '/api/v1/settings/policy', { policy })
    expect(published.status).toBe(200)
    models.script({ text: ['First'] })
    expect(await ask(submit('now'))).toEqual(accepted('started'))
    await until(isIdle)
    expect(await said()).toEqual(['user: now', 'assistant: First'])
  })

  it('[U14] is one action, however often it is sent, also at once', async () => {
    await runOnce()
    const hold = new Hold()
    models.script({ text: ['a'], hold: hold.wait })
    const answers = await Promise.all(
      Array.from({ length: 3 }, () => ask(submit('once'), { requestId: 'same' })),
    )
    expect(answers).toEqual([accepted('started'), accepted('started'), accepted('started')])
    expect(await ask(submit('other'), { requestId: 'same' })).toMatchObject(rejected('request_conflict'))
    hold.release()
    await until(isIdle)
    expect((await said()).filter((line) => line === 'user: once')).toHaveLength(1)
  })

  it('[U06] whose object dies is served again by itself, and its receipt is known', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => {})
    await runOnce()
    const hold = new Hold()
    models.script({ text: ['cut '], hold: hold.wait }, { text: ['Whole'] })
    expect(await ask(submit('go on'), { requestId: 'r' })).toEqual(accepted('started'))
    await hold.reached()
    await crash(id)
    expect(await ask(submit('go on'), { requestId: 'r' })).toEqual(accepted('started'))
    await until(isIdle)
    hold.release()
    expect(await said()).toEqual(['user: hi', 'assistant: Hello', 'user: go on', 'assistant: Whole'])
    const status = await session.stub.requestStatus(client.userId, 'phone', {
      requestId: 'r',
      registrationEpoch: session.epoch,
    })
    expect(status).toEqual(accepted('started'))
  })

  it('[U14] is refused for ever once it was refused, also after the object has slept', async () => {
    await runOnce()
    expect(await ask(queue('x'), { requestId: 'r' })).toMatchObject(rejected('not_running'))
    await evictDurableObject(session.stub)
    expect(await ask(queue('x'), { requestId: 'r' })).toMatchObject(rejected('not_running'))
  })

  it('[RF 17] in the queue runs when the run before it is over, also when it fails', async () => {
    await runOnce()
    const hold = new Hold()
    models.script({ text: ['one '], hold: hold.wait }, { status: 500 }, { text: ['Third'] })
    await ask(submit('first'))
    await hold.reached()
    expect(await ask(queue('second'))).toEqual(accepted('queued'))
    expect(await ask(queue('third'))).toEqual(accepted('queued'))
    hold.release()
    await until(async () => (await isIdle()) && (await said()).at(-1) === 'assistant: Third')
    expect((await said()).slice(2)).toEqual([
      'user: first',
      'assistant: one ',
      'user: second',
      'user: third',
      'assistant: Third',
    ])
  })

  it('[D02] steers the turn that is being served: what the model had said stays, and it goes on', async () => {
    await runOnce()
    const hold = new Hold()
    models.script({ text: ['Half '], hold: hold.wait }, { text: ['Rather so'] })
    await ask(submit('go on'))
    await hold.reached()
    const { state } = await checkpointOf(id)
    expect(await ask({ type: 'steer', prompt: 'rather so' })).toEqual(accepted('steered'))
    await until(isIdle)
    hold.release()
    expect((await checkpointOf(id)).state?.runId).toBe(state?.runId)
    expect((await said()).slice(2)).toEqual([
      'user: go on',
      'assistant: Half ',
      'user: rather so',
      'assistant: Rather so',
    ])
  })

  it('[D47] is not taken in an encrypted session', async () => {
    const made = await client.send('POST', '/api/v1/sessions', { title: 't', key_id: 'kf2_key' })
    id = ((await made.json()) as { session: { id: string } }).session.id
    session = await SharedSession.open(client, id)
    expect(await ask(submit('secret words'))).toMatchObject(rejected('owner_unavailable'))
    expect(await inside(id, (sql) => sql.rows('SELECT * FROM receipts'))).toEqual([])
  })
})

describe('what a device decides', () => {
  it('[U26] a cancelled turn is cut upstream', async () => {
    await runOnce()
    const hold = new Hold()
    models.script({ text: ['Half '], hold: hold.wait })
    await ask(submit('go on'))
    await hold.reached()
    const turn_id = `turn:${(await checkpointOf(id)).state?.runId}`
    expect(await ask({ type: 'cancel_turn', turn_id })).toEqual({
      receipt: 'applied',
      result: { type: 'turn_cancelled', turn_id },
    })
    await until(() => models.aborted > 0)
    hold.release()
    expect(await isIdle()).toBe(true)
    expect(await ask({ type: 'cancel_turn', turn_id })).toMatchObject(rejected('stale_turn'))
  })

  it('[RF 18] an answer reaches the model that asked, and the run goes on', async () => {
    await runOnce()
    const questions = [
      { header: 'Colour', text: 'Which?', options: [{ label: 'Blue' }, { label: 'Red' }] },
      { header: 'Size', text: 'How big?', options: [] },
    ]
    models.script({ text: [], calls: [{ name: 'ask_user', arguments: { questions } }] }, { text: ['Thanks'] })
    await ask(submit('ask me'))
    const asked = async () => {
      const { state } = await checkpointOf(id)
      const calls = state?.phase.k === 'AwaitingTool' ? state.phase.calls : []
      return calls.flatMap((call) => call.questions ?? []).filter(({ answer }) => answer === null)
    }
    await until(async () => (await asked()).length === 2)
    const [first, second] = await asked()
    const answer = (question_id = '', option = '') =>
      ask({ type: 'answer_question', question_id, answer: { type: 'selected', options: [option] } })
    expect(await answer(first?.id, 'Green')).toMatchObject(rejected('invalid_answer'))
    expect((await answer(first?.id, 'Blue')).receipt).toBe('applied')
    expect(await answer(first?.id, 'Red')).toMatchObject(rejected('stale_question'))
    const custom = { type: 'custom', text: 'huge' } as const
    await ask({ type: 'answer_question', question_id: second?.id ?? '', answer: custom })
    await until(isIdle)
    expect(models.chats.at(-1)?.messages.at(-1)).toEqual({
      role: 'tool',
      content: '[Colour] Which? → Blue\n[Size] How big? → huge',
    })
    expect((await said()).at(-1)).toBe('assistant: Thanks')
  })

  it('[RF 19] a denied batch of calls stops the run of the computer', async () => {
    models.script({ text: [], calls: [{ name: 'shell', arguments: { command: 'rm' } }] })
    await turnAs(await client.execute(id, makeExecute('hi')), 'awaiting_tool')
    const { state } = await checkpointOf(id)
    const batch_id = (state?.phase.k === 'AwaitingTool' && state.phase.batchId) || ''
    const resolve = (choice: 'approve' | 'deny') => ({ type: 'resolve_approval', batch_id, choice }) as const
    const answers = await Promise.all([
      ask(resolve('deny'), { device: 'phone' }),
      ask(resolve('approve'), { device: 'desk' }),
    ])
    expect(answers[0]).toMatchObject({ receipt: 'applied', result: { choice: 'deny' } })
    expect(answers[1]).toMatchObject(rejected('stale_approval'))
    expect(answers[1]?.result).toMatchObject({ message: expect.stringContaining('denied') })
    expect(await (await client.run(id)).json()).toMatchObject({ status: 'idle' })
  })
})

describe('what a device reads and sets', () => {
  it('pages through the history, and reads a message whole', async () => {
    const long = 'words '.repeat(2_000)
    models.script({ text: [long] })
    await turnAs(await client.execute(id, makeExecute('hi')), 'completed')
    const { receipt, result } = await ask({ type: 'get_history', limit: 1 })
    expect(receipt).toBeNull()
    if (result.type !== 'history') throw new Error(JSON.stringify(result))
    const [message] = result.messages
    expect(message).toMatchObject({ role: 'assistant', content: { truncated: true } })
    const content = await ask({
      type: 'get_content',
      content_id: message?.content.content_id ?? '',
      offset: 0,
      max_bytes: 65_536,
    })
    expect(content.result).toMatchObject({ type: 'content', text: long })
    const before = await ask({ type: 'get_history', cursor: result.next_cursor, limit: 1 })
    expect(before.result).toMatchObject({ messages: [{ role: 'user' }] })
  })

  it('[D09] a chosen model is the one that prompts from devices are sent to', async () => {
    models.script({ text: ['Hello'] })
    const routing = { default: { model: 'ollama/small', fallbacks: ['ollama/other'] } }
    await turnAs(await client.execute(id, makeExecute('hi', { policy: { routing } })), 'completed')
    const set = { type: 'set_session_settings', model: 'ollama/other', reasoning_effort: 'default' } as const
    expect((await ask(set)).result).toMatchObject({
      type: 'session_settings_updated',
      settings: { selected_model: 'ollama/other', can_change: true },
    })
    await evictDurableObject(session.stub)
    models.script({ text: ['Other'] })
    await ask(submit('go on'))
    await until(isIdle)
    expect(models.chats.at(-1)?.model).toBe('other')
  })

  it('[RF 21] a title reaches the session, its row and its copy', async () => {
    await ask({ type: 'execute_command', command: '/title Another name' })
    const detail = await client.send('GET', `/api/v1/sessions/${id}`)
    expect(await detail.json()).toMatchObject({ session: { title: 'Another name' } })
    expect(await session.stub.share(client.userId)).toMatchObject({ title: 'Another name' })
    await until(async () => {
      const list = await client.send('GET', '/api/v1/sessions')
      const { sessions } = (await list.json()) as { sessions: { id: string; title: string }[] }
      return sessions.some((session) => session.id === id && session.title === 'Another name')
    })
  })

  it('[RF 21] commands show what is stored, in the middle of a turn as well', async () => {
    await runOnce()
    const show = async (command: string) => {
      const { result } = await ask({ type: 'execute_command', command })
      return result.type === 'command_executed' ? result.output : JSON.stringify(result)
    }
    expect(await show('/usage')).toContain('ollama/small: 1 call, 100 tokens in, 20 tokens out')
    expect(await show('/perf')).toMatch(/ollama\/small, done/)
    expect(await show('/context')).toContain('Shown to the model:')
    const hold = new Hold()
    models.script({ text: ['a'], hold: hold.wait })
    await ask(submit('go on'))
    await hold.reached()
    expect(await show('/status')).toContain('State: running')
    hold.release()
    await until(isIdle)
    expect(await show('/status')).toContain('State: idle')
  })
})
