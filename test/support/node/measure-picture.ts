/** Checks the largest picture in a process of its own, and prints what that took: other threads would count as well. */

import { MAX_IMAGE_SIDE } from '../../../src/protocol/remote/limits.ts'
import { blankJpeg, blankScan, check, JPEG_END } from './pictures.ts'

const blocks = (MAX_IMAGE_SIDE / 8) ** 2
const file = Buffer.concat([
  blankJpeg(MAX_IMAGE_SIDE, MAX_IMAGE_SIDE, 4),
  blankScan([1, 2, 3, 4], [0, 0, 0, 0], 4 * blocks),
  ...[1, 2, 3, 4].map((id) => blankScan([id], [1, 63, 0, 0], blocks)),
  JPEG_END,
])
const before = process.memoryUsage().arrayBuffers
const result = check('image/jpeg', file)
const takenBytes = process.memoryUsage().arrayBuffers - before
console.log(JSON.stringify({ result, takenBytes }))
