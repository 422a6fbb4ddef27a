import type { Words } from '../client/words.ts'
import type { CliIo } from './io.ts'
import type { TypedWords } from './keyboard.ts'
import type { RunTaskResult } from './run-task.ts'
import { quoted } from './run-view.ts'

/** Carries out a run that hears what is typed meanwhile. `late`: what was typed, and came too late for it. */
export async function withTypedWords(
  typed: TypedWords | undefined,
  run: (heard: { words?: Words }) => Promise<RunTaskResult>,
): Promise<{ result: RunTaskResult; late: string[] }> {
  let rest: string[] = []
  const result = await run(typed ? { words: typed } : {}).finally(() => {
    rest = typed?.close() ?? []
  })
  return { result, late: [...result.unsent, ...rest] }
}

/** Says which words are not said to anybody. */
export function tellUnsent(io: CliIo, late: readonly string[]): void {
  if (late.length > 0) io.err(`${io.paint.yellow('not sent')}, the run had ended: ${quoted(late)}\n`)
}
