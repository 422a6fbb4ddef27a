/**
 * How much of one call is read. A call that says more than this counts as private: what is not read cannot be known, and
 * no honest call comes near.
 */
export type Budget = {
  /** Pays for one more name; false once too much was asked for, and from then on. */
  take(chars: number): boolean
  readonly isSpent: boolean
}

export function makeBudget(names: number, chars: number): Budget {
  let namesLeft = names
  let charsLeft = chars
  return {
    take(wanted) {
      namesLeft--
      charsLeft -= wanted
      return namesLeft >= 0 && charsLeft >= 0
    },
    get isSpent() {
      return namesLeft < 0 || charsLeft < 0
    },
  }
}
