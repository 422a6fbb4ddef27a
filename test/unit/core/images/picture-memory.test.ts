import { execFileSync } from 'node:child_process'
import path from 'node:path'
import { expect, test } from 'vitest'
import { MAX_IMAGE_SIDE } from '../../../../src/protocol/remote/limits.ts'

const SCRIPT = path.join(import.meta.dirname, '../../../support/node/measure-picture.ts')

test('[D39] the largest picture takes no more than 16 MiB beside its file', { timeout: 30_000 }, () => {
  const { result, takenBytes } = JSON.parse(execFileSync(process.execPath, [SCRIPT], { encoding: 'utf8' }))
  expect(result).toEqual({ ok: true, value: { width: MAX_IMAGE_SIDE, height: MAX_IMAGE_SIDE } })
  // About a bit for each coefficient, so that the measure is known to measure.
  expect(takenBytes).toBeGreaterThan(7 * 1024 * 1024)
  expect(takenBytes).toBeLessThan(16 * 1024 * 1024)
})
