import { setClock } from './clock.ts'
import { alarmOf, inside, ringAlarm } from './session-object.ts'

/** An alarm that rings more often than this without an end spins. */
const MAX_RINGS = 6

/**
 * Rings the alarm when it is due. One whose object dies is still there, as on the platform, which tries again. False:
 * there is none.
 */
export async function ringOnce(sessionId: string): Promise<boolean> {
  // To ask an object that is gone wakes it, which a death may fall into.
  const at = await alarmOf(sessionId).catch(() => alarmOf(sessionId))
  if (at === null) return false
  setClock(Math.max(at, Date.now()))
  try {
    await ringAlarm(sessionId)
  } catch {
    // Only a death gets here: the object handles whatever else fails while its alarm rings.
    const setAgain = () => inside(sessionId, (_sql, state) => state.storage.setAlarm(at))
    await setAgain().catch(setAgain)
  }
  return true
}

/** Rings the alarm until none is set. */
export async function ringUntilSilent(sessionId: string): Promise<void> {
  for (let ring = 0; ring < MAX_RINGS; ring++) if (!(await ringOnce(sessionId))) return
  throw new Error('[U06] the alarm rings for ever')
}
