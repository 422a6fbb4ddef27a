import { createTwoFilesPatch } from 'diff'
import type { PlannedChange } from '../host/tools/change.ts'
import type { Paint } from './paint.ts'
import { printable } from './printable.ts'

/** A comparison that takes longer than this is given up; the new content is shown instead. */
const DIFF_TIMEOUT_MS = 2_000
/** Nobody reads further; what follows is counted, and the user decides whether that is enough. */
const MAX_SHOWN_LINES = 1_000
const CONTEXT_LINES = 3

/** A planned change as a coloured unified diff. */
export function changeText({ at, before, after }: PlannedChange, paint: Paint): string {
  const patch = createTwoFilesPatch(
    before === null ? '/dev/null' : `a/${at.relative}`,
    `b/${at.relative}`,
    before ?? '',
    after,
    undefined,
    undefined,
    { context: CONTEXT_LINES, timeout: DIFF_TIMEOUT_MS },
  )
  const text = patch ?? `+++ b/${at.relative} (the whole file)\n${after.replace(/^/gm, '+')}`
  const lines = printable(text)
    .split('\n')
    .filter((line) => !/^=+$/.test(line) && line !== '')
  const shown = lines.slice(0, MAX_SHOWN_LINES).map((line) => paintLine(line, paint))
  const hidden = lines.length - shown.length
  if (hidden > 0) shown.push(paint.yellow(`… ${hidden} more lines are not shown`))
  return shown.join('\n')
}

function paintLine(line: string, paint: Paint): string {
  if (line.startsWith('+++') || line.startsWith('---')) return paint.bold(line)
  if (line.startsWith('@@')) return paint.cyan(line)
  if (line.startsWith('+')) return paint.green(line)
  if (line.startsWith('-')) return paint.red(line)
  return paint.dim(line)
}
