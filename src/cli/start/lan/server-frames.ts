/** The kinds of WebSocket frames that mean something to the door. */
export const TEXT_FRAME = 1
export const CLOSE_FRAME = 8

/** A frame's second byte says its length, or with one of these how many bytes behind it do. */
const LENGTH_IN_2_BYTES = 126
const LENGTH_IN_8_BYTES = 127

/**
 * Follows the frames that a WebSocket server sends, without keeping any of them: only headers are read, and those may
 * come in pieces. A server's frames are not masked. Where a message starts or ends does not matter here, so a control
 * frame between two fragments is a frame like any other.
 */
export class ServerFrames {
  /** The part of a header that has come; empty between frames and inside a payload. */
  #header: number[] = []
  /** Bytes of the current frame's payload that are still to come; undefined: its header is not whole. */
  #payloadLeft: number | undefined

  /**
   * @param chunk the next bytes, in order
   * @returns the opcodes of the frames whose last byte is in them
   */
  follow(chunk: Uint8Array): number[] {
    const ended: number[] = []
    let at = 0
    while (at < chunk.length) {
      if (this.#payloadLeft === undefined) {
        this.#header.push(chunk[at] ?? 0)
        at++
        this.#payloadLeft = payloadLength(this.#header)
      } else {
        const skipped = Math.min(this.#payloadLeft, chunk.length - at)
        this.#payloadLeft -= skipped
        at += skipped
      }
      if (this.#payloadLeft === 0) {
        ended.push((this.#header[0] ?? 0) & 0x0f)
        this.#header = []
        this.#payloadLeft = undefined
      }
    }
    return ended
  }
}

/** @returns in bytes; undefined while the header is not whole */
function payloadLength(header: readonly number[]): number | undefined {
  const [, second] = header
  if (second === undefined) return undefined
  const short = second & 0x7f
  const more = short === LENGTH_IN_8_BYTES ? 8 : short === LENGTH_IN_2_BYTES ? 2 : 0
  if (header.length < 2 + more) return undefined
  return more === 0 ? short : header.slice(2).reduce((length, byte) => length * 256 + byte, 0)
}
