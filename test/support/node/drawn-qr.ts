/** The modules of a QR code as a terminal shows it, row by row: true is dark. Light ones are drawn; two rows share a line. */
export function drawnModules(text: string): (boolean | undefined)[][] {
  const upper = new Map([...'█▀▄ '].map((char) => [char, char === '▄' || char === ' ']))
  const lower = new Map([...'█▀▄ '].map((char) => [char, char === '▀' || char === ' ']))
  return text
    .split('\n')
    .flatMap((line) => [upper, lower].map((half) => [...line].map((char) => half.get(char))))
}
