import type { Context } from 'hono'

/** Streaming is chosen only by the exact media range (EC 1.1). */
export const wantsStream = (c: Context): boolean =>
  (c.req.header('Accept') ?? '')
    .split(',')
    .some((range) => range.split(';', 1)[0]?.trim() === 'text/event-stream')
