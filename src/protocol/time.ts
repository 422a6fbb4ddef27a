/** RFC 3339 in UTC with milliseconds, the only form of time on the wire (EC 1). */
export const toWireTime = (epochMs: number): string => new Date(epochMs).toISOString()
