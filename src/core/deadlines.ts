/** What an object has to do by itself, by name; null when there is nothing of that kind. */
export type Deadlines = {
  leaseHeartbeatAtMs: number | null
  outboxRetryAtMs: number | null
  listingRetryAtMs: number | null
}

/** When the object's one alarm has to ring: at the earliest deadline, or never. */
export function nextAlarm(deadlines: Deadlines): number | null {
  const times = Object.values(deadlines).filter((at): at is number => at !== null)
  return times.length === 0 ? null : Math.min(...times)
}
