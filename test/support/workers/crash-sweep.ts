import { expect, vi } from 'vitest'
import { CreateSessionResponse, ListSessionsResponse } from '../../../src/protocol/execution/session.ts'
import { makeExecute } from './bodies.ts'
import { stopClock } from './clock.ts'
import { ringUntilSilent } from './crash-alarm.ts'
import {
  expectKept,
  expectNoTimers,
  expectNothingClear,
  expectSound,
  type Snapshot,
  snapshotOf,
} from './crash-checks.ts'
import type { Manner } from './crash-client.ts'
import { playScript } from './crash-play.ts'
import type { CrashPoints } from './crash-points.ts'
import { Pauses, play, type Script, SECRETS } from './crash-scripts.ts'
import { CrashSealing } from './crash-sealing.ts'
import { until } from './hold.ts'
import { quietGateway } from './live-list.ts'
import { type Client, makeClient, parsed, turnAs } from './router.ts'
import type { ScriptedModels } from './scripted-models.ts'
import { newSealedSession } from './sealed-client.ts'
import { watchTimers } from './timers.ts'

export type Stage = { points: CrashPoints; models: ScriptedModels; client: Client; sealed?: 1 | 2 }

/** After so many a sweep has told enough. */
const MAX_FAILURES = 3

/** Which of the places a sweep dies at: every `stride`-th, from `offset` on. */
export type Sample = { stride: number; offset: number }

/**
 * Plays a script once undisturbed, then once for each place of the sample, with a death there. With `twice`, another
 * death follows at a place that moves along. Returns how many deaths there were.
 */
export async function sweep(
  script: Script,
  manner: Manner,
  stage: Stage,
  { stride, offset, twice = false }: Sample & { twice?: boolean },
): Promise<number> {
  const undisturbed = await perform(script, manner, stage, [])
  const { passed } = undisturbed
  if (passed < 20) throw new Error(`only ${passed} places were passed: the watch sees nothing`)
  let deaths = 0
  const failed: string[] = []
  for (let place = 1 + (offset % stride); place <= passed; place += stride) {
    // Another death somewhere in the first half of what is done again.
    const again = twice ? [1 + ((place * 7) % Math.ceil(passed / 2))] : []
    try {
      const played = await perform(script, manner, stage, [place, ...again], undisturbed)
      // How often an object stores what a model says depends on the time that passes: a play may end before its last places.
      const isOver = place > played.passed && played.passed > 0.9 * passed
      if (played.deaths.length === 0 && !isOver) throw new Error('nothing has died')
      deaths += played.deaths.length
    } catch (error) {
      const where = stage.points.deaths.map((death) => `${death.point}: ${death.place}`).join(' and ')
      failed.push(`dead at ${where} of ${passed}: ${explain(error)}`)
      if (failed.length === MAX_FAILURES) break
    }
  }
  if (failed.length > 0) throw new Error(failed.join('\n'))
  return deaths
}

/** A failed comparison tells what it compared: from a list of several the reader has nothing else. */
function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (!('actual' in error && 'expected' in error)) return error.message
  return `${error.message}\n  was      ${JSON.stringify(error.actual)}\n  expected ${JSON.stringify(error.expected)}`
}

/** Prompts whose sender speaks again before they are answered. */
const brokenOff = ({ prompts }: Script): string[] =>
  prompts.flatMap(({ body, interrupt }) =>
    interrupt?.when === 'speaking' && interrupt.with !== 'alarm' ? [body.input.text] : [],
  )

type Performed = { passed: number; deaths: string[]; snapshot: Snapshot; runs: number }

async function perform(
  script: Script,
  manner: Manner,
  { points, models, client: usual, sealed }: Stage,
  places: readonly number[],
  undisturbed?: Performed,
): Promise<Performed> {
  points.reset()
  models.chats = []
  const pauses = new Pauses()
  models.script((chat) => play(chat, pauses))
  const client = script.freshAccount ? await makeClient() : usual
  const session = sealed === undefined ? null : await newSealedSession(client, sealed)
  const sealing = session === null ? null : new CrashSealing(session)
  const sessionId = session?.id ?? (await client.newSession())
  // One play after the other, each at the same time: the clock must not run away from the tokens.
  vi.useRealTimers()
  stopClock()
  quietGateway()
  const timers = watchTimers()
  try {
    const isSinceDeath = new Set<object>()
    points.onDeath = () => {
      pauses.forget()
      for (const timer of timers.pending()) isSinceDeath.add(timer)
    }
    const atDeath: Snapshot[] = []
    let looked = false
    points.arm(places)
    const onLost = async () => {
      // What is written after a death belongs to the play: only where there is no other one it may be looked at.
      if (places.length !== 1 || looked) return
      looked = true
      await points.aside(async () => {
        if (sealing) await expectNothingClear(sessionId, SECRETS)
        else atDeath.push(await snapshotOf(sessionId, sealing))
      })
    }
    const player = await playScript(
      script,
      client,
      { points, pauses, manner, onLost },
      {
        id: sessionId,
        sealing,
      },
    )
    const { passed } = points
    await ringUntilSilent(sessionId)
    points.disarm()
    const deaths = points.deaths.map(({ place }) => place)
    const snapshot = await snapshotOf(sessionId, sealing)
    const performed = { passed, deaths, snapshot, runs: player.ran.size }
    if (points.afterlife.length > 0) throw new Error(`dead objects went on: ${points.afterlife.join()}`)
    const played = { sessionId, player, chats: models.chats.length, deaths: deaths.length }
    await expectSound(client, played, snapshot, undisturbed ?? performed, brokenOff(script))
    for (const before of atDeath) expectKept(before, snapshot)
    if (sealing) await expectNothingClear(sessionId, SECRETS)
    await expectNoTimers(() => timers.pending().filter((timer) => !isSinceDeath.has(timer)))
    return performed
  } finally {
    points.disarm()
    pauses.release()
    vi.mocked(setTimeout).mockRestore()
    vi.mocked(clearTimeout).mockRestore()
  }
}

/** Makes a session under a key until it is there, with a death at one place; returns how many places were passed. */
export async function createUnderDeath(
  { points, models }: Pick<Stage, 'points' | 'models'>,
  places: readonly number[],
): Promise<number> {
  points.reset()
  models.script({ text: ['Fine.'] })
  const client = await makeClient()
  vi.useRealTimers()
  stopClock()
  points.arm(places)
  const create = () =>
    client.send('POST', '/api/v1/sessions', { title: 'made once' }, { 'Idempotency-Key': 'create' })
  let made: string | null = null
  for (let sends = 0; made === null; sends++) {
    if (sends > 1 + points.deaths.length) throw new Error(`sent ${sends} times`)
    const answer = await answerUnlessDead(create, points)
    if (answer?.status === 201 && !(await points.outside('the answer')))
      made = (await parsed(answer, CreateSessionResponse, 201)).session.id
    else if (points.deaths.length === 0) throw new Error(`refused: ${await answer?.text()}`)
  }
  const { passed } = points
  points.disarm()
  const { sessions } = await parsed(await client.send('GET', '/api/v1/sessions'), ListSessionsResponse)
  expect(sessions.map(({ id }) => id)).toEqual([made])
  await turnAs(await client.execute(made, makeExecute('hello')), 'completed')
  return passed
}

/** Null: whoever served the request has died, and it may hang for good. */
async function answerUnlessDead(
  send: () => Promise<Response>,
  points: CrashPoints,
): Promise<Response | null> {
  const before = points.deaths.length
  let answer: Response | null = null
  let failed = false
  send().then(
    (response) => {
      answer = response
    },
    () => {
      failed = true
    },
  )
  await until(() => answer !== null || failed || points.deaths.length > before)
  return answer
}
