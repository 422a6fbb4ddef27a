import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ScriptedModel, startScriptedModel } from '../support/node/model-scripts.ts'
import { seededRandom } from '../support/node/seeded.ts'
import { type StatefulFolder, statefulFolder } from '../support/node/stateful-folder.ts'
import type { AttachedDevice, Outcome, SessionRef } from '../support/remote-device/attached/device.ts'
import type { Item } from '../support/remote-device/attached/items.ts'
import { servedWorld } from '../support/remote-device/attached/served-world.ts'
import { Stage } from '../support/remote-device/attached/stage.ts'
import { serveInProcess } from '../support/remote-device/served-router.ts'

/** All of them at the end of a step, some in the daily run (D54). */
const KILLS = process.env.SWITCHYARD_FULL === '1' ? 20 : 3
/** What streams when the router dies: four seconds of it. */
const PIECES = Array.from({ length: 300 }, (_, at) => `word-${at} äé€🚦 `)
const GAP_MS = 13
/** Text is stored a second after it was said at the latest (D33). */
const STORED_AFTER_MS = 1_500
const KILL_WITHIN_MS = 1_500

let folder: StatefulFolder
let model: ScriptedModel
let router: Awaited<ReturnType<typeof serveInProcess>>

beforeAll(async () => {
  folder = statefulFolder()
  model = await startScriptedModel()
  router = await serveInProcess(folder.path, { OLLAMA_BASE_URL: model.url })
})

afterAll(async () => {
  await router?.close()
  await model?.close()
  folder?.remove()
})

test('[U01, U02, D33] three devices that follow a stream come back after a kill at any moment and agree on one session', {
  timeout: 300_000,
}, async () => {
  const seed = Number(process.env.SWITCHYARD_SEED ?? Date.now() % 2 ** 32)
  console.log(`seed ${seed}: repeat with SWITCHYARD_SEED=${seed}`)
  const random = seededRandom(seed)
  const world = servedWorld(
    () => router,
    () => model,
    { mayBeCut: true },
  )
  const stage = await Stage.open(world)
  const { device: first, session } = await stage.attached()
  const second = await stage.follower(session)
  const away = await stage.device('thread')
  await away.attach(session)
  const witness = await stage.device()
  for (const device of [first, second, away, witness]) device.allowHoles()
  let gaps = 0
  for (let kill = 1; kill <= KILLS; kill++) {
    const word = `<kill-${kill}>`
    model.script(word, { pieces: PIECES, gapMs: GAP_MS }, { pieces: [`Said again ${kill}.`] })
    const submit = { type: 'submit_prompt', prompt: `${word} speak` }
    const requestId = `submit-${kill}`
    const applied = await first.on(session, submit, requestId)
    expect(applied.receipt).toBe('applied')
    await Promise.all([first, second, away].map((device) => hears(device, session)))
    // What this one has seen is stored when the router dies.
    away.cut()
    await pause(STORED_AFTER_MS + random() * KILL_WITHIN_MS)

    await router.process.kill9()
    await router.process.restart()

    // Some first look after a moment: by then the turn is served again.
    if (random() < 0.5) await pause(random() * 300)
    expect((await away.comeBack(session)).result.type).toBe('resumed')
    for (const device of [first, second]) {
      const outcome = await device.comeBack(session)
      if (outcome.result.type === 'attached') gaps++
      expect(isResumedOrGap(outcome), JSON.stringify(outcome.result).slice(0, 300)).toBe(true)
    }
    // Its answer may have been lost with the router: it is the same one.
    expect(await first.on(session, submit, requestId)).toEqual(applied)
    for (const device of [first, second, away])
      await device.until(session, ({ turn, items }) => turn === null && endsWith(items, kill), 'the end')
    await witness.connect()
    const { known, fresh } = await stage.agreement(session, [first, second, away], witness)
    expect(known).toEqual(fresh)
    for (const device of [first, second, away]) {
      const prompts = device
        .view(session)
        .items.filter((item) => item.kind === 'user' && item.text.head.includes(word))
      expect(prompts).toHaveLength(1)
    }
  }
  console.log(`${KILLS} kills, ${gaps} of ${2 * KILLS} cursors in the last second were lost`)
  stage.close()
  expect(await world.takeBreaches()).toEqual([])
})

const hears = (device: AttachedDevice, session: SessionRef) =>
  device.until(session, ({ turn }) => (turn?.live.bytes ?? 0) > 0, 'the first words')

/** A device that followed to the last may have seen what was not stored yet, and that costs it one snapshot. */
const isResumedOrGap = ({ result }: Outcome): boolean =>
  result.type === 'resumed' || (result.type === 'attached' && result.resync === 'sequence_gap')

function endsWith(items: readonly Item[], kill: number): boolean {
  const last = items.at(-1)
  return last?.kind === 'assistant' && last.text.head.endsWith(`Said again ${kill}.`)
}
