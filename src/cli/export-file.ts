import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { err, ok, type Result } from '../protocol/result.ts'

/** A file that appears under its name only when it is whole; failures are sentences. */
export type ExportFile = {
  write(text: string): Result<null, string>
  /** Puts it in place. */
  keep(): Result<null, string>
  /** Takes away what was not kept. Does nothing after `keep`. */
  discard(): void
}

/** An export holds whole conversations: it is for its owner's eyes. */
const FILE_MODE = 0o600

export function openExportFile(path: string): Result<ExportFile, string> {
  const temporary = `${path}.${process.pid}.tmp`
  const attempt = <T>(work: () => T): Result<T, string> => {
    try {
      return ok(work())
    } catch (error) {
      return err(`${path} cannot be written (${codeOf(error)})`)
    }
  }
  const opened = attempt(() => {
    rmSync(temporary, { force: true })
    return openSync(temporary, 'wx', FILE_MODE)
  })
  if (!opened.ok) return opened
  const fd = opened.value
  let state: 'open' | 'closed' | 'kept' = 'open'
  return ok({
    write: (text) =>
      attempt(() => {
        writeFileSync(fd, text)
        return null
      }),
    keep: () =>
      attempt(() => {
        fsyncSync(fd)
        closeSync(fd)
        state = 'closed'
        renameSync(temporary, path)
        state = 'kept'
        return null
      }),
    discard: () => {
      if (state === 'kept') return
      if (state === 'open') closeSync(fd)
      rmSync(temporary, { force: true })
    },
  })
}

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'unknown reason'
