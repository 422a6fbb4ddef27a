import { coveredBy } from '../restricted-paths.ts'
import { optionalCount, optionalText, type ToolArguments, textArgument } from './arguments.ts'
import { decodeText } from './text-file.ts'
import { counted, failedOutput, type ToolOutput } from './tool-output.ts'
import { listWorkspaceFiles } from './workspace-files.ts'
import { openInside, resolveExisting } from './workspace-path.ts'

/** Matches per answer; more are a page away. */
const PAGE_MATCHES = 100
/** A longer line is shown around its first match. */
const MAX_LINE_CHARS = 240
/** Larger files are data, not text that people wrote. */
const MAX_SEARCHED_FILE_BYTES = 2 * 1024 * 1024
/** So much is read for one search; it keeps the answer within a few seconds. */
const MAX_SEARCHED_BYTES = 256 * 1024 * 1024

export type SearchOptions = {
  /** Globs of files whose text must not be quoted: the router cannot see which file a match came from (EC 9). */
  restrictedPaths?: readonly string[]
  signal?: AbortSignal
}

/**
 * `search_files` {query, path?, offset?}: lines that hold the query as plain text, without regard to case, as
 * `file:line: text`. Binary and very large files are passed over, restricted ones as well; both are counted.
 */
export async function searchFilesTool(
  root: string,
  args: ToolArguments,
  options: SearchOptions = {},
): Promise<ToolOutput> {
  const query = textArgument(args, 'query')
  if (!query.ok) return failedOutput(query.error.message)
  const given = optionalText(args, 'path')
  if (!given.ok) return failedOutput(given.error.message)
  const offset = optionalCount(args, 'offset')
  if (!offset.ok) return failedOutput(offset.error.message)
  const at = await resolveExisting(root, given.value ?? '.')
  if (!at.ok) return failedOutput(at.error.message)
  const list = await listWorkspaceFiles(root, at.value.relative)
  const found = await searchAll(root, list.files, query.value, offset.value ?? 1, options)
  return describe(found, offset.value ?? 1, list.cut)
}

type Found = {
  lines: string[]
  matches: number
  files: number
  searched: number
  restricted: number
  passedOver: number
  cut: boolean
}

async function searchAll(
  root: string,
  files: readonly string[],
  query: string,
  from: number,
  { restrictedPaths = [], signal }: SearchOptions,
): Promise<Found> {
  const isRestricted = coveredBy(restrictedPaths, root)
  const wanted = new RegExp(query.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'iu')
  const found: Found = {
    lines: [],
    matches: 0,
    files: 0,
    searched: 0,
    restricted: 0,
    passedOver: 0,
    cut: false,
  }
  let bytes = 0
  for (const file of files) {
    if (signal?.aborted || bytes > MAX_SEARCHED_BYTES) {
      found.cut = true
      break
    }
    if (isRestricted(file)) {
      found.restricted++
      continue
    }
    const text = await readText(root, file)
    if (text === undefined) {
      found.passedOver++
      continue
    }
    bytes += text.length
    found.searched++
    if (!wanted.test(text)) continue
    const before = found.matches
    text.split(/\r?\n/).forEach((line, index) => {
      const match = wanted.exec(line)
      if (!match) return
      found.matches++
      if (found.matches >= from && found.lines.length < PAGE_MATCHES)
        found.lines.push(`${file}:${index + 1}: ${excerpt(line, match.index)}`)
    })
    if (found.matches > before) found.files++
  }
  return found
}

/** @returns undefined for what is not a readable text file inside the workspace; links are not followed */
async function readText(root: string, file: string): Promise<string | undefined> {
  const opened = await openInside(root, { absolute: `${root}/${file}`, relative: file })
  if (!opened.ok) return undefined
  try {
    const { size } = await opened.value.stat()
    return size > MAX_SEARCHED_FILE_BYTES ? undefined : decodeText(await opened.value.readFile())
  } catch {
    return undefined
  } finally {
    await opened.value.close()
  }
}

/** What a cut leaves of a character of two UTF-16 units. */
const HALF_CHARACTER = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g

function excerpt(line: string, at: number): string {
  if (line.length <= MAX_LINE_CHARS) return line
  const start = Math.max(0, Math.min(at - MAX_LINE_CHARS / 4, line.length - MAX_LINE_CHARS))
  const piece = line.slice(start, start + MAX_LINE_CHARS).replace(HALF_CHARACTER, '')
  return `${start > 0 ? '…' : ''}${piece}${start + MAX_LINE_CHARS < line.length ? '…' : ''}`
}

function describe(found: Found, from: number, listCut: boolean): ToolOutput {
  const searched = counted(found.searched, 'file')
  const notes =
    found.matches === 0
      ? [`[No match in ${searched}.]`]
      : [
          `[${found.matches === 1 ? '1 match' : `${found.matches} matches`} in ${found.files} of ${searched}.]`,
        ]
  const next = from + found.lines.length
  if (found.lines.length > 0 && next <= found.matches) {
    notes.push(
      `[Matches ${from} to ${next - 1}. To read on, call search_files with "offset": "${next}", or narrow \`path\`.]`,
    )
  }
  if (found.restricted > 0) notes.push(`[${counted(found.restricted, 'restricted file')} not searched.]`)
  if (found.passedOver > 0)
    notes.push(`[${counted(found.passedOver, 'binary, large or linked file')} not searched.]`)
  if (found.cut || listCut) notes.push('[The search ended early; narrow `path`.]')
  return { content: [...found.lines, ...notes].join('\n'), isError: false, summary: `${found.matches} found` }
}
