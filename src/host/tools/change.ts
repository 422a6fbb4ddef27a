import { err, ok } from '../../protocol/result.ts'
import { type ToolArguments, textArgument } from './arguments.ts'
import { readWholeFile } from './text-file.ts'
import type { ToolResultOf } from './tool-output.ts'
import { resolveExisting, resolveForWriting, type WorkspacePath } from './workspace-path.ts'

/** A change of one file as it would be made now; `before` is null for a new file. */
export type PlannedChange = {
  at: WorkspacePath
  before: string | null
  after: string
  mode: number | undefined
}

/** `write_file` {path, content}: the whole new content of a file that may exist or not. */
export async function planWrite(root: string, args: ToolArguments): Promise<ToolResultOf<PlannedChange>> {
  const given = textArgument(args, 'path')
  if (!given.ok) return given
  const content = textArgument(args, 'content', { mayBeEmpty: true })
  if (!content.ok) return content
  const at = await resolveForWriting(root, given.value)
  if (!at.ok) return at
  const existing = await resolveExisting(root, given.value)
  if (!existing.ok) return ok({ at: at.value, before: null, after: content.value, mode: undefined })
  const old = await readWholeFile(root, at.value)
  return old.ok
    ? ok({ at: at.value, before: old.value.text, after: content.value, mode: old.value.mode })
    : old
}

/** `edit_file` {path, old, new}: replaces the one place where `old` stands; none or several is an error. */
export async function planEdit(root: string, args: ToolArguments): Promise<ToolResultOf<PlannedChange>> {
  const given = textArgument(args, 'path')
  if (!given.ok) return given
  const oldText = textArgument(args, 'old')
  if (!oldText.ok) return oldText
  const newText = textArgument(args, 'new', { mayBeEmpty: true })
  if (!newText.ok) return newText
  if (oldText.value === newText.value) return err({ message: '`old` and `new` are the same text' })
  const existing = await resolveExisting(root, given.value)
  if (!existing.ok) return existing
  const at = await resolveForWriting(root, given.value)
  if (!at.ok) return at
  const file = await readWholeFile(root, at.value)
  if (!file.ok) return file
  const { text, mode } = file.value
  const after = replaceOnce(text, oldText.value, newText.value, at.value.relative)
  return after.ok ? ok({ at: at.value, before: text, after: after.value, mode }) : after
}

function replaceOnce(text: string, old: string, next: string, name: string): ToolResultOf<string> {
  let places = countPlaces(text, old)
  let wanted = old
  let replacement = next
  if (places === 0 && text.includes('\r\n') && !old.includes('\r')) {
    // Models write \n; a file with \r\n is matched and kept in its own line endings.
    wanted = old.replaceAll('\n', '\r\n')
    replacement = next.replaceAll(/\r?\n/g, '\r\n')
    places = countPlaces(text, wanted)
  }
  if (places === 0)
    return err({
      message: `the text of \`old\` does not occur in ${name}; read the file and copy it exactly`,
    })
  if (places > 1) {
    const message = `the text of \`old\` occurs ${places} times in ${name}; add lines around it until it is unique`
    return err({ message })
  }
  const start = text.indexOf(wanted)
  return ok(text.slice(0, start) + replacement + text.slice(start + wanted.length))
}

/** Overlapping places count, too: which one is meant would be a guess. */
function countPlaces(text: string, wanted: string): number {
  let places = 0
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + 1)) places++
  return places
}
