/** What stands under these names in a value from outside, each name inside the one before; undefined without it. */
export function fieldAt(value: unknown, ...names: readonly string[]): unknown {
  let at = value
  for (const name of names) {
    if (typeof at !== 'object' || at === null) return undefined
    at = Reflect.get(at, name)
  }
  return at
}
