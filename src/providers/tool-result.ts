import type { PromptToolResult } from '../core/prompt.ts'

/** A result as text. Most dialects have no flag for a failed call, so the text says it (U22). */
export const toolResultText = ({ content, isError }: PromptToolResult): string =>
  isError ? `Error: ${content}` : content
