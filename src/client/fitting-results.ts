import type { ToolResult } from '../protocol/execution/continue.ts'

/**
 * Of the 10 MiB that a request body may have (D27), what results and ciphertext may take; the rest is for the names, ids
 * and brackets around them.
 */
const ROOM_BYTES = 9.5 * 1024 * 1024
/** The longest single result that the router takes (D27). */
const MAX_RESULT_BYTES = 8 * 1024 * 1024
/** What an envelope and its reference take beside the ciphertext, generously. */
const ENVELOPE_BYTES = 400
/** A shorter piece of a result is of no use to a model. */
const MIN_PIECE_BYTES = 1024

const NOTE =
  '[The results of one answer were too long to be sent together: what is missing here was cut by the client. Ask again, with fewer calls at once or for less.]'

const encoder = new TextEncoder()
const utf8Bytes = (text: string): number => encoder.encode(text).byteLength
const sealedBytes = (text: string): number => Math.ceil((utf8Bytes(text) * 4) / 3) + ENVELOPE_BYTES

/**
 * Results as far as they go into one request: those that fit whole, the beginning of the first that does not, and in the
 * place of others a note. In an encrypted session each text travels twice, as it is and sealed (EC 29.4).
 * @param others texts whose ciphertext goes with them; undefined in a session that is not encrypted
 */
export function fittingResults(
  results: readonly ToolResult[],
  others: readonly string[] | undefined,
): ToolResult[] {
  const isSealed = others !== undefined
  const bytesOf = (content: string): number =>
    utf8Bytes(JSON.stringify(content)) + (isSealed ? sealedBytes(content) : 0)
  const taken = (others ?? []).reduce((sum, text) => sum + sealedBytes(text), 0)
  // Every result has at least its note.
  let room = ROOM_BYTES - taken - results.length * bytesOf(NOTE)
  let wasCut = false
  return results.map((result) => {
    const { content } = result
    const bytes = bytesOf(content)
    if (bytes <= room && utf8Bytes(content) <= MAX_RESULT_BYTES) {
      room -= bytes
      return result
    }
    const piece = wasCut
      ? ''
      : beginning(content, Math.min(room, MAX_RESULT_BYTES - utf8Bytes(NOTE) - 1), bytesOf)
    wasCut = true
    room -= bytesOf(piece)
    return { ...result, content: piece === '' ? NOTE : `${piece}\n${NOTE}` }
  })
}

/** As much of a text as takes so many bytes; nothing when that is too little to be of use. */
function beginning(text: string, most: number, bytesOf: (text: string) => number): string {
  if (most < MIN_PIECE_BYTES) return ''
  let piece = text
  // Letters differ in length: each round comes closer from above.
  for (let bytes = bytesOf(piece); piece !== '' && bytes > most; bytes = bytesOf(piece))
    piece = piece.slice(0, Math.floor(piece.length * Math.min(0.98, most / bytes)))
  return piece.toWellFormed()
}
