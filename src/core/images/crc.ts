/** The table for the CRC-32 of PNG, by the next byte. */
export function makeCrcTable(): Int32Array {
  const table = new Int32Array(256)
  for (let byte = 0; byte < 256; byte++) {
    let rest = byte
    for (let bit = 0; bit < 8; bit++) rest = rest & 1 ? (rest >>> 1) ^ 0xedb88320 : rest >>> 1
    table[byte] = rest
  }
  return table
}
