type FrameOptions = { final?: boolean; lengthBytes?: 0 | 2 | 8 }

/**
 * A WebSocket frame as a server sends it.
 * @param payload latin1: a character is a byte
 */
export function serverFrame(opcode: number, payload: string, options: FrameOptions = {}): Buffer {
  const body = Buffer.from(payload, 'latin1')
  const { final = true, lengthBytes = body.length < 126 ? 0 : body.length < 65_536 ? 2 : 8 } = options
  const head = Buffer.alloc(2 + lengthBytes)
  head[0] = (final ? 0x80 : 0) | opcode
  head[1] = lengthBytes === 0 ? body.length : lengthBytes === 2 ? 126 : 127
  if (lengthBytes === 2) head.writeUInt16BE(body.length, 2)
  if (lengthBytes === 8) head.writeBigUInt64BE(BigInt(body.length), 2)
  return Buffer.concat([head, body])
}
