/** When an object's one alarm has to ring: at the earliest of what it has to do by itself, or never. Null: nothing of that kind. */
export function nextAlarm(deadlines: Readonly<Record<string, number | null>>): number | null {
  const times = Object.values(deadlines).filter((at): at is number => at !== null)
  return times.length === 0 ? null : Math.min(...times)
}
