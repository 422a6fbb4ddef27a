import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ContinueRequest } from '../../src/protocol/execution/continue.ts'
import type { ExecuteRequest } from '../../src/protocol/execution/execute.ts'
import { makeHoldPoint } from '../support/node/hold-point.ts'
import { type ScriptedModel, startScriptedModel } from '../support/node/model-scripts.ts'
import { makeAccount, must, type RouterAccount } from '../support/node/router-account.ts'
import { RouterProcess } from '../support/node/router-process.ts'
import { executeRequest, smallPolicy } from '../support/node/run-request.ts'
import { type StatefulFolder, statefulFolder } from '../support/node/stateful-folder.ts'
import { readStored } from '../support/node/stored-rows.ts'

/** What is left when the power goes: SIGKILL to every process of a router, and a new one on the same data. */

let folder: StatefulFolder
let model: ScriptedModel
let router: RouterProcess
let account: RouterAccount

beforeAll(async () => {
  folder = statefulFolder()
  model = await startScriptedModel()
  router = await RouterProcess.start({ persistTo: folder.path, vars: { OLLAMA_BASE_URL: model.url } })
  account = await makeAccount(router.url)
})

afterAll(async () => {
  await router?.stop()
  await model?.close()
  folder?.remove()
})

const policy = smallPolicy({
  routing: { default: { model: 'ollama/scripted' } },
  tools: { permissions: { read_file: 'allow' } },
})
const task = (prompt: string): ExecuteRequest => ({ ...executeRequest(prompt), policy })

const askToRead = { pieces: ['Reading.'], calls: [{ name: 'read_file', arguments: { path: 'a.ts' } }] }

async function pausedSession(word: string) {
  const session = await account.newSession()
  const pause = must(await account.client.execute(session, task(word)))
  if (pause.status !== 'awaiting_tool') throw new Error(`not paused: ${pause.status}`)
  const results = pause.data.tool_requests.map(({ call_id }) => ({ call_id, content: 'a', is_error: false }))
  const answer: ContinueRequest = { type: 'tool_results', data: { results } }
  return { session, pause, answer }
}

test('[EC 5.8, D20, U03, U06, U14] two kills in the middle of turns lose nothing, store nothing twice and leave nothing stuck', async () => {
  const { client } = account
  const held = makeHoldPoint()
  const half = { pieces: ['half'], hold: held.hold }
  model.script('<before>', half, half, { pieces: ['whole'] })
  model.script('<keyed>', half, half, { pieces: ['whole'] })
  model.script('<results>', askToRead, half, half, { pieces: ['read'] })
  model.script('<paused>', askToRead, { pieces: ['read'] })
  model.script('<done>', { pieces: ['done'] })
  model.script('<watched>', half, { pieces: ['whole', ' again'] })

  const before = await account.newSession()
  const keyed = await account.newSession()
  const withKey = { idempotencyKey: 'one-and-the-same' }
  const results = await pausedSession('<results>')
  const paused = await pausedSession('<paused>')
  const done = await account.newSession()
  const finished = must(await client.execute(done, task('<done>')))
  const watched = await account.newSession()

  const send = () => [
    client.execute(before, task('<before>')),
    client.execute(keyed, task('<keyed>'), withKey),
    client.continueRun(results.session, results.answer),
  ]
  /** What a client finds that comes back after a crash: the last checkpoint, never a turn that nobody serves. */
  const expectCheckpoints = async () => {
    const idle = { status: 'idle', data: { trace_id: expect.any(String) } }
    expect(must(await client.currentRun(before))).toEqual(idle)
    expect(must(await client.currentRun(keyed))).toEqual(idle)
    expect(must(await client.currentRun(results.session))).toEqual(results.pause)
    expect(must(await client.currentRun(paused.session))).toEqual(paused.pause)
    expect(must(await client.currentRun(done))).toEqual(finished)
  }

  const cutOff = send()
  // Our own client sees its stream break, and has to find its way back by itself.
  const stream = client.executeStream(watched, task('<watched>'))
  const { value: firstSeen } = await stream.next()
  const watching = (async () => {
    const events = []
    for await (const event of stream) events.push(event)
    return events
  })()
  await held.reached(4)
  await router.kill9()
  for (const lost of await Promise.all(cutOff)) expect(lost).toMatchObject({ error: { kind: 'network' } })
  await router.restart()
  await expectCheckpoints()
  expect(firstSeen).toEqual({ type: 'text_delta', delta: 'half' })
  expect(await watching).toMatchObject([
    { type: 'turn_restarted' },
    { type: 'text_delta', delta: 'whole' },
    { type: 'text_delta', delta: ' again' },
    { type: 'usage' },
    { type: 'turn_end', status: 'completed' },
  ])

  const cutOffAgain = send()
  await held.reached(7)
  await router.kill9()
  for (const lost of await Promise.all(cutOffAgain))
    expect(lost).toMatchObject({ error: { kind: 'network' } })
  await router.restart()
  await expectCheckpoints()

  const completed = (content: string) => ({
    ok: true,
    value: { status: 'completed', data: { message: { content } } },
  })
  const [a, b, c] = await Promise.all(send())
  expect([a, b, c]).toMatchObject([completed('whole'), completed('whole'), completed('read')])
  expect(await client.continueRun(paused.session, paused.answer)).toMatchObject(completed('read'))
  // The request that is known by its key is answered from what it did, however often it comes.
  expect(await client.execute(keyed, task('<keyed>'), withKey)).toEqual(b)
  expect(model.asked('<keyed>')).toHaveLength(3)

  for (const session of [before, keyed]) {
    const { messages } = must(await client.sessions.get(session))
    expect(messages.map(({ role, content }) => [role, content])).toEqual([
      ['user', { plaintext: session === before ? '<before>' : '<keyed>' }],
      ['assistant', { plaintext: 'whole' }],
    ])
    // Two calls were cut off before they told what they used: they count as requests, not as tokens.
    expect(must(await client.usage(session))).toMatchObject({
      total: { total_tokens: 120 },
      by_model: [{ request_count: 3, total_tokens: 120 }],
    })
  }
  expect(must(await client.usage(results.session)).total).toMatchObject({ total_tokens: 240 })

  await router.stop()
  const stored = readStored(folder.path)
  const ofTools = [
    { role: 'user' },
    { role: 'assistant', content: 'Reading.' },
    { role: 'assistant', content: 'read', interrupted: 0 },
  ]
  for (const { session } of [results, paused]) {
    const { object } = stored.get(session) ?? {}
    expect(object?.messages).toMatchObject(ofTools)
    expect(object?.calls).toMatchObject([
      { name: 'read_file', status: 'completed', result: 'a', is_error: 0 },
    ])
  }
  const statuses = (session: string) => stored.get(session)?.object.turns.map(({ status }) => status)
  expect(statuses(before)).toEqual(['interrupted', 'interrupted', 'done'])
  expect(statuses(results.session)).toEqual(['done', 'interrupted', 'interrupted', 'done'])
  expect(statuses(paused.session)).toEqual(['done', 'done'])
  expect(stored.size).toBe(6)
  for (const { object, copy } of stored.values()) {
    expect(copy.messages).toEqual(object.messages)
    expect(copy.turns).toEqual(object.turns.map(({ turn: _, ...row }) => row))
  }
})
