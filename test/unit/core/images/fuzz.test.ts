import { expect, test } from 'vitest'
import type { UploadedKind } from '../../../../src/core/images/check.ts'
import { makeRandom, type Random } from '../../../support/core/random.ts'
import { check, JPEGS, makePng } from '../../../support/node/pictures.ts'

const MUTATIONS = 2000
/** Far more than any of these small files takes, on a machine that is busy. */
const MOST_MS = 2000

const FILES: readonly (readonly [UploadedKind, Uint8Array])[] = [
  ...[2, 6].flatMap((colour) =>
    [true, false].map(
      (interlaced) => ['image/png', makePng({ width: 40, height: 30, colour, interlaced })] as const,
    ),
  ),
  ...JPEGS.map(([, file]) => ['image/jpeg', file] as const),
]

function mutate(file: Uint8Array, random: Random): Uint8Array {
  const at = random.int(file.length)
  const noise = Uint8Array.from({ length: 1 + random.int(12) }, () => random.int(256))
  switch (random.int(5)) {
    case 0:
      return file.subarray(0, at)
    case 1:
      return Buffer.concat([file.subarray(0, at), noise, file.subarray(at)])
    case 2:
      return Buffer.concat([file.subarray(0, at), file.subarray(at + noise.length)])
    case 3: {
      // A part of the file again, elsewhere.
      const from = random.int(file.length)
      return Buffer.concat([file.subarray(0, at), file.subarray(from)])
    }
    default: {
      const changed = Uint8Array.from(file)
      for (const byte of noise) changed[random.int(file.length)] = byte
      return changed
    }
  }
}

test('[D39] whatever is made of a picture is read or refused, in a short time', () => {
  const random = makeRandom(27)
  const counts = { taken: 0, refused: 0 }
  for (let n = 0; n < MUTATIONS; n++) {
    const [kind, file] = random.pick(FILES)
    const mutated = mutate(file, random)
    const began = performance.now()
    const checked = check(kind, mutated, 1 + random.int(2000))
    expect(performance.now() - began, `mutation ${n}`).toBeLessThan(MOST_MS)
    if (checked.ok) {
      expect(checked.value.width * checked.value.height).toBeGreaterThan(0)
      counts.taken++
    } else {
      expect(checked.error).toMatch(/^[\w ×,]+$/)
      counts.refused++
    }
  }
  // Neither of the two answers is given for want of the other.
  expect(counts.taken).toBeGreaterThan(50)
  expect(counts.refused).toBeGreaterThan(1000)
})
