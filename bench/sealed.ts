import { makeSealer, type Sealer } from '../src/client/crypto/sealer.ts'
import { generateKey } from '../src/client/crypto/session-key.ts'
import type { ContinueRequest } from '../src/protocol/execution/continue.ts'
import type { PlainMap, SealedMap } from '../src/protocol/execution/sealed.ts'
import { TurnResponse } from '../src/protocol/execution/turn.ts'
import { type Bench, figure, ms, times } from './lib/bench.ts'
import { type BenchRouter, makeRouter, must, type Timing } from './lib/router.ts'
import { withRuntime } from './lib/runtime.ts'
import { median } from './lib/statistics.ts'
import { startUpstream } from './lib/upstream.ts'

const PROMPTS = 20
const WARM_UP = 3
const ROUNDS = 5
/** A hosted model's silence before it speaks is at least so long. */
const THINKING_MS = 50

export const sealed: Bench = {
  name: 'sealed',
  what: `a prompt in an encrypted session against one in a clear session, ${PROMPTS} prompts each`,
  run: async (print) => {
    const upstream = await startUpstream()
    try {
      await withRuntime({ OLLAMA_BASE_URL: upstream.url, UPSTREAM: upstream.url }, async ({ url }) => {
        const router = await makeRouter(url)
        await compare(router, WARM_UP, 1)
        for (const firstTokenMs of [THINKING_MS, 0]) {
          upstream.speech = { firstTokenMs, tokens: 5, gapMs: 0 }
          const { clear, sealed: locked } = await compare(router, PROMPTS, ROUNDS)
          const label = `to the end of the answer, upstream silent for ${firstTokenMs} ms`
          print(figure(label, times(locked.answerMs / clear)))
          print(figure('… and to where the next prompt may come', times(locked.idleMs / clear)))
          print(`    sealed ${ms(locked.answerMs)} and ${ms(locked.idleMs)}, clear ${ms(clear)} (medians)`)
        }
      })
    } finally {
      await upstream.close()
    }
  },
}

type Sealed = { answerMs: number; idleMs: number }

/** Medians over all prompts of all rounds; the sessions take turns, so that both meet the same machine. */
async function compare(
  router: BenchRouter,
  prompts: number,
  rounds: number,
): Promise<{ clear: number; sealed: Sealed }> {
  const clear: number[] = []
  const locked: Sealed[] = []
  for (let round = 0; round < rounds; round++) {
    const clearSession = await router.newSession()
    const { id, sealer } = await newSealedSession(router)
    for (let prompt = 0; prompt < prompts; prompt++) {
      clear.push((await router.execute(clearSession)).totalMs)
      locked.push(await sealedPrompt(router, id, sealer))
    }
  }
  return {
    clear: median(clear),
    sealed: {
      answerMs: median(locked.map(({ answerMs }) => answerMs)),
      idleMs: median(locked.map(({ idleMs }) => idleMs)),
    },
  }
}

async function newSealedSession(router: BenchRouter): Promise<{ id: string; sealer: Sealer }> {
  const key = await generateKey(2)
  const { id } = must(await router.client.sessions.create({ title: 'bench', key_id: key.keyId }))
  return { id, sealer: makeSealer(key, id) }
}

/** One prompt as a client carries it: opened history, the answer, its ciphertext; the crypto of the client included. */
async function sealedPrompt(router: BenchRouter, session: string, sealer: Sealer): Promise<Sealed> {
  const startedAt = performance.now()
  let turn = turnOf(await router.execute(session))
  if (turn.status === 'awaiting_decrypt')
    turn = turnOf(await router.continueRun(session, decrypted(sealer, turn.data)))
  const answerMs = performance.now() - startedAt
  if (turn.status !== 'completed') throw new Error(`the turn came to ${turn.status}`)
  const encrypted = sealAll(sealer, turn.data.to_encrypt ?? {})
  const idle = turnOf(await router.continueRun(session, { type: 'sealed', data: { encrypted } }))
  if (idle.status !== 'idle') throw new Error(`the run came to ${idle.status}`)
  return { answerMs, idleMs: performance.now() - startedAt }
}

const sealAll = (sealer: Sealer, texts: PlainMap): SealedMap =>
  Object.fromEntries(Object.entries(texts).map(([ref, text]) => [ref, sealer.seal(ref, text)]))

function decrypted(
  sealer: Sealer,
  { to_decrypt, to_encrypt = {} }: { to_decrypt: SealedMap; to_encrypt?: PlainMap | undefined },
): ContinueRequest {
  const opened = Object.entries(to_decrypt).map(([ref, payload]) => [ref, must(sealer.open(ref, payload))])
  return {
    type: 'decrypted',
    data: {
      plaintext: { ...Object.fromEntries(opened), ...to_encrypt },
      encrypted: sealAll(sealer, to_encrypt),
    },
  }
}

/** What the `turn_end` of a stream carries. */
function turnOf({ text }: Timing): TurnResponse {
  const line = text.split('\n').find((one) => one.startsWith('data: ') && one.includes('"turn_end"'))
  if (line === undefined) throw new Error(`no end in ${text}`)
  return TurnResponse.parse(JSON.parse(line.slice('data: '.length)))
}
