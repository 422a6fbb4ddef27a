/** Estimated tokens of a text: a quarter of its code points, rounded up; empty text is 0 (EC 10.2). */
export const estimateTokens = (text: string): number => estimateTokensOf([text])

/** The same of a text in parts, which may be long: they are not put together for it. */
export const estimateTokensOf = (parts: readonly string[]): number =>
  Math.ceil(parts.reduce((sum, part) => sum + codePoints(part), 0) / 4)

function codePoints(text: string): number {
  let count = 0
  for (let i = 0; i < text.length; i++) {
    count++
    if ((text.codePointAt(i) ?? 0) > 0xffff) i++
  }
  return count
}
