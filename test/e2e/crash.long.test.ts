import { expect, test } from 'vitest'
import { makeSealer, type Sealer } from '../../src/client/crypto/sealer.ts'
import { generateKey } from '../../src/client/crypto/session-key.ts'
import { driveRun } from '../../src/client/drive.ts'
import type { ClientFailure } from '../../src/client/failure.ts'
import type { ExecuteRequest } from '../../src/protocol/execution/execute.ts'
import type { TurnResponse } from '../../src/protocol/execution/turn.ts'
import type { Result } from '../../src/protocol/result.ts'
import { startScriptedModel } from '../support/node/model-scripts.ts'
import { makeAccount, must, type RouterAccount } from '../support/node/router-account.ts'
import { RouterProcess } from '../support/node/router-process.ts'
import { executeRequest, smallPolicy } from '../support/node/run-request.ts'
import { type ChatRequest, lastOf } from '../support/node/scripted-ollama.ts'
import { seededRandom } from '../support/node/seeded.ts'
import { statefulFolder } from '../support/node/stateful-folder.ts'
import { readStored } from '../support/node/stored-rows.ts'

const KILLS = 10
const SESSIONS = 6
/** Of encrypted sessions so many, driven by our own client as it is. */
const SEALED_SESSIONS = 2
/** Tool rounds of each prompt, so that a kill finds runs in every phase. */
const ROUNDS = 2
/** A kill comes at a random moment within this after the router is up: about one and a half prompts. */
const KILL_WITHIN_MS = 900
/** The model thinks up to so long, so that most kills fall into a turn. */
const THINKS_AT_MOST_MS = 150

const policy = smallPolicy({
  routing: { default: { model: 'ollama/scripted' } },
  tools: { permissions: { read_file: 'allow' } },
})
const task = (prompt: string): ExecuteRequest => ({ ...executeRequest(prompt), policy })

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

/** Results of tools since the newest user text: how far the prompt has come. */
function roundsDone({ messages }: ChatRequest): number {
  const prompt = messages.findLastIndex(({ role }) => role === 'user')
  return messages.slice(prompt).filter(({ role }) => role === 'tool').length
}

test('[D20, U06, U14, U24] any number of kills at any moment: every prompt is carried out once, whole and in order', {
  timeout: 300_000,
}, async () => {
  const seed = Number(process.env.SWITCHYARD_SEED ?? Date.now() % 2 ** 32)
  console.log(`seed ${seed}: repeat with SWITCHYARD_SEED=${seed}`)
  const random = seededRandom(seed)
  const folder = statefulFolder()
  const model = await startScriptedModel()
  model.script('<walk', (request) => {
    const prompt = lastOf(request, 'user')
    const done = roundsDone(request)
    const hold = () => pause(random() * THINKS_AT_MOST_MS)
    if (done === ROUNDS) return { hold, after: [`${prompt} is `, 'done'] }
    return {
      hold,
      after: [`${prompt} step ${done + 1}`],
      calls: [{ name: 'read_file', arguments: { path: `${prompt} step ${done + 1}` } }],
    }
  })
  const router = await RouterProcess.start({
    persistTo: folder.path,
    vars: { OLLAMA_BASE_URL: model.url, RATE_LIMIT_BURST: '0' },
  })
  try {
    const account = await makeAccount(router.url)
    const sessions = await Promise.all(Array.from({ length: SESSIONS }, () => account.newSession()))
    let killing = true
    let isUp = Promise.resolve()
    const walk = async (session: string, number: number) => {
      let prompts = 0
      while (killing) {
        prompts++
        await carryOut(account, session, `<walk ${number}.${prompts}>`, () => isUp)
      }
      return { number, session, prompts }
    }
    const sealedSessions = await Promise.all(
      Array.from({ length: SEALED_SESSIONS }, (_, index) => newSealedSession(account, index === 0 ? 1 : 2)),
    )
    const sealedWalk = async ({ session, sealer }: SealedSession, number: number) => {
      let prompts = 0
      while (killing) {
        prompts++
        await driveSealed(account, { session, sealer }, `<walk sealed-${number}.${prompts}>`)
      }
      return { number, session, sealer, prompts }
    }
    const walks = Promise.all([Promise.all(sessions.map(walk)), Promise.all(sealedSessions.map(sealedWalk))])
    // One that failed is told of at the end; the kills need not go on.
    walks.catch(() => {
      killing = false
    })
    for (let kill = 1; kill <= KILLS && killing; kill++) {
      await pause(random() * KILL_WITHIN_MS)
      isUp = (async () => {
        await router.kill9()
        await router.restart()
      })()
      await isUp
    }
    killing = false
    const [walked, walkedSealed] = await walks
    for (const { session, prompts } of walked) {
      // Every prompt took three calls that told what they used; calls that were cut off are unknown, not zero.
      const tokens = 120 * (ROUNDS + 1) * prompts
      expect(must(await account.client.usage(session)).total).toMatchObject({ total_tokens: tokens })
    }
    const opened = await Promise.all(walkedSealed.map((walk) => openedHistory(account, walk)))
    await router.stop()
    const stored = readStored(folder.path)
    const statuses = [...stored.values()].flatMap(({ object }) => object.turns.map(({ status }) => status))
    expect(statuses).toContain('interrupted')
    const rounds = Array.from({ length: ROUNDS }, (_, index) => `step ${index + 1}`)
    const conversation = (steps: string[]) =>
      steps.flatMap((prompt) => [
        ['user', prompt],
        ...rounds.map((round) => ['assistant', `${prompt} ${round}`]),
        ['assistant', `${prompt} is done`],
      ])
    for (const { number, session, prompts } of walked) {
      const steps = Array.from({ length: prompts }, (_, index) => `<walk ${number}.${index + 1}>`)
      const { object, copy } = stored.get(session) ?? {}
      expect(object?.messages.map(({ role, content }) => [role, content])).toEqual(conversation(steps))
      expect(object?.calls.map(({ status, result }) => [status, result])).toEqual(
        steps.flatMap((prompt) => rounds.map((round) => ['completed', `content of ${prompt} ${round}`])),
      )
      expect(copy?.messages).toEqual(object?.messages)
      expect(copy?.turns).toEqual(object?.turns.map(({ turn: _, ...row }) => row))
    }
    for (const [index, { number, session, prompts }] of walkedSealed.entries()) {
      const steps = Array.from({ length: prompts }, (_, step) => `<walk sealed-${number}.${step + 1}>`)
      expect(opened[index]).toEqual(conversation(steps))
      const { object, copy } = stored.get(session) ?? {}
      expect(object?.messages.every(({ content }) => content === '')).toBe(true)
      expect(copy?.messages.map(({ id }) => id)).toEqual(object?.messages.map(({ id }) => id))
      expect(JSON.stringify([object, copy])).not.toContain('walk')
    }
    const count = [...walked, ...walkedSealed].reduce((sum, { prompts }) => sum + prompts, 0)
    console.log(`${count} prompts under ${KILLS} kills`)
  } finally {
    await router.stop()
    await model.close()
    folder.remove()
  }
})

/** Drives one prompt to its end as a client that never gives up and names each of its requests. */
async function carryOut(
  { client }: RouterAccount,
  session: string,
  prompt: string,
  isUp: () => Promise<void>,
): Promise<void> {
  const untilAnswered = async (send: () => Promise<Result<TurnResponse, ClientFailure>>) => {
    for (;;) {
      const answer = await send()
      if (answer.ok) return answer.value
      if (answer.error.kind !== 'network' && answer.error.kind !== 'not_json')
        throw new Error(`${prompt}: ${JSON.stringify(answer.error)}`)
      await isUp()
    }
  }
  let outcome = await untilAnswered(() =>
    client.execute(session, task(prompt), { idempotencyKey: `execute-${prompt.replace(' ', '-')}` }),
  )
  while (outcome.status === 'awaiting_tool') {
    const { tool_requests: calls } = outcome.data
    const results = calls.map(({ call_id, arguments: args }) => ({
      call_id,
      content: `content of ${String(args?.path)}`,
      is_error: false,
    }))
    const idempotencyKey = `results-${calls.map(({ call_id }) => call_id).join('-')}`
    outcome = await untilAnswered(() =>
      client.continueRun(session, { type: 'tool_results', data: { results } }, { idempotencyKey }),
    )
  }
  if (outcome.status !== 'completed') throw new Error(`${prompt}: ended ${JSON.stringify(outcome)}`)
}

type SealedSession = { session: string; sealer: Sealer }

async function newSealedSession({ client }: RouterAccount, version: 1 | 2): Promise<SealedSession> {
  const key = await generateKey(version)
  const { id } = must(await client.sessions.create({ title: 'sealed', key_id: key.keyId }))
  return { session: id, sealer: makeSealer(key, id) }
}

/** Drives one prompt to its end as our own command does. */
async function driveSealed(
  { client }: RouterAccount,
  { session, sealer }: SealedSession,
  prompt: string,
): Promise<void> {
  const run = driveRun({
    client,
    sessionId: session,
    request: task(prompt),
    sealer,
    tools: {
      run: async ({ arguments: args }) => ({ content: `content of ${String(args?.path)}`, isError: false }),
    },
    approver: {
      approveTool: async () => ({ decision: 'approved' }),
      decideGate: async () => ({ decision: 'approved' }),
    },
  })
  for await (const event of run)
    if (event.type === 'run_ended' && (event.outcome.status !== 'completed' || event.outcome.unkept))
      throw new Error(`${prompt}: ended ${JSON.stringify(event.outcome)}`)
}

/** What a client with the key reads. */
async function openedHistory({ client }: RouterAccount, { session, sealer }: SealedSession) {
  const { messages } = must(await client.sessions.get(session))
  return messages.map(({ role, content, id }) => [
    role,
    'encrypted' in content ? must(sealer.open(`message:${id}`, content.encrypted)) : 'in clear',
  ])
}
