import { readFileSync } from 'node:fs'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Following } from '../../../src/cli/following.ts'
import type { Answer } from '../../../src/cli/io.ts'
import { type RunTaskOptions, runTask } from '../../../src/cli/run-task.ts'
import { SwitchyardClient } from '../../../src/client/client.ts'
import { configHome } from '../../support/node/config-home.ts'
import { NO_PREFERENCES, smallPolicy } from '../../support/node/run-request.ts'
import { ScriptedGateway } from '../../support/node/scripted-gateway.ts'
import { type ScriptedIo, scriptedIo } from '../../support/node/scripted-io.ts'
import {
  json,
  numbered,
  refusal,
  type ScriptedRouter,
  startScriptedRouter,
  stream,
} from '../../support/node/scripted-router.ts'
import {
  awaitingTool,
  call,
  completed,
  paths,
  SESSION,
  sessionSummary,
} from '../../support/node/scripted-router-turns.ts'
import { tempFolder } from '../../support/node/temp-folder.ts'

let router: ScriptedRouter
let gateway: ScriptedGateway
let io: ScriptedIo
let cwd: string
let following: Following
let client: SwitchyardClient

beforeEach(async () => {
  configHome()
  router = await startScriptedRouter()
  router.always('GET', '/api/v1/*', json({ sessions: [sessionSummary] }))
  router.always('GET', paths.usage, refusal(500, 'internal_error'))
  gateway = new ScriptedGateway(router)
  io = scriptedIo({ isTty: true })
  cwd = tempFolder({ 'a.txt': 'one\n' })
  client = new SwitchyardClient({
    baseUrl: router.url,
    token: 'tok',
    backoff: { firstMs: 1, maxMs: 1, attempts: 1, openAttempts: 1 },
  })
  following = new Following(client)
})
afterEach(async () => {
  await following.close()
  await router.close()
})

const run = (changes: Partial<RunTaskOptions> = {}) =>
  runTask({
    client,
    cwd,
    prompt: 'do it',
    policy: smallPolicy(),
    approve: 'ask',
    io,
    sessionId: SESSION,
    localPreferences: NO_PREFERENCES,
    following,
    ...changes,
  })

const sent = () => router.requests.filter(({ path: at }) => at === paths.continue).map(({ body }) => body)
const then = (...events: unknown[]) => router.script('POST', paths.continue, stream(numbered(2, events)))
const MAKE = call('c1', 'shell', { command: 'echo hi > made.txt' }, 'ask')

/** The question stands until it is taken away. */
function askForEver(whenAsked: () => void): void {
  io.confirm = (question, signal) => {
    io.questions.push(question)
    return new Promise<Answer<boolean>>((resolve) => {
      signal?.addEventListener('abort', () => resolve({ kind: 'interrupted' }))
      void gateway.attached().then(whenAsked)
    })
  }
}

describe('[D05] a question at the terminal that a device settles', () => {
  test('[D46] is taken away, and what was approved is done, where the owner allows that', async () => {
    router.script('POST', paths.execute, stream(numbered(1, [awaitingTool(MAKE)])))
    askForEver(() => {
      router.script('GET', paths.run, json(awaitingTool({ ...MAKE, decision: 'approved' })))
      gateway.tell({ type: 'approval_resolved', batch_id: 'b1' })
    })
    then(completed('done'))
    expect(await run({ remoteApprove: true })).toMatchObject({ status: 'completed', exitCode: 0 })
    expect(io.questions).toEqual(['Run this command?'])
    expect(io.stderr).toContain('approved on another device\n')
    expect(readFileSync(path.join(cwd, 'made.txt'), 'utf8')).toBe('hi\n')
    expect(sent()).toMatchObject([{ data: { results: [{ decision: 'approved' }] } }])
  })

  test('[D46] stays, when it is a command and the owner has not said that devices may decide', async () => {
    const approved = awaitingTool({ ...MAKE, decision: 'approved' })
    router.script('POST', paths.execute, stream(numbered(1, [approved])))
    io.confirmations.push(false)
    then(completed('x'))
    await run()
    expect(io.stderr).toContain('this computer asks, too (--remote-approve spares that)')
    expect(sent()).toMatchObject([{ data: { results: [{ decision: 'rejected' }] } }])
  })

  test('[RF 19] is taken away by a denial, and the run says that it was stopped there', async () => {
    router.script('POST', paths.execute, stream(numbered(1, [awaitingTool(MAKE)])))
    askForEver(() => {
      router.script('GET', paths.run, json({ status: 'idle', data: { trace_id: 'trace:1' } }))
      gateway.tell({ type: 'turn_cancelled', turn_id: 'turn:1' })
    })
    expect(await run()).toMatchObject({ status: 'idle', exitCode: 1 })
    expect(io.stderr).toContain('stopped on another device\n')
    expect(sent()).toEqual([])
  })
})

describe('[U02] a run whose session cannot be followed', () => {
  test('goes on as if there were no devices', async () => {
    router.upgraded = undefined
    router.script('POST', paths.execute, stream(numbered(1, [awaitingTool(MAKE)])))
    io.confirmations.push(true)
    then(completed('done'))
    expect(await run()).toMatchObject({ status: 'completed', exitCode: 0 })
    expect(io.stderr).not.toContain('another device')
  })
})

test('[D08] a model may ask whoever sits at the terminal', async () => {
  const questions = [{ header: 'H', text: 'Which?', options: [{ label: 'A' }, { label: 'B' }] }]
  router.script(
    'POST',
    paths.execute,
    stream(numbered(1, [awaitingTool(call('q1', 'ask_user', { questions }))])),
  )
  io.answers.push('2')
  then(completed('done'))
  await run()
  expect(sent()).toMatchObject([{ data: { results: [{ content: 'User selected: B', is_error: false }] } }])
})

test('[D08] without a terminal a model is not offered to ask', async () => {
  io = scriptedIo({ isTty: false })
  router.script('POST', paths.execute, stream(numbered(1, [completed('x')])))
  await run()
  const body = router.requests.find(({ path: at }) => at === paths.execute)?.body
  expect(JSON.stringify(body)).not.toContain('ask_user')
})
