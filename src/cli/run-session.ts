import type { SwitchyardClient } from '../client/client.ts'
import type { ClientFailure } from '../client/failure.ts'
import { Sealing } from '../client/sealing.ts'
import { sealLeftovers } from '../client/sealing-hand-in.ts'
import type { ContentRef } from '../protocol/execution/ids.ts'
import type { EnvelopeVersion } from '../protocol/execution/sealed.ts'
import { ok, type Result } from '../protocol/result.ts'
import { oneLine } from './printable.ts'
import { type OpenSession, SessionKeys } from './session-keys.ts'

/** What new sessions are encrypted with where nothing else is asked for: bound to their place (D48). */
export const ENVELOPE_VERSION: EnvelopeVersion = 2

const MAX_TITLE_CHARS = 60
/** What an earlier run left unsealed is looked for before the first prompt of this process; it must not hold that up. */
const LEFTOVERS_TIMEOUT_MS = 5_000

type Wanted = {
  client: SwitchyardClient
  prompt: string
  sessionId?: string
  title?: string
  keys?: SessionKeys
  signal?: AbortSignal
}

/** `lost`: what an earlier run said, which nobody has sealed and the router does not hold any more (D20). */
type RunSession = OpenSession & { lost: ContentRef[] }

/** The session of the run: a new one, or one that exists, once it is clear that this machine can work in it. */
export async function sessionOfRun(
  { client, sessionId, title, prompt, signal, keys = new SessionKeys() }: Wanted,
  root: string,
  encrypt: EnvelopeVersion | null,
): Promise<Result<RunSession, ClientFailure>> {
  if (sessionId === undefined) {
    // Titles are stored in clear: that of an encrypted session has no word of its prompt.
    const given = title ?? (encrypt === null ? oneLine(prompt, MAX_TITLE_CHARS) : neutralTitle(new Date()))
    const created = await keys.createSession(client, { title: given, scope: root }, encrypt, signal)
    return created.ok ? ok({ ...created.value, lost: [] }) : created
  }
  const isFirst = !keys.knows(sessionId)
  const session = await keys.openSession(client, sessionId, root)
  if (!session.ok) return session
  const { sealer } = session.value
  if (!sealer || !isFirst) return ok({ ...session.value, lost: [] })
  const timeout = AbortSignal.timeout(LEFTOVERS_TIMEOUT_MS)
  const lost = await sealLeftovers({
    client,
    sessionId,
    sealing: new Sealing(sealer),
    signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
  })
  return ok({ ...session.value, lost })
}

/** `Encrypted session 2026-01-02 03:04`, in local time. */
function neutralTitle(now: Date): string {
  const two = (value: number) => String(value).padStart(2, '0')
  const day = [now.getFullYear(), two(now.getMonth() + 1), two(now.getDate())].join('-')
  return `Encrypted session ${day} ${two(now.getHours())}:${two(now.getMinutes())}`
}
