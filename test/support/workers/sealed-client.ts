import { makeSealer, type Sealer } from '../../../src/client/crypto/sealer.ts'
import { generateKey } from '../../../src/client/crypto/session-key.ts'
import type { ContinueRequest } from '../../../src/protocol/execution/continue.ts'
import type { ContentRef } from '../../../src/protocol/execution/ids.ts'
import type { EncryptedPayload, PlainMap, SealedMap } from '../../../src/protocol/execution/sealed.ts'
import { CreateSessionResponse } from '../../../src/protocol/execution/session.ts'
import type { TurnResponse } from '../../../src/protocol/execution/turn.ts'
import { type Client, parsed } from './router.ts'

/** A sealed session with its key, as a client of the contract holds both. */
export type SealedSession = { id: string; keyId: string; sealer: Sealer }

export async function newSealedSession(client: Client, version: 1 | 2 = 1): Promise<SealedSession> {
  const key = await generateKey(version)
  const body = { title: 'a sealed session', key_id: key.keyId }
  const made = await parsed(await client.send('POST', '/api/v1/sessions', body), CreateSessionResponse, 201)
  return { id: made.session.id, keyId: key.keyId, sealer: makeSealer(key, made.session.id) }
}

export const sealAll = ({ sealer }: SealedSession, texts: PlainMap): SealedMap =>
  Object.fromEntries(Object.entries(texts).map(([ref, text]) => [ref, sealer.seal(ref, text)]))

/** The text of an envelope, which must open. */
export function openOne({ sealer }: SealedSession, ref: ContentRef, payload: EncryptedPayload): string {
  const opened = sealer.open(ref, payload)
  if (!opened.ok) throw new Error(`${ref} cannot be opened: ${JSON.stringify(opened.error)}`)
  return opened.value
}

/** What a turn asks to have sealed. */
export const toEncrypt = (turn: TurnResponse): PlainMap =>
  'to_encrypt' in turn.data ? (turn.data.to_encrypt ?? {}) : {}

/** Answers a decrypt pause as EC 29.5 has it. */
export function decryptedFor(session: SealedSession, turn: TurnResponse): ContinueRequest {
  if (turn.status !== 'awaiting_decrypt') throw new Error(`no decrypt pause: ${turn.status}`)
  const asked = toEncrypt(turn)
  const opened = Object.entries(turn.data.to_decrypt).map(([ref, payload]) => [
    ref,
    openOne(session, ref, payload),
  ])
  return {
    type: 'decrypted',
    data: { plaintext: { ...Object.fromEntries(opened), ...asked }, encrypted: sealAll(session, asked) },
  }
}

export const sealedFor = (session: SealedSession, turn: TurnResponse): ContinueRequest => ({
  type: 'sealed',
  data: { encrypted: sealAll(session, toEncrypt(turn)) },
})

/** Results of calls, each with its envelope, and everything that the pause asked to seal (EC 29.4). */
export function resultsFor(session: SealedSession, turn: TurnResponse, content = 'out'): ContinueRequest {
  if (turn.status !== 'awaiting_tool') throw new Error(`no tools are waited for: ${turn.status}`)
  const ids = turn.data.tool_requests.map(({ call_id: id }) => id)
  const contents = Object.fromEntries(ids.map((id) => [`tool_call:${id}`, content]))
  return {
    type: 'tool_results',
    data: {
      results: ids.map((id) => ({ call_id: id, content, is_error: false })),
      encrypted: sealAll(session, { ...toEncrypt(turn), ...contents }),
    },
  }
}
