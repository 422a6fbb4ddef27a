import { addressKind } from '../../core/gateway/addresses.ts'
import type { OpenPairingResponse } from '../../protocol/execution/devices.ts'
import { timeOfDay } from '../clock.ts'
import { printable } from '../printable.ts'
import { qrCode } from '../qr-code.ts'

/** Characters that a terminal acts on, or that hide. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** What a device reads from the code, on one line: JSON, in which nothing hides. */
export const payloadLine = ({ qr }: OpenPairingResponse): string =>
  JSON.stringify(qr).replace(UNPRINTABLE, (char) =>
    Array.from(char.split(''), (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`).join(''),
  )

/** Whether an address, `host:port`, means the machine that dials it. */
export function isLoopback(address: string): boolean {
  const host = address.replace(/:\d+$/, '').toLowerCase()
  return host === 'localhost' || host.endsWith('.localhost') || addressKind(host) === 'loopback'
}

/** Why there is no code to scan, and what to do about it (D42). */
const loopbackNote = ({ qr }: OpenPairingResponse): string =>
  `no phone can reach ${printable(qr.address)}: this router answers to its own machine only. Stop it and start it with \`npm start -- --lan\` to pair devices of your network; the code works for a client on this machine`

/** Why an app that knows only an address cannot pair with this account (D42). */
const onlyByUrlNote = ({ qr }: OpenPairingResponse): string =>
  `this is not the first account of this router, and ${printable(qr.address)} alone leads to that one: only apps that dial ${printable(qr.url ?? '')} can use this code`

/** What the owner has to know before a phone tries; null when nothing stands in its way. */
export function obstacle(opened: OpenPairingResponse): string | null {
  if (isLoopback(opened.qr.address)) return loopbackNote(opened)
  return opened.only_by_url ? onlyByUrlNote(opened) : null
}

export type PairingView = {
  colored: boolean
  /** Width of the terminal; null when there is none that could be too narrow. */
  columns: number | null
  withQr: boolean
  /** When the codes run out, by the clock of this machine. */
  untilMs: number
}

/** The digits, the QR code where it helps, its payload, and until when they hold. */
export function pairingText(opened: OpenPairingResponse, view: PairingView): string {
  const payload = payloadLine(opened)
  const code = view.withQr && !isLoopback(opened.qr.address) ? scannable(payload, view) : ''
  const until = `until    ${timeOfDay(view.untilMs)}, for one device\n`
  return `code     ${printable(opened.code)}\n${code}payload  ${payload}\n${until}`
}

/** A code that the terminal would wrap cannot be read by anybody. */
function scannable(payload: string, { colored, columns }: PairingView): string {
  const width = qrCode(payload, false, 'L').indexOf('\n')
  return columns === null || width <= columns
    ? `\n${qrCode(payload, colored, 'L')}\n`
    : `(no QR code: it needs a terminal of ${width} columns, and this one has ${columns})\n`
}
