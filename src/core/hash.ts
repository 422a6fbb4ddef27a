/** A short name of a text, for telling texts apart that nobody forges: 64 bits of FNV-1a, as hex. */
export function hashOf(text: string): string {
  let low = 0x811c9dc5
  let high = 0x01000193
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    low = Math.imul(low ^ unit, 0x01000193) >>> 0
    high = Math.imul(high ^ unit ^ (low >>> 8), 0x01000193) >>> 0
  }
  return low.toString(16).padStart(8, '0') + high.toString(16).padStart(8, '0')
}
