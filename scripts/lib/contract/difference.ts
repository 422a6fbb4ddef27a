/** What a comparison finds. */

export type Thing =
  | 'operation'
  | 'parameter'
  | 'response'
  | 'content'
  | 'component'
  | 'property'
  | 'variant'
  | 'security scheme'

/** `added` and `became` are seen from the contract: what we have and it has not. */
export type DifferenceKind =
  | `${Thing} added`
  | `${Thing} missing`
  | 'became required'
  | 'became optional'
  | 'null added'
  | 'null missing'
  | 'body'
  | 'type'
  | 'enum'
  | 'format'
  | 'pattern'
  | 'bounds'
  | 'unknown fields'
  | 'operation id'
  | 'tags'
  | 'security'

/** `at` names the place in words that a list of intended differences can repeat. */
export type Difference = { at: string; what: DifferenceKind; theirs: string; ours: string }

/** Collects differences, each once: a shared scalar is met in many places. */
export class Differences {
  readonly #found = new Map<string, Difference>()

  add(difference: Difference): void {
    const key = `${difference.at} ${difference.what}`
    if (!this.#found.has(key)) this.#found.set(key, difference)
  }

  /** Notes a difference where the two texts are not the same. */
  compare(at: string, what: DifferenceKind, theirs: string, ours: string): void {
    if (theirs !== ours) this.add({ at, what, theirs: theirs || 'nothing', ours: ours || 'nothing' })
  }

  /** Notes where one side needs what the other may leave out. */
  required(at: string, theirs: boolean, ours: boolean): void {
    if (theirs === ours) return
    const say = (required: boolean) => (required ? 'required' : 'optional')
    this.add({ at, what: ours ? 'became required' : 'became optional', theirs: say(theirs), ours: say(ours) })
  }

  /** Notes that only one side has something. */
  one(at: string, thing: Thing, side: Side): void {
    if (side === 'ours') this.add({ at, what: `${thing} added`, theirs: 'nothing', ours: `a ${thing}` })
    else this.add({ at, what: `${thing} missing`, theirs: `a ${thing}`, ours: 'nothing' })
  }

  list(): Difference[] {
    return [...this.#found.values()]
  }
}

export type Side = 'theirs' | 'ours'

/** Two maps matched by key: a key that only one side has is a difference, the others are handed on. */
export function matchKeys<T>(
  theirs: ReadonlyMap<string, T>,
  ours: ReadonlyMap<string, T>,
  one: (key: string, side: Side) => void,
  both: (key: string, theirs: T, ours: T) => void,
): void {
  for (const [key, their] of theirs) {
    const our = ours.get(key)
    if (our === undefined) one(key, 'theirs')
    else both(key, their, our)
  }
  for (const key of ours.keys()) if (!theirs.has(key)) one(key, 'ours')
}
