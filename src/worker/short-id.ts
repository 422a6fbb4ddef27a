/** The id of a device or of a connection request: 16 hex digits, in any case; null for anything else. */
export function parseShortId(text: string): string | null {
  const id = text.toLowerCase()
  return /^[0-9a-f]{16}$/.test(id) ? id : null
}
