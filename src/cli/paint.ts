/** Colours for a terminal, or plain text when colours are off. */
export type Paint = {
  /** Whether there are any. */
  isOn: boolean
  bold(text: string): string
  dim(text: string): string
  red(text: string): string
  green(text: string): string
  yellow(text: string): string
  cyan(text: string): string
}

const wrap = (enabled: boolean, open: number, close: number) => (text: string) =>
  enabled && text !== '' ? `\u001b[${open}m${text}\u001b[${close}m` : text

/** @param enabled whether escape sequences may be written at all */
export const makePaint = (enabled: boolean): Paint => ({
  isOn: enabled,
  bold: wrap(enabled, 1, 22),
  dim: wrap(enabled, 2, 22),
  red: wrap(enabled, 31, 39),
  green: wrap(enabled, 32, 39),
  yellow: wrap(enabled, 33, 39),
  cyan: wrap(enabled, 36, 39),
})
