/** What stands for a text that the router has no key to (D47, U35). */
export const lockedSentence = (keyId: string): string =>
  `This is encrypted: it can be read where the key ${keyId} is.`
