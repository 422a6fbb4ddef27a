import { seededRandom } from '../../node/seeded.ts'
import type { AttachedDevice, SessionRef } from './device.ts'
import { READ, Stage } from './stage.ts'
import type { ModelLine, World } from './world.ts'

/** Rounds of text and a call in one run: some sixty events. */
const ROUNDS = 12
/** An account serves so many runs. */
const RUNS_PER_ACCOUNT = 20

/**
 * Runs that stream while a device is cut off again and again, each time a few events after it came back. Every time it
 * is told what it missed and nothing else, without a resync; at the end it knows what everyone knows. The number of cuts
 * is a minimum.
 */
export async function playCuts({
  world,
  cuts,
  seed,
}: {
  world: World
  cuts: number
  seed: number
}): Promise<void> {
  const random = seededRandom(seed)
  let done = 0
  while (done < cuts) {
    const stage = await Stage.open(world)
    const flapping = await stage.device()
    const steady = await stage.device()
    for (let run = 0; run < RUNS_PER_ACCOUNT && done < cuts; run++) {
      try {
        done += await cutsInOneRun(stage, flapping, steady, random)
      } catch (error) {
        throw new Error(
          `seed ${seed}, after ${done} cuts: ${error instanceof Error ? error.stack : String(error)}`,
        )
      }
    }
    stage.close()
  }
}

async function cutsInOneRun(
  stage: Stage,
  flapping: AttachedDevice,
  steady: AttachedDevice,
  random: () => number,
): Promise<number> {
  const id = await stage.newSession()
  await stage.run(id, `${stage.script({ pieces: ['Begin.'] })} first`)
  const session = await stage.refOf(steady, id)
  await steady.attach(session)
  await flapping.attach(session)
  const line = (round: number): ModelLine => ({
    pieces: [`Round ${round}: `, 'äé€🚦 ', 'look. '],
    ...(round < ROUNDS ? { calls: [READ] } : {}),
  })
  const word = stage.script(...Array.from({ length: ROUNDS + 1 }, (_, round) => line(round)))
  const laptop = driveToEnd(stage, session, `${word} many rounds`)
  let over = false
  const ended = laptop.finally(() => {
    over = true
  })
  let cuts = 0
  while (!over) {
    const cut = flapping.cutAfter(1 + Math.floor(random() * 3))
    await Promise.race([cut, ended])
    if (flapping.connected) break
    cuts++
    const { result } = await flapping.comeBack(session)
    if (result.type !== 'resumed' && !isReplaced(result, flapping, session))
      throw new Error(`coming back was answered ${JSON.stringify(result).slice(0, 300)}`)
  }
  await ended
  flapping.keep()
  if (!flapping.connected) await flapping.comeBack(session)
  const isOver = ({ turn, items }: { turn: object | null; items: readonly object[] }) =>
    turn === null && items.length === 3 + 2 * ROUNDS + 1
  await flapping.until(session, isOver, 'the end')
  await steady.until(session, isOver, 'the end')
  const [a, b] = [flapping.view(session), steady.view(session)].map((view) => JSON.stringify(view.items))
  if (a !== b) throw new Error(`cut off again and again it knows\n${a}\nand else\n${b}`)
  await flapping.detach(session)
  await steady.detach(session)
  return cuts
}

/** At the very end of a run its state is replaced by a snapshot that has no number of its own. */
const isReplaced = (result: Record<string, unknown>, device: AttachedDevice, session: SessionRef): boolean =>
  result.type === 'attached' && result.resync === 'sequence_gap' && device.view(session).replacedAtCursor

async function driveToEnd(stage: Stage, session: SessionRef, prompt: string): Promise<void> {
  let envelope = await stage.run(session.id, prompt)
  while (envelope.status === 'awaiting_tool') {
    const { status, body } = await stage.results(session.id, envelope)
    if (status !== 200) throw new Error(`results were answered ${status}: ${JSON.stringify(body)}`)
    envelope = body
  }
}
