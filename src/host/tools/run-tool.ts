import type { ToolArguments } from './arguments.ts'
import { writeAtomically } from './atomic-write.ts'
import { type PlannedChange, planEdit, planWrite } from './change.ts'
import { listFilesTool } from './list-files.ts'
import { readFileTool } from './read-file.ts'
import { searchFilesTool } from './search-files.ts'
import { shellTool } from './shell.ts'
import { showChangesTool } from './show-changes.ts'
import { counted, failedOutput, formatBytes, type ToolOutput, type ToolResultOf } from './tool-output.ts'

/** Where tools work and what binds them. */
export type ToolContext = {
  /** The workspace: absolute, without symbolic links. */
  root: string
  /** Globs of files that a search and a diff must not quote. */
  restrictedPaths?: readonly string[]
  shellTimeoutMs?: number
  signal?: AbortSignal
}

/** Runs one call. Everything that can go wrong is an outcome that the model can read. */
export async function runTool(
  name: string,
  args: ToolArguments | null,
  context: ToolContext,
): Promise<ToolOutput> {
  const { root, restrictedPaths, shellTimeoutMs, signal } = context
  const given = args ?? {}
  switch (name) {
    case 'read_file':
    case 'read_lines':
      return readFileTool(root, given)
    case 'write_file':
      return applyChange(root, await planWrite(root, given))
    case 'edit_file':
      return applyChange(root, await planEdit(root, given))
    case 'shell':
      return shellTool(root, given, {
        ...(shellTimeoutMs === undefined ? {} : { timeoutMs: shellTimeoutMs }),
        ...(signal ? { signal } : {}),
      })
    case 'list_files':
      return listFilesTool(root, given)
    case 'search_files':
      return searchFilesTool(root, given, {
        ...(restrictedPaths ? { restrictedPaths } : {}),
        ...(signal ? { signal } : {}),
      })
    case 'show_changes':
      return showChangesTool(root, given, {
        ...(restrictedPaths ? { restrictedPaths } : {}),
        ...(signal ? { signal } : {}),
      })
    default:
      return failedOutput(`there is no tool ${JSON.stringify(name)} on this machine`)
  }
}

/** What a `write_file` or `edit_file` call would change now; undefined for other tools. */
export async function previewChange(
  name: string,
  args: ToolArguments | null,
  root: string,
): Promise<ToolResultOf<PlannedChange> | undefined> {
  if (name === 'write_file') return planWrite(root, args ?? {})
  if (name === 'edit_file') return planEdit(root, args ?? {})
  return undefined
}

async function applyChange(root: string, planned: ToolResultOf<PlannedChange>): Promise<ToolOutput> {
  if (!planned.ok) return failedOutput(planned.error.message)
  const { at, before, after, mode } = planned.value
  const written = await writeAtomically(root, at, after, mode)
  if (!written.ok) return failedOutput(written.error.message)
  const bytes = Buffer.byteLength(after)
  const verb = before === null ? 'created' : 'changed'
  const lines = after === '' ? 0 : after.split('\n').length - (after.endsWith('\n') ? 1 : 0)
  return {
    content: `${at.relative} ${verb} (${counted(lines, 'line')}, ${formatBytes(bytes)})`,
    isError: false,
    summary: `${verb}, ${counted(lines, 'line')}`,
  }
}
