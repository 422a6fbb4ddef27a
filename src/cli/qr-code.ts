import { renderUnicodeCompact } from 'uqr'
import type { CliIo } from './io.ts'

/** A quieter edge than the norm's four modules; phones read it, and it leaves room on a small terminal. */
const BORDER_MODULES = 2

/** Bright white on black, whatever the colours of the terminal: some scanners refuse a code that is inverted. */
const WHITE_ON_BLACK = '\u001b[97;40m'
const RESET = '\u001b[0m'

/**
 * A text as a QR code of block characters, two rows of it to a line.
 * @param ecc how much of it may be unreadable: `L` 7 %, `M` 15 %; less makes a smaller code
 */
export function qrCode(text: string, colored: boolean, ecc: 'L' | 'M' = 'M'): string {
  const lines = renderUnicodeCompact(text, { border: BORDER_MODULES, ecc }).split('\n')
  return lines.map((line) => (colored ? `${WHITE_ON_BLACK}${line}${RESET}\n` : `${line}\n`)).join('')
}

/** Whether a code on stdout has colours of its own. */
export const isColoredOnOut = (io: CliIo, options: { color?: boolean }): boolean =>
  io.outIsTty && options.color !== false && (process.env.NO_COLOR ?? '') === ''
