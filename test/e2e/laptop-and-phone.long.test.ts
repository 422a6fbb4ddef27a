import { readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { DeviceRuns } from '../../src/cli/devices/device-runs.ts'
import { Following } from '../../src/cli/following.ts'
import type { Answer } from '../../src/cli/io.ts'
import { type RunTaskOptions, runTask } from '../../src/cli/run-task.ts'
import { configHome } from '../support/node/config-home.ts'
import { makeAccount, must, type RouterAccount } from '../support/node/router-account.ts'
import { RouterProcess } from '../support/node/router-process.ts'
import { NO_PREFERENCES, smallPolicy } from '../support/node/run-request.ts'
import { type ScriptedIo, scriptedIo } from '../support/node/scripted-io.ts'
import {
  lastOf,
  type Reply,
  type ScriptedOllama,
  startScriptedOllama,
} from '../support/node/scripted-ollama.ts'
import { type StatefulFolder, statefulFolder } from '../support/node/stateful-folder.ts'
import { tempFolder } from '../support/node/temp-folder.ts'
import { RemoteDevice, verifyDevices } from '../support/remote-device/device.ts'
import { pairFrame } from '../support/remote-device/gateway-home.ts'
import type { Fields } from '../support/remote-device/shapes.ts'

/** The command's own code drives a run against a real router, while a phone that is paired with it takes part. */

let folder: StatefulFolder
let model: ScriptedOllama
let router: RouterProcess
let account: RouterAccount
/** What the model says next; then `done`. */
let replies: Reply[] = []

beforeAll(async () => {
  folder = statefulFolder()
  model = await startScriptedOllama(() => replies.shift() ?? { pieces: ['done'] })
  router = await RouterProcess.start({
    persistTo: folder.path,
    vars: { OLLAMA_BASE_URL: model.url, RATE_LIMIT_BURST: '0' },
  })
  account = await makeAccount(router.url)
})
afterAll(async () => {
  await router?.stop()
  await model?.close()
  folder?.remove()
})

let io: ScriptedIo
let cwd: string
let sessionId: string
let following: Following
let deviceRuns: DeviceRuns
let phone: RemoteDevice

beforeEach(async () => {
  replies = []
  model.requests.length = 0
  configHome()
  io = scriptedIo({ isTty: true })
  cwd = tempFolder({ 'a.txt': 'one\n' })
  sessionId = await account.newSession()
  deviceRuns = new DeviceRuns(io)
  following = new Following(account.client, (news) => deviceRuns.heard(news))
  phone = await pairPhone()
})
afterEach(async () => {
  await following.close()
  await verifyDevices()
})

async function pairPhone(): Promise<RemoteDevice> {
  const { gateway_id, credential } = must(await account.client.pairing.open())
  const device = await RemoteDevice.dial(`${router.url.replace('http', 'ws')}/g/${gateway_id}`)
  expect(await device.handshake(pairFrame({ secret: credential }))).toMatchObject({ type: 'paired' })
  return device
}

/** The phone attaches to the session as soon as it is listed. */
async function attach(): Promise<{ within: Fields; snapshot: Fields }> {
  const { sessions } = await phone.request({ type: 'subscribe_sessions' })
  const isOurs = (row: Fields) => row.session_id === sessionId
  const rows = (sessions as Fields[]).some(isOurs)
    ? (sessions as Fields[])
    : await phone.nextList((listed) => listed.some(isOurs))
  const { registration_epoch } = rows.find(isOurs) ?? {}
  const within = { session_id: sessionId, registration_epoch }
  const attached = await phone.request({ type: 'attach_session' }, within)
  expect(attached.type).toBe('attached')
  return { within, snapshot: attached.snapshot as Fields }
}

/** The next event of this type. */
const eventOf = async (type: string): Promise<Fields> => {
  const frame = await phone.next(({ kind, event }) => kind === 'event' && (event as Fields).type === type)
  return frame.event as Fields
}

const run = (changes: Partial<RunTaskOptions> = {}) =>
  runTask({
    client: account.client,
    cwd,
    prompt: 'do it',
    policy: smallPolicy({
      routing: { default: { model: 'ollama/scripted' } },
      tools: { permissions: { shell: 'ask' } },
    }),
    approve: 'ask',
    io,
    sessionId,
    localPreferences: NO_PREFERENCES,
    following,
    onPrompt: (text) => deviceRuns.expect(text),
    ...changes,
  })

/** A question that stands until it is taken away. */
function askForEver(): void {
  const ask = <T>(question: string, signal?: AbortSignal) => {
    io.questions.push(question)
    return new Promise<Answer<T>>((resolve) => {
      if (signal?.aborted) resolve({ kind: 'interrupted' })
      signal?.addEventListener('abort', () => resolve({ kind: 'interrupted' }))
    })
  }
  io.confirm = ask
  io.askLine = ask
}

const MAKE: Reply = { calls: [{ name: 'shell', arguments: { command: 'echo hi > made.txt' } }] }

describe('while the laptop asks', () => {
  test('[D05] [U19] the phone approves: the laptop does it at once, and the phone sees how far it has come', async () => {
    replies = [MAKE]
    askForEver()
    const running = run({ remoteApprove: true })
    const { within, snapshot } = await attach()
    const batch = (snapshot.pending_approval ?? (await eventOf('approval_requested')).approval) as Fields
    const resolved = await phone.request(
      { type: 'resolve_approval', batch_id: batch.batch_id, choice: 'approve' },
      within,
    )
    expect(resolved).toMatchObject({ type: 'approval_resolved', receipt: 'applied' })
    expect(await running).toMatchObject({ status: 'completed', exitCode: 0 })
    expect(io.stderr).toContain('approved on another device')
    expect(readFileSync(path.join(cwd, 'made.txt'), 'utf8')).toBe('hi\n')
    const states: unknown[] = []
    while (states.at(-1) !== 'acted_on')
      states.push(((await eventOf('approval_decision')).decision as Fields).state)
    expect(states).toContain('delivered')
  })

  test('[RF 19] the phone denies: the run is over on both', async () => {
    replies = [MAKE]
    askForEver()
    const running = run()
    const { within, snapshot } = await attach()
    const batch = (snapshot.pending_approval ?? (await eventOf('approval_requested')).approval) as Fields
    await phone.request({ type: 'resolve_approval', batch_id: batch.batch_id, choice: 'deny' }, within)
    expect(await running).toMatchObject({ status: 'idle', exitCode: 1 })
    expect(io.stderr).toContain('stopped on another device')
    await eventOf('turn_cancelled')
  })

  test('[D08] the phone answers a question of the model: the run goes on with its answer', async () => {
    const questions = [{ header: 'Colour', text: 'Which?', options: [{ label: 'Red' }, { label: 'Blue' }] }]
    replies = [{ calls: [{ name: 'ask_user', arguments: { questions } }] }]
    askForEver()
    const running = run()
    const { within, snapshot } = await attach()
    const question = (snapshot.pending_question ?? (await eventOf('question_requested')).question) as Fields
    const answer = { type: 'selected', options: ['Blue'] }
    await phone.request({ type: 'answer_question', question_id: question.question_id, answer }, within)
    expect(await running).toMatchObject({ status: 'completed', exitCode: 0 })
    expect(model.requests.map((request) => lastOf(request, 'tool')).at(-1)).toContain('User selected: Blue')
  })
})

describe('while nobody sits at the laptop', () => {
  /** The run of a script waits for the phone; the batch that it waits for, and where. */
  async function waiting(): Promise<{ within: Fields; batch_id: unknown }> {
    const { within, snapshot } = await attach()
    const batch = (snapshot.pending_approval ?? (await eventOf('approval_requested')).approval) as Fields
    while (!io.stderr.includes('waiting for a paired device to decide'))
      await new Promise((resolve) => setTimeout(resolve, 20))
    return { within, batch_id: batch.batch_id }
  }
  beforeEach(() => {
    io = scriptedIo({ isTty: false })
    replies = [MAKE]
  })

  test('[D46] the phone approves for it, where the owner allows that', async () => {
    const running = run({ remoteApprove: true })
    const { within, batch_id } = await waiting()
    await phone.request({ type: 'resolve_approval', batch_id, choice: 'approve' }, within)
    expect(await running).toMatchObject({ status: 'completed', exitCode: 0 })
    expect(readFileSync(path.join(cwd, 'made.txt'), 'utf8')).toBe('hi\n')
  })

  test('[RF 19] the phone denies: the run is over', async () => {
    const running = run({ remoteApprove: true })
    const { within, batch_id } = await waiting()
    await phone.request({ type: 'resolve_approval', batch_id, choice: 'deny' }, within)
    expect(await running).toMatchObject({ status: 'idle', exitCode: 1 })
    expect(io.stderr).toContain('stopped on another device')
  })
})

describe('while the model speaks', () => {
  /** The model says something and then nothing more. */
  const speaking = (): { reply: Reply; release: () => void } => {
    const held = Promise.withResolvers<void>()
    return { reply: { pieces: ['Once'], hold: () => held.promise, after: [' upon'] }, release: held.resolve }
  }
  /** The phone has seen what the model said. */
  const heard = async ({ turn }: Fields) => {
    if (!JSON.stringify(turn ?? {}).includes('Once')) await eventOf('text_delta')
  }

  test('[U26] the phone stops the run: the laptop says so', async () => {
    const { reply, release } = speaking()
    replies = [reply]
    const running = run()
    const { within, snapshot } = await attach()
    const turn = (snapshot.turn ?? (await eventOf('turn_started'))) as Fields
    await heard(snapshot)
    await phone.request({ type: 'cancel_turn', turn_id: turn.turn_id }, within)
    expect(await running).toMatchObject({ status: 'idle', exitCode: 1 })
    expect(io.stderr).toContain('stopped on another device')
    release()
  })

  test('[U10] the phone says something: the laptop goes on with the answer to it', async () => {
    const { reply, release } = speaking()
    replies = [reply, { pieces: ['Twice'] }]
    const running = run()
    const { within, snapshot } = await attach()
    await heard(snapshot)
    const steered = await phone.request({ type: 'steer', prompt: 'say twice' }, within)
    expect(steered).toMatchObject({ type: 'prompt_accepted', receipt: 'applied' })
    expect(await running).toMatchObject({ status: 'completed', exitCode: 0 })
    expect(io.stdout).toContain('Twice')
    release()
  })
})

test('[D07] a run that the phone starts shows at the prompt of the laptop', async () => {
  await run()
  const { within } = await attach()
  replies = [{ pieces: ['from the phone'] }]
  await phone.request({ type: 'submit_prompt', prompt: 'tidy up' }, within)
  await eventOf('turn_finished')
  await deviceRuns.during(async () => {
    while (!io.stderr.includes('has ended')) await new Promise((resolve) => setTimeout(resolve, 20))
  })
  expect(io.stderr).toContain('a device started: tidy up\nwhat the device started has ended: completed\n')
  expect(io.stderr).not.toContain('a device started: do it')
})
