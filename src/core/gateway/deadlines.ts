/** The earliest of the times at which something is due; null when nothing is. */
export function nextDeadlineMs(times: readonly (number | null)[]): number | null {
  const due = times.filter((atMs) => atMs !== null)
  return due.length === 0 ? null : Math.min(...due)
}
