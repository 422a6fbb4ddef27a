import type { Fields } from '../../shapes.ts'

/** A PNG of a black square, whose check takes the longer the larger it is, and the upload of it in one chunk. */
export async function uploadOfSquare(attachmentId: string, side: number): Promise<Fields> {
  const png = await blackSquare(side)
  let binary = ''
  for (const byte of png) binary += String.fromCharCode(byte)
  return {
    type: 'upload_image',
    attachment_id: attachmentId,
    mime_type: 'image/png',
    offset: 0,
    total_bytes: png.length,
    data_base64: btoa(binary),
  }
}

async function blackSquare(side: number): Promise<Uint8Array> {
  const header = new Uint8Array(13)
  const view = new DataView(header.buffer)
  view.setUint32(0, side)
  view.setUint32(4, side)
  // Eight bits of grey.
  header[8] = 8
  // Each line begins with the number of its filter.
  const lines = new Uint8Array(side * (side + 1))
  const packed = new Blob([lines]).stream().pipeThrough(new CompressionStream('deflate'))
  const data = new Uint8Array(await new Response(packed).arrayBuffer())
  const signature = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
  return joined([signature, chunk('IHDR', header), chunk('IDAT', data), chunk('IEND', new Uint8Array())])
}

function chunk(type: string, data: Uint8Array): Uint8Array {
  const body = joined([new TextEncoder().encode(type), data])
  return joined([bigEndian(data.length), body, bigEndian(crc32(body))])
}

function bigEndian(value: number): Uint8Array {
  const bytes = new Uint8Array(4)
  new DataView(bytes.buffer).setUint32(0, value)
  return bytes
}

function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1
  }
  return (crc ^ 0xffffffff) >>> 0
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}
