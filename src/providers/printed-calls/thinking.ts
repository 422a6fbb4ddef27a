/** The tags between which models print what they think, each with the one that closes it. */
export const THINKING: ReadonlyMap<string, string> = new Map([
  ['<think>', '</think>'],
  ['<thinking>', '</thinking>'],
])
