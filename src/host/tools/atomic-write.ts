import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import path from 'node:path'
import { err, ok } from '../../protocol/result.ts'
import type { ToolResultOf } from './tool-output.ts'
import { makeParents, reasonOf, resolveForWriting, type WorkspacePath } from './workspace-path.ts'

/**
 * Replaces a file, or creates it with the folders it needs, in one step: readers see the old content or the new one, never a part. The temporary file lies in
 * the same folder and is opened so that no link can be waiting under its name.
 * @param mode the permission bits to keep; absent for a new file, whose bits the umask decides
 */
export async function writeAtomically(
  root: string,
  at: WorkspacePath,
  content: string,
  mode: number | undefined,
): Promise<ToolResultOf<null>> {
  const parents = await makeParents(root, at)
  if (!parents.ok) return parents
  const temporary = path.join(
    path.dirname(at.absolute),
    `.${path.basename(at.absolute).slice(0, 100)}.${randomBytes(6).toString('hex')}.tmp`,
  )
  try {
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
    const handle = await open(temporary, flags, 0o666)
    try {
      await handle.writeFile(content, 'utf8')
      if (mode !== undefined) await handle.chmod(mode)
      await handle.sync()
    } finally {
      await handle.close()
    }
    // The folder may have been swapped for a link since it was resolved; then the rename would land elsewhere.
    const again = await resolveForWriting(root, at.absolute)
    if (!again.ok || again.value.absolute !== at.absolute) {
      await rm(temporary, { force: true })
      return err({ message: `${at.relative} changed while it was being written` })
    }
    await rename(temporary, at.absolute)
    return ok(null)
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined)
    return err({ message: `${at.relative}: ${reasonOf(error)}` })
  }
}
