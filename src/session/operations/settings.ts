import { profilesOf, settingsOf } from '../../core/operations/session-settings.ts'
import type { ClearInput } from '../../core/run/contents.ts'
import { isOver, type RunState } from '../../core/run/state.ts'
import type { ExecutePolicy } from '../../protocol/execution/policy.ts'
import type { RemoteSessionSettings } from '../../protocol/remote/session-settings.ts'
import { countQueued } from '../../storage/session/prompt-queue.ts'
import type { SessionSettings } from '../../storage/session/session-row.ts'
import type { Sql } from '../../storage/session/sql.ts'

/** A policy may have thousands of rules, and each snapshot shows what it names. */
const profiles = new WeakMap<ExecutePolicy, RemoteSessionSettings['models']>()

/** The settings of a session as devices see them; null before its first run, when no model is known (D09). */
export function sessionSettings(
  sql: Sql,
  {
    state,
    startedWith,
    chosen,
  }: { state: RunState | null; startedWith: ClearInput | null; chosen: SessionSettings | null },
): RemoteSessionSettings | null {
  if (startedWith === null) return null
  const { policy } = startedWith
  const models = profiles.get(policy) ?? profilesOf(policy)
  profiles.set(policy, models)
  return settingsOf(models, chosen, isAtRest(sql, state))
}

/** No run goes on, and none waits to begin. */
export const isAtRest = (sql: Sql, state: RunState | null): boolean =>
  (state === null || isOver(state)) && countQueued(sql) === 0
