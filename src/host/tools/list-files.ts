import { lstat } from 'node:fs/promises'
import { optionalCount, optionalText, type ToolArguments } from './arguments.ts'
import { counted, failedOutput, type ToolOutput } from './tool-output.ts'
import { listWorkspaceFiles } from './workspace-files.ts'
import { reasonOf, resolveExisting } from './workspace-path.ts'

/** Names per answer; more are a page away. */
const PAGE_ENTRIES = 500
/** Folders below this are shown as one line with the number of their files. */
const DEFAULT_DEPTH = 3

/** `list_files` {path?, depth?, offset?}: files and, below `depth`, folders with their number of files. */
export async function listFilesTool(root: string, args: ToolArguments): Promise<ToolOutput> {
  const given = optionalText(args, 'path')
  if (!given.ok) return failedOutput(given.error.message)
  const depth = optionalCount(args, 'depth')
  if (!depth.ok) return failedOutput(depth.error.message)
  const offset = optionalCount(args, 'offset')
  if (!offset.ok) return failedOutput(offset.error.message)
  const at = await resolveExisting(root, given.value ?? '.')
  if (!at.ok) return failedOutput(at.error.message)
  const folder = at.value.relative
  try {
    if (!(await lstat(at.value.absolute)).isDirectory()) return failedOutput(`${folder} is not a folder`)
  } catch (error) {
    return failedOutput(`${folder}: ${reasonOf(error)}`)
  }
  const list = await listWorkspaceFiles(root, folder)
  const entries = collapse(list.files, folder, depth.value ?? DEFAULT_DEPTH)
  const from = offset.value ?? 1
  const page = entries.slice(from - 1, from - 1 + PAGE_ENTRIES)
  const notes = [`[${counted(list.files.length, 'file')}${list.cut ? ' and more' : ''} in ${folder}]`]
  const next = from + page.length
  if (next <= entries.length) {
    notes.push(
      `[Entries ${from} to ${next - 1} of ${entries.length}. To read on, call list_files with "offset": "${next}".]`,
    )
  }
  return {
    content: [...page, ...notes].join('\n'),
    isError: false,
    summary: counted(list.files.length, 'file'),
  }
}

function collapse(files: readonly string[], folder: string, depth: number): string[] {
  const prefix = folder === '.' ? '' : `${folder}/`
  const entries = new Map<string, number>()
  for (const file of files) {
    const parts = file.slice(prefix.length).split('/')
    const shown = parts.length <= depth ? file : `${prefix}${parts.slice(0, depth).join('/')}/`
    entries.set(shown, (entries.get(shown) ?? 0) + 1)
  }
  return [...entries].map(([name, count]) =>
    name.endsWith('/') ? `${name} (${counted(count, 'file')})` : name,
  )
}
