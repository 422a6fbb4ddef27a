import { MAX_IMAGE_SIDE } from '../../protocol/remote/limits.ts'
import type { ByteReader } from './byte-reader.ts'
import type { Dimensions } from './dimensions.ts'
import { Malformed } from './malformed.ts'

/** One component of the picture: brightness, a colour. Sizes are in blocks of 8 × 8 samples. */
export type Component = {
  id: number
  /** Samples per unit of the picture across and down. */
  across: number
  down: number
  quantization: number
  /** Of the component alone. */
  blocksAcross: number
  blocksDown: number
  /** Filled up to whole units. */
  allAcross: number
  allDown: number
  /** Of each coefficient, down to which bit it was read; -1: not at all. */
  readonly precision: Int8Array
  /** Whether a scan of a picture that is not progressive had it. */
  isRead: boolean
  /** Of a progressive picture: which coefficients of each block are not zero, 32 of them to a number. */
  nonzero: Uint32Array | null
}

/** What the frame header of a JPEG says (JPEG, B.2.2). */
export type Frame = Dimensions & {
  progressive: boolean
  components: Component[]
  /** Units of all components together, across and down. */
  unitsAcross: number
  unitsDown: number
}

const BITS_PER_SAMPLE = 8
const MAX_COMPONENTS = 4
const MAX_SAMPLING = 4

/**
 * @param length of the segment without its own two bytes
 * @throws {Malformed}
 */
export function readFrame(bytes: ByteReader, length: number, progressive: boolean): Frame {
  const precision = bytes.byte()
  const height = bytes.uint16()
  const width = bytes.uint16()
  const count = bytes.byte()
  if (length !== 6 + 3 * count || count < 1 || count > MAX_COMPONENTS)
    throw new Malformed('the JPEG has no valid header')
  if (precision !== BITS_PER_SAMPLE) throw new Malformed('the JPEG has not eight bits per colour')
  if (width < 1 || height < 1) throw new Malformed('the picture has no pixels')
  if (width > MAX_IMAGE_SIDE || height > MAX_IMAGE_SIDE)
    throw new Malformed(`a picture may have at most ${MAX_IMAGE_SIDE} × ${MAX_IMAGE_SIDE} pixels`)
  const raw = Array.from({ length: count }, () => {
    const id = bytes.byte()
    const sampling = bytes.byte()
    return { id, across: sampling >> 4, down: sampling & 15, quantization: bytes.byte() }
  })
  const isBroken = raw.some(
    ({ across, down, quantization }) =>
      across < 1 || across > MAX_SAMPLING || down < 1 || down > MAX_SAMPLING || quantization > 3,
  )
  if (isBroken || new Set(raw.map(({ id }) => id)).size !== count)
    throw new Malformed('the JPEG has no valid header')
  const mostAcross = Math.max(...raw.map(({ across }) => across))
  const mostDown = Math.max(...raw.map(({ down }) => down))
  const unitsAcross = Math.ceil(width / (8 * mostAcross))
  const unitsDown = Math.ceil(height / (8 * mostDown))
  const components = raw.map((component): Component => {
    const { across, down } = component
    return {
      ...component,
      blocksAcross: Math.ceil(Math.ceil((width * across) / mostAcross) / 8),
      blocksDown: Math.ceil(Math.ceil((height * down) / mostDown) / 8),
      allAcross: unitsAcross * across,
      allDown: unitsDown * down,
      precision: new Int8Array(64).fill(-1),
      isRead: false,
      nonzero: null,
    }
  })
  return { width, height, progressive, components, unitsAcross, unitsDown }
}
