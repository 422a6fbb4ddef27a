/** Why a file is no picture that can be taken. Thrown inside the checks alone: `checkImage` turns it into data. */
export class Malformed extends Error {
  override readonly name = 'Malformed'
}

/** What ends before its end. */
export const cutShort = (): Malformed => new Malformed('the file ends too early')
