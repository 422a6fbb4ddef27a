import type { PlainMap } from '../../../src/protocol/execution/sealed.ts'
import type { TurnResponse } from '../../../src/protocol/execution/turn.ts'
import { ringOnce } from './crash-alarm.ts'
import { type Continuation, CrashClient, type Manner, type Outcome, type Sent } from './crash-client.ts'
import type { CrashPoints } from './crash-points.ts'
import type { Pauses, Prompt, Script } from './crash-scripts.ts'
import type { CrashSealing } from './crash-sealing.ts'
import { until } from './hold.ts'
import type { Client, Headers } from './router.ts'

/** A run of more rounds than this has lost its way. */
const MAX_ROUNDS = 12

export type Setting = { points: CrashPoints; pauses: Pauses; manner: Manner; onLost: () => Promise<void> }

/** Plays a script to its end, whatever dies meanwhile. */
export async function playScript(
  script: Script,
  client: Client,
  { points, pauses, manner, onLost }: Setting,
  session: { id: string; sealing: CrashSealing | null },
): Promise<CrashClient> {
  const player = new CrashClient(client, points, session, manner)
  player.onLost = onLost
  for (const prompt of script.prompts) await carryOut(prompt, player, pauses)
  return player
}

async function carryOut(prompt: Prompt, player: CrashClient, pauses: Pauses): Promise<void> {
  const { headers = {}, interrupt } = prompt
  const execute: Sent = { route: 'execute', body: prompt.body, headers }
  let outcome: Outcome
  if (interrupt?.when === 'speaking' && interrupt.with === 'alarm')
    outcome = await ringMeanwhile(execute, player, pauses)
  else if (interrupt?.when === 'speaking')
    outcome = await cutIn(execute, interruption(prompt, headers, player), player, pauses)
  else outcome = await player.request(execute)
  let interrupted = false
  for (let round = 1; round <= MAX_ROUNDS; round++) {
    if (outcome === 'overtaken') throw new Error('a request that nobody overtook was overtaken')
    if (isOver(outcome, player)) return
    const pausing: boolean =
      interrupt?.when === 'pausing' && outcome.status === 'awaiting_tool' && !interrupted
    interrupted ||= pausing
    const next: Sent = pausing
      ? interruption(prompt, headers, player, outcome)
      : answerTo(outcome, prompt, player)
    outcome = await player.request({ ...next, headers })
  }
  throw new Error('the run does not end')
}

const isOver = (turn: TurnResponse, { sealing }: CrashClient): boolean =>
  turn.status === 'idle' || (turn.status === 'completed' && !sealing?.asksToSeal(turn))

/** What a client of ours sends to a pause. */
function answerTo(turn: TurnResponse, prompt: Prompt, player: CrashClient): Sent {
  const { sealing } = player
  const send = (body: Continuation): Sent => ({ route: 'continue', body })
  const sealed = (own: PlainMap = {}) => (sealing ? { encrypted: sealing.sealFor(turn, own) } : {})
  switch (turn.status) {
    case 'awaiting_tool': {
      const results = player.results(turn.data.tool_requests, prompt.rejectCalls === true)
      const texts = Object.fromEntries(
        results.map(({ call_id: id, content }) => [`tool_call:${id}`, content]),
      )
      return send({ type: 'tool_results', data: { results, ...sealed(texts) } })
    }
    case 'awaiting_approval': {
      const { approval } = turn.data
      const decision = prompt.decide?.(approval) ?? 'approved'
      const decisions = [{ approval_id: approval.approval_id, decision, reason: 'the script says so' }]
      return send({ type: 'approval_decisions', data: { decisions, ...sealed() } })
    }
    case 'awaiting_decrypt':
      if (sealing)
        return send({ type: 'decrypted', data: { plaintext: sealing.plaintextFor(turn), ...sealed() } })
      break
    case 'completed':
    case 'awaiting_encrypt':
      if (sealing) return send({ type: 'sealed', data: { encrypted: sealing.sealFor(turn) } })
      break
    default:
  }
  throw new Error(`the script does not know what to do: ${JSON.stringify(turn)}`)
}

/** Starts a turn and says something while its model speaks. */
async function cutIn(execute: Sent, words: Sent, player: CrashClient, pauses: Pauses): Promise<Outcome> {
  let moot = false
  const first = await speaking(execute, player, pauses, () => moot)
  moot = true
  const outcome = await player.request(words)
  await first.end()
  return outcome
}

/** Starts a turn, and the heartbeat of its lease is due before its model has come to the end. */
async function ringMeanwhile(execute: Sent, player: CrashClient, pauses: Pauses): Promise<Outcome> {
  const first = await speaking(execute, player, pauses, () => false)
  await ringOnce(player.sessionId)
  pauses.release()
  return first.end()
}

/** Starts a turn whose model stops in the middle of its answer. */
async function speaking(execute: Sent, player: CrashClient, pauses: Pauses, isMoot: () => boolean) {
  pauses.forget()
  let settled: { outcome: Outcome } | { failure: unknown } | null = null
  const done = player.request(execute, isMoot).then(
    (outcome) => {
      settled = { outcome }
    },
    (failure: unknown) => {
      settled = { failure: failure ?? new Error('nothing') }
    },
  )
  await until(() => pauses.isHeld || settled !== null)
  if (settled !== null) throw new Error(`nobody spoke: ${JSON.stringify(settled)}`)
  return {
    end: async (): Promise<Outcome> => {
      await done
      const end = settled as { outcome: Outcome } | { failure: unknown } | null
      if (end === null) throw new Error('unreachable: it is settled')
      if ('failure' in end) throw end.failure
      return end.outcome
    },
  }
}

/** Words into a run, with the ciphertext that the pause has asked for. */
function interruption(
  { interrupt }: Prompt,
  headers: Headers,
  { sealing }: CrashClient,
  pause?: TurnResponse,
): Sent {
  if (interrupt === undefined || interrupt.with === 'alarm') throw new Error('nobody interrupts this prompt')
  const encrypted = sealing && pause ? { encrypted: sealing.sealFor(pause) } : {}
  const body: Continuation =
    interrupt.with === 'stop'
      ? { type: 'break', data: encrypted }
      : { type: 'inject', data: { messages: [{ text: interrupt.with.say }], ...encrypted } }
  return { route: 'continue', body, headers }
}
