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
  awaitingApproval,
  awaitingTool,
  call,
  completed,
  failedTurn,
  idle,
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

describe('[D46] without a terminal, where the owner lets devices decide', () => {
  const REMOTE = { remoteApprove: true }
  const WAITING = 'waiting for a paired device to decide: Run this command? (Ctrl-C stops the run)\n'
  const DISCLOSED = { provider: 'anthropic', model: 'm', paths: [] }
  /** What happens once it says that it waits. */
  function whenWaiting(happens: () => void): void {
    const { err } = io
    io.err = (text) => {
      err(text)
      if (text.includes('waiting for a paired device')) void gateway.attached().then(happens)
    }
  }
  const starts = (end: unknown) => router.script('POST', paths.execute, stream(numbered(1, [end])))
  beforeEach(() => {
    io = scriptedIo({ isTty: false })
  })

  test('a command waits for a device, and is run when it approves', async () => {
    starts(awaitingTool(MAKE))
    whenWaiting(() => {
      router.script('GET', paths.run, json(awaitingTool({ ...MAKE, decision: 'approved' })))
      gateway.tell({ type: 'approval_resolved', batch_id: 'b1' })
    })
    then(completed('done'))
    expect(await run(REMOTE)).toMatchObject({ status: 'completed', exitCode: 0 })
    expect(io.stderr).toContain(`$ echo hi > made.txt\n${WAITING}`)
    expect(io.stderr).toContain('approved on another device\n')
    expect(readFileSync(path.join(cwd, 'made.txt'), 'utf8')).toBe('hi\n')
    expect(sent()).toMatchObject([{ data: { results: [{ decision: 'approved' }] } }])
  })

  test('[RF 19] a device that denies stops the run', async () => {
    starts(awaitingTool(MAKE))
    whenWaiting(() => {
      router.script('GET', paths.run, json({ status: 'idle', data: { trace_id: 'trace:1' } }))
      gateway.tell({ type: 'turn_cancelled', turn_id: 'turn:1' })
    })
    expect(await run(REMOTE)).toMatchObject({ status: 'idle', exitCode: 1 })
    expect(io.stderr).toContain('stopped on another device\n')
    expect(io.stderr).not.toContain('--yes')
    expect(sent()).toEqual([])
  })

  test('[EC 13] a gate waits as well, and a device that rejects it was somebody to ask', async () => {
    starts(awaitingApproval('a1', 'remote_disclosure', DISCLOSED))
    whenWaiting(() => {
      const gate = { approval_id: 'a1', kind: 'remote_disclosure', detail: DISCLOSED }
      const data = { trace_id: 'trace:1', approval: { ...gate, decision: 'rejected' } }
      router.script('GET', paths.run, json({ status: 'awaiting_approval', data }))
      gateway.tell({ type: 'approval_resolved', batch_id: 'a1' })
    })
    then(failedTurn('override_not_allowed'))
    await run(REMOTE)
    expect(io.stderr).toContain('waiting for a paired device to decide: Go on?')
    expect(sent()).toMatchObject([{ data: { decisions: [{ decision: 'rejected' }] } }])
    expect(io.stderr).not.toContain('--yes')
  })

  test('[U26] Ctrl-C stops the run that waits', async () => {
    starts(awaitingTool(MAKE))
    const stop = new AbortController()
    whenWaiting(() => stop.abort())
    then(idle)
    expect(await run({ ...REMOTE, signal: stop.signal })).toMatchObject({ status: 'idle', exitCode: 130 })
    expect(sent()).toMatchObject([{ type: 'break' }])
  })

  test('it is declined when no device can be reached', async () => {
    starts(awaitingTool(MAKE))
    router.upgraded = undefined
    then(completed('done'))
    expect(await run(REMOTE)).toMatchObject({ status: 'completed' })
    expect(io.stderr).toContain('the gateway cannot be reached, so no device can be asked\n')
    expect(io.stderr).toContain('--yes approves what would be asked')
    expect(sent()).toMatchObject([{ data: { results: [{ decision: 'rejected' }] } }])
  })

  test('it is declined when the program is signed out while it waits', async () => {
    starts(awaitingTool(MAKE))
    whenWaiting(() => {
      gateway.send({ type: 'error', code: 'revoked', message: 'signed out' })
      gateway.drop()
    })
    then(completed('done'))
    await run(REMOTE)
    expect(sent()).toMatchObject([{ data: { results: [{ decision: 'rejected' }] } }])
  })

  test('nothing waits where the owner has not said so', async () => {
    starts(awaitingTool(MAKE))
    then(completed('done'))
    await run()
    expect(io.stderr).not.toContain('waiting')
    expect(sent()).toMatchObject([{ data: { results: [{ decision: 'rejected' }] } }])
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
