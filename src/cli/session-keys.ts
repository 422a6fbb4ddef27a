import type { SwitchyardClient } from '../client/client.ts'
import type { KeyProblem, KeyStore } from '../client/crypto/key-files.ts'
import { makeSealer, type Sealer, sealProblemText } from '../client/crypto/sealer.ts'
import { generateKey, type SessionKey } from '../client/crypto/session-key.ts'
import type { ClientFailure } from '../client/failure.ts'
import { lockedFailure } from '../client/sealing.ts'
import type { ContentRef } from '../protocol/execution/ids.ts'
import type { EncryptedPayload, EnvelopeVersion } from '../protocol/execution/sealed.ts'
import type { CreateSessionRequest } from '../protocol/execution/session.ts'
import { err, ok, type Result } from '../protocol/result.ts'
import { failureText } from './failure-text.ts'
import { openKeyStore } from './keys/key-folder.ts'

/** A session with what opens it: null for one in plain text. */
export type OpenSession = { id: string; sealer: Sealer | null }

/** What a session is encrypted with, as the router tells it: null for one in plain text. */
type KeyName = Promise<Result<string | null, ClientFailure>>

/** What this machine can open: it finds the key that a session names, and remembers what it found. */
export class SessionKeys {
  readonly #store: KeyStore
  readonly #sessions = new Map<string, Sealer | null>()
  readonly #keys = new Map<string, SessionKey>()
  readonly #keyNames = new Map<string, KeyName>()
  #listing: ReturnType<SwitchyardClient['sessions']['list']> | undefined

  constructor(store: KeyStore = openKeyStore()) {
    this.#store = store
  }

  /**
   * A session that exists, looked up once. Nothing is sent into one whose key is not here (U35).
   * @param scope where it most likely belongs; sessions from elsewhere are found, too
   */
  async openSession(
    client: SwitchyardClient,
    id: string,
    scope: string,
  ): Promise<Result<OpenSession, ClientFailure>> {
    const known = this.#sessions.get(id)
    if (known !== undefined) return ok({ id, sealer: known })
    const keyId = await keyIdOf(client, id, client.sessions.list({ scope }))
    if (!keyId.ok) return keyId
    if (keyId.value === null) return ok(this.#remember(id, null))
    const key = await this.#key(keyId.value)
    if (key.ok) return ok(this.#remember(id, makeSealer(key.value, id)))
    if (key.error.kind === 'missing') return err(lockedFailure(keyId.value))
    return refused(`this session is locked: ${key.error.message}`)
  }

  /**
   * A new session, encrypted in the form of `version` or in plain text for null. Its key is on the disk before the router
   * hears of it: a session must not outlive the only copy of its key.
   */
  async createSession(
    client: SwitchyardClient,
    request: Omit<CreateSessionRequest, 'key_id'>,
    version: EnvelopeVersion | null,
    signal: AbortSignal | undefined,
  ): Promise<Result<OpenSession, ClientFailure>> {
    const key = version === null ? null : await generateKey(version)
    const saved = key && (await this.#store.save(key))
    if (saved && !saved.ok) return refused(`the key of the session cannot be kept: ${saved.error.message}`)
    const created = await client.sessions.create(
      { ...request, ...(key ? { key_id: key.keyId } : {}) },
      { idempotencyKey: crypto.randomUUID(), ...(signal ? { signal } : {}) },
    )
    if (!created.ok) return created
    const { id, encrypted } = created.value
    if (key && !encrypted)
      return refused('the router did not make the session an encrypted one: nothing was sent into it')
    return ok(this.#remember(id, key && makeSealer(key, id)))
  }

  /** Takes note of what a session that was read anyway is encrypted with. */
  learn(sessionId: string, keyId: string | null | undefined): void {
    this.#keyNames.set(sessionId, Promise.resolve(ok(keyId ?? null)))
  }

  /**
   * The text of an envelope, or a sentence to show in its place: locked, with the key that is needed, or damaged (U35).
   * It is opened with the key of its session and no other: which key and which version hold is not the envelope's to say,
   * since whoever can write to the store could put one there that another key of the user opens anywhere (D48).
   */
  async open(
    client: SwitchyardClient,
    sessionId: string,
    ref: ContentRef,
    payload: EncryptedPayload,
  ): Promise<Result<string, string>> {
    const keyId = await this.#keyNameOf(client, sessionId)
    if (!keyId.ok) return err(`its session cannot be looked up: ${failureText(keyId.error)}`)
    if (keyId.value === null) return err('refused: it is sealed, and its session is one in plain text')
    if (payload.key_id !== keyId.value)
      return err(`refused: it is sealed with key ${payload.key_id}, which is not the key of its session`)
    const key = await this.#key(keyId.value)
    if (!key.ok)
      return err(
        key.error.kind === 'missing'
          ? sealProblemText({ kind: 'other_key', keyId: keyId.value })
          : `locked: ${key.error.message}`,
      )
    const opened = makeSealer(key.value, sessionId).open(ref, payload)
    return opened.ok ? opened : err(sealProblemText(opened.error))
  }

  /** Whether the session was opened or made here before. */
  knows(id: string): boolean {
    return this.#sessions.has(id)
  }

  /** Whether the key is on this machine and can be used. */
  async has(keyId: string): Promise<boolean> {
    return (await this.#key(keyId)).ok
  }

  #remember(id: string, sealer: Sealer | null): OpenSession {
    this.#sessions.set(id, sealer)
    return { id, sealer }
  }

  #keyNameOf(client: SwitchyardClient, sessionId: string): KeyName {
    const known = this.#keyNames.get(sessionId)
    if (known) return known
    // What is opened may be of many sessions: one list tells of all.
    this.#listing ??= client.sessions.list()
    const asked = keyIdOf(client, sessionId, this.#listing)
    this.#keyNames.set(sessionId, asked)
    return asked
  }

  async #key(keyId: string): Promise<Result<SessionKey, KeyProblem>> {
    const known = this.#keys.get(keyId)
    if (known !== undefined) return ok(known)
    const key = await this.#store.load(keyId)
    // One that is missing may be imported meanwhile.
    if (key.ok) this.#keys.set(keyId, key.value)
    return key
  }
}

/** The key of a session. A session's own answer has its whole transcript, so a list is looked at first. */
async function keyIdOf(
  client: SwitchyardClient,
  id: string,
  listing: ReturnType<SwitchyardClient['sessions']['list']>,
): KeyName {
  const listed = await listing
  const summary = listed.ok ? listed.value.find((session) => session.id === id) : undefined
  if (summary) return ok(summary.key_id ?? null)
  const detail = await client.sessions.get(id)
  return detail.ok ? ok(detail.value.key_id ?? null) : detail
}

const refused = (message: string): Result<never, ClientFailure> => err({ kind: 'unsupported', message })
