/** Estimated tokens of a text: a quarter of its code points, rounded up; empty text is 0 (EC 10.2). */
export function estimateTokens(text: string): number {
  let codePoints = 0
  for (let i = 0; i < text.length; i++) {
    codePoints++
    if ((text.codePointAt(i) ?? 0) > 0xffff) i++
  }
  return Math.ceil(codePoints / 4)
}
