/** Deeper JSON is refused: no schema or call is nested like this, and values much deeper cannot pass between objects. */
export const MAX_JSON_DEPTH = 128

/** Tells whether objects and arrays stand in one another more than `levels` deep. Does not recurse. */
export function isDeeperThan(value: unknown, levels: number): boolean {
  let layer: unknown[] = [value]
  for (let depth = 0; ; depth++) {
    const nested = layer.filter((one) => typeof one === 'object' && one !== null)
    if (nested.length === 0) return false
    if (depth === levels) return true
    layer = nested.flatMap((one) => Object.values(one))
  }
}
