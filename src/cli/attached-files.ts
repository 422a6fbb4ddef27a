import { createHash } from 'node:crypto'
import { formatBytes } from '../host/tools/tool-output.ts'
import { resolveExisting } from '../host/tools/workspace-path.ts'
import type { ContextFile } from '../protocol/execution/execute.ts'
import { err, ok, type Result } from '../protocol/result.ts'
import { readAttachment } from './attached-content.ts'

/** The request may have 10 MiB in all (EC 1.5), and JSON makes text longer. */
const MAX_ATTACHED_BYTES = 6 * 1024 * 1024

export type Attached = { prompt: string; files: ContextFile[] }

/**
 * Attaches the files named by `--file` and by `@path` words of the prompt, whose `@` is taken away (EC 25.3). A word
 * that names no file of the workspace stays as it is (it may be a person or a decorator); a `--file` must exist.
 */
export async function attachFiles(
  root: string,
  prompt: string,
  named: readonly string[],
): Promise<Result<Attached, string>> {
  const paths = new Set<string>()
  for (const name of named) {
    const at = await resolveExisting(root, name)
    if (!at.ok) return err(at.error.message)
    paths.add(at.value.relative)
  }
  let text = ''
  let from = 0
  for (const match of prompt.matchAll(/(^|\s)@(\S+)/g)) {
    const word = match[2] ?? ''
    const path = await mentionedFile(root, word)
    if (path === undefined) continue
    const at = match.index + (match[1] ?? '').length
    text += prompt.slice(from, at)
    from = at + 1
    paths.add(path)
  }
  text += prompt.slice(from)
  const files: ContextFile[] = []
  let bytes = 0
  for (const path of [...paths].sort()) {
    const file = await readAttachment(root, { absolute: `${root}/${path}`, relative: path })
    if (!file.ok) return err(file.error.message)
    const content = file.value
    bytes += Buffer.byteLength(content)
    if (bytes > MAX_ATTACHED_BYTES)
      return err(`the attached files have more than ${formatBytes(MAX_ATTACHED_BYTES)} together`)
    const hash = createHash('sha256').update(content).digest('hex')
    files.push({ path, content, content_hash: `sha256:${hash}`, required: true })
  }
  return ok({ prompt: text, files })
}

/** The file that a word names, with or without the punctuation behind it. */
async function mentionedFile(root: string, word: string): Promise<string | undefined> {
  for (const candidate of new Set([word, word.replace(/[.,;:!?)\]}'"]+$/, '')])) {
    if (candidate === '') continue
    const at = await resolveExisting(root, candidate)
    if (!at.ok || at.value.relative === '.') continue
    const file = await readAttachment(root, at.value)
    if (file.ok) return at.value.relative
  }
  return undefined
}
