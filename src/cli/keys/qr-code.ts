import { renderUnicodeCompact } from 'uqr'

/** A quieter edge than the norm's four modules; phones read it, and it leaves room on a small terminal. */
const BORDER_MODULES = 2

/** Bright white on black, whatever the colours of the terminal: some scanners refuse a code that is inverted. */
const WHITE_ON_BLACK = '\u001b[97;40m'
const RESET = '\u001b[0m'

/** A text as a QR code of block characters, two rows of it to a line. */
export function qrCode(text: string, colored: boolean): string {
  const lines = renderUnicodeCompact(text, { border: BORDER_MODULES, ecc: 'M' }).split('\n')
  return lines.map((line) => (colored ? `${WHITE_ON_BLACK}${line}${RESET}\n` : `${line}\n`)).join('')
}
