/**
 * The golden files of the execution contract: `golden/execution/<Shape>/<case>.json` holds a wire form that is
 * accepted, `golden/execution/<Shape>/reject/<case>.json` one that is refused. It reads and derives; it writes nothing.
 */

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { REQUEST_SHAPES, SHAPES, type ShapeName } from '../../src/protocol/execution/shapes.ts'
import { jsonText } from './json-text.ts'

export const EXECUTION_GOLDEN = 'golden/execution'

/**
 * `parsed` is what the router reads from `wire`, where that differs (defaults filled in, unknown fields dropped);
 * `refused` are JSON pointers to what a refusal complains about. Both are derived from `wire`.
 */
export const Golden = z.strictObject({
  why: z.string().min(1),
  wire: z.unknown(),
  parsed: z.unknown().optional(),
  refused: z.array(z.string()).optional(),
})
export type Golden = z.infer<typeof Golden>

export type GoldenFile = {
  shape: string
  name: string
  rejected: boolean
  /** From the root of the golden folder, with forward slashes. */
  path: string
  text: string
  golden: Golden
}

/** Every golden file under a folder, in the order of its names. A file of another form throws. */
export function loadGolden(folder: string): GoldenFile[] {
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => path.endsWith('.json'))
    .sort()
  return paths.map((path) => {
    const [shape = '', ...rest] = path.replace(/\.json$/, '').split('/')
    const rejected = rest.length === 2 && rest[0] === 'reject'
    if (rest.length !== 1 && !rejected)
      throw new Error(`${path}: not <Shape>/<case>.json or <Shape>/reject/<case>.json`)
    const text = readFileSync(join(folder, path), 'utf8')
    const golden = Golden.parse(JSON.parse(text))
    return { shape, name: rest.at(-1) ?? '', rejected, path, text, golden }
  })
}

export const isShape = (name: string): name is ShapeName => name in SHAPES

const asJson = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

/** JSON pointers of what zod complains about, each once; an unknown key is pointed at itself. */
export function refusedAt(error: z.ZodError): string[] {
  const pointers = error.issues.flatMap((issue) => {
    const at = ['', ...issue.path.map(String)].join('/')
    return issue.code === 'unrecognized_keys' ? issue.keys.map((key) => `${at}/${key}`) : [at]
  })
  return [...new Set(pointers)]
}

/**
 * What a golden file says once all that follows from its `wire` is put right: the order of keys in what the router
 * sends, `parsed` of a request, `refused` of a refusal. A wire form that is accepted where it should be refused, or
 * the other way round, throws: only a person can say which of the two is wrong.
 */
export function derived({ shape, rejected, path, golden }: GoldenFile): Golden {
  if (!isShape(shape)) throw new Error(`${path}: there is no shape ${shape}`)
  const result = SHAPES[shape].safeParse(golden.wire)
  const { why, wire } = golden
  if (rejected) {
    if (result.success) throw new Error(`${path}: accepted, and should be refused`)
    return { why, wire, refused: refusedAt(result.error) }
  }
  if (!result.success) throw new Error(`${path}: refused at ${refusedAt(result.error).join(', ')}`)
  const parsed = asJson(result.data)
  if (!(shape in REQUEST_SHAPES)) return { why, wire: parsed }
  return isDeepStrictEqual(parsed, wire) ? { why, wire } : { why, wire, parsed }
}

/** The text that a golden file should have. */
export const goldenText = (file: GoldenFile): string => jsonText(derived(file))
