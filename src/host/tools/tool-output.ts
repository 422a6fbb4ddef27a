import type { Result } from '../../protocol/result.ts'

/** What a tool gives back: the text for the model, and a few words for the person who watches. */
export type ToolOutput = { content: string; isError: boolean; summary: string }

/** Why a tool could not do what was asked; `message` is a sentence that the model can act on. */
export type ToolFailure = { message: string }

export type ToolResultOf<T> = Result<T, ToolFailure>

/** A failure as the model sees it. */
export const failedOutput = (message: string): ToolOutput => ({
  content: message,
  isError: true,
  summary: 'failed',
})

/** Bytes for people: `812 B`, `12.4 KB`, `3.0 MB`. */
export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`
  if (bytes < 1_000_000) return `${(bytes / 1000).toFixed(1)} KB`
  return `${(bytes / 1_000_000).toFixed(1)} MB`
}

/** `1 line`, `2 lines`. */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`
