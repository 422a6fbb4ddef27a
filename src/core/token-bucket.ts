/** One caller's allowance: it fills by one token each period, up to the burst. */
export type Bucket = { tokens: number; updatedAtMs: number }

export type BucketRate = { periodMs: number; burst: number }

/** Takes a token, or says how long until there is one. */
export function takeToken(
  bucket: Bucket | undefined,
  { periodMs, burst }: BucketRate,
  nowMs: number,
): { bucket: Bucket; waitMs: number } {
  const filled = bucket
    ? Math.min(burst, bucket.tokens + Math.max(0, nowMs - bucket.updatedAtMs) / periodMs)
    : burst
  if (filled >= 1) return { bucket: { tokens: filled - 1, updatedAtMs: nowMs }, waitMs: 0 }
  return { bucket: { tokens: filled, updatedAtMs: nowMs }, waitMs: Math.ceil((1 - filled) * periodMs) }
}
