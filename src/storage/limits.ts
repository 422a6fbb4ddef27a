/** Limits of the platform and of what we keep, in one place (D27). Sizes of text are in UTF-16 units where they say units. */

/** A stored value beyond this many UTF-8 bytes is split into chunk rows in the object. */
export const MAX_INLINE_BYTES = 256 * 1024
/** Units per chunk: three bytes each at most, so that a chunk stays below the inline limit. */
export const CHUNK_UNITS = Math.floor(MAX_INLINE_BYTES / 3)
/** A D1 row holds at most this many bytes of one text; beyond it a marker stands in its place. */
export const MAX_D1_TEXT_BYTES = 512 * 1024
/** Longest tool result that is accepted. */
export const MAX_TOOL_RESULT_BYTES = 8 * 1024 * 1024
/**
 * Text of earlier messages that takes part in a turn: twice what the widest window of a model takes (two million tokens of
 * four characters), an eighth of the memory of an object, which a text passes more than once on its way into a prompt.
 */
export const MAX_HISTORY_BYTES = 16 * 1024 * 1024
/** What the user may say in one run, all of it together: it stays in every prompt, and one request can carry as much. */
export const MAX_RUN_WORDS_BYTES = 10 * 1024 * 1024
/** Text per D1 batch of the outbox: some rows of the largest kind, however much has piled up. */
export const MAX_BATCH_BYTES = 4 * 1024 * 1024
/** Statements per D1 batch of the outbox: keeps one flush short whatever has piled up. */
export const MAX_BATCH_STATEMENTS = 100
/** How long an idempotency key is remembered (D20). */
export const IDEMPOTENCY_TTL_MS = 24 * 60 * 60 * 1000

const encoder = new TextEncoder()

/** UTF-8 length of a text. */
export const byteLength = (text: string): number => encoder.encode(text).byteLength
