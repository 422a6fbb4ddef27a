import { messageRef, refKind } from '../protocol/execution/content-refs.ts'
import type { ContinueRequest } from '../protocol/execution/continue.ts'
import type { ContentRef } from '../protocol/execution/ids.ts'
import type { PlainMap } from '../protocol/execution/sealed.ts'
import { err, ok, type Result } from '../protocol/result.ts'
import type { SwitchyardClient } from './client.ts'
import type { ClientFailure } from './failure.ts'
import type { Sealing } from './sealing.ts'
import type { StreamEvent, TurnEnd } from './turn-stream.ts'

/** A router that loses a turn asks for its ciphertext again; one that never takes it is broken. */
const MAX_RESENDS = 3

type Place = {
  client: Pick<SwitchyardClient, 'continueStream' | 'currentRun' | 'sessions'>
  sessionId: string
  sealing: Sealing
  signal: AbortSignal
}

/**
 * Hands in the ciphertext that a run still waits for, with which it is over (EC 17.3).
 * @returns why the router does not keep these texts; undefined when it does
 */
export async function handIn(place: Place, texts: PlainMap): Promise<ClientFailure | undefined> {
  const { client, sessionId, sealing, signal } = place
  let asked = texts
  for (let sent = 0; sent <= MAX_RESENDS; sent++) {
    const message: ContinueRequest = { type: 'sealed', data: { encrypted: sealing.seal(asked) } }
    const end = await endOf(client.continueStream(sessionId, message, { signal, sealed: true }))
    if (end.ok && end.value.status === 'idle') return undefined
    if (end.ok && isOpen(end.value)) {
      const still = sealing.textsOf(end.value)
      if (still.ok) asked = { ...asked, ...still.value }
      continue
    }
    // Another client with the key may have been faster, and have gone on.
    if (await isKept(place, texts)) return undefined
    return end.ok ? { kind: 'network', message: 'another request went on before it was kept' } : end.error
  }
  return { kind: 'network', message: 'the router keeps asking for ciphertext that it was given' }
}

/**
 * Seals what an earlier turn left open, if the router still has its texts: one that failed, or whose client went away.
 * Nothing depends on it (EC 17.4), so what cannot be had is let go.
 * @returns what the router has lost and this client has never seen (D20)
 */
export async function sealLeftovers(place: Place): Promise<ContentRef[]> {
  const { client, sessionId, sealing, signal } = place
  const run = await client.currentRun(sessionId, { signal })
  if (!run.ok || run.value.status === 'running') return []
  const end: TurnEnd = { type: 'turn_end', ...run.value }
  const texts = sealing.textsOf(end)
  if (!texts.ok) return texts.error
  if (isOpen(end) && Object.keys(texts.value).length > 0) await handIn(place, texts.value)
  return []
}

/** Whether the run waits for nothing but ciphertext. */
const isOpen = ({ status }: TurnEnd): boolean => status === 'awaiting_encrypt' || status === 'completed'

async function endOf(stream: AsyncGenerator<StreamEvent>): Promise<Result<TurnEnd, ClientFailure>> {
  for await (const event of stream) {
    if (event.type === 'failed') return err(event.failure)
    if (event.type === 'turn_end') return ok(event)
  }
  return err({ kind: 'network', message: 'the stream ended without turn_end' })
}

/** What is sealed stands in the transcript, and nothing else does. */
async function isKept({ client, sessionId, signal }: Place, texts: PlainMap): Promise<boolean> {
  const messages = Object.keys(texts).filter((ref) => refKind(ref) === 'message')
  if (messages.length === 0) return false
  const session = await client.sessions.get(sessionId, { signal })
  if (!session.ok) return false
  const kept = new Set(session.value.messages.flatMap(({ id }) => (id === undefined ? [] : [messageRef(id)])))
  return messages.every((ref) => kept.has(ref))
}
