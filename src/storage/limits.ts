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
/**
 * What a run of a sealed session is started with, as one text: it is opened again in many turns of the run, each time
 * beside the history, and all of that has to fit one request body.
 */
export const MAX_SEALED_BUNDLE_BYTES = 2 * 1024 * 1024
/** Text of earlier messages of a sealed session that takes part in a turn: it travels opened in one request body. */
export const MAX_SEALED_HISTORY_BYTES = 3 * 1024 * 1024
// What one request may bring. A person never meets these; a client that loops, or sends a whole disk, does.

/** Larger request bodies are refused unread (EC 1.5). */
export const MAX_BODY_BYTES = 10 * 1024 * 1024
/** Files attached to one prompt: each is ranked, judged and reported by itself. */
export const MAX_FILES = 1000
/** As long as the longest tool result: what a client may read for the model it may attach as well. */
export const MAX_FILE_BYTES = 8 * 1024 * 1024
/** What file systems take as a path. */
export const MAX_PATH_BYTES = 4096
/** Paths that a prompt points at: each is held against every rule. */
export const MAX_REFERENCED_PATHS = 10_000
/** Some hundred thousand changed lines: it is taken apart file by file for each turn. */
export const MAX_DIFF_BYTES = 4 * 1024 * 1024
/** Instructions stand in every prompt of a run, whole. */
export const MAX_INSTRUCTIONS = 100
export const MAX_INSTRUCTION_BYTES = 1024 * 1024
/** Skills that are called, and as many that can be: each of those is offered as a tool. */
export const MAX_SKILLS = 500
export const MAX_SKILL_BYTES = 1024 * 1024
/** A name is what lists and reports show. */
export const MAX_NAME_BYTES = 256
/** The JSON Schema of one declared tool; it goes into every prompt. */
export const MAX_TOOL_SCHEMA_BYTES = 64 * 1024
/** Rules of each kind in one policy: each is tried for each turn. */
export const MAX_RULES = 2000
/** Keywords of one rule: each is looked for in what the user says. */
export const MAX_KEYWORDS = 1000
/** Other models behind the first one of a rule: each may be asked before the next. */
export const MAX_FALLBACKS = 50
/** Permissions of one policy: there are no more tools than a few hundred. */
export const MAX_PERMISSIONS = 1000
/** Results in one message: models ask for some tens at once. */
export const MAX_RESULTS = 1000
/** Decisions in one message: a pause waits for one. */
export const MAX_DECISIONS = 100
/** Why the user decided so, in his words. */
export const MAX_REASON_BYTES = 16 * 1024
/** Texts of one `inject`: each is a message of its own. */
export const MAX_INJECTED_MESSAGES = 100
/** Title and scope stand in every row of a list; a scope is mostly the path of a folder. */
export const MAX_TITLE_BYTES = 4096
export const MAX_SCOPE_BYTES = 4096
/** Ours take 48; those of other clients are hashes, too. */
export const MAX_KEY_ID_BYTES = 256
/** What the drafts for this header, and other services, take. */
export const MAX_IDEMPOTENCY_KEY_CHARS = 255

// What may pile up.

/** Rounds of calls and injects in one run: more than any task of a day, and the end of a loop of client and model. */
export const MAX_TURNS_PER_RUN = 2000
export const MAX_RUNS_PER_SESSION = 10_000
/** No run begins, and nothing is injected, beyond it: each message is a row here and a copy in D1. */
export const MAX_MESSAGES_PER_SESSION = 100_000
/** Sessions of a user that are not archived; they are counted when one is made. */
export const MAX_SESSIONS_PER_USER = 10_000
/** One per program and machine is plenty; each sign-in compares its key with all of them. */
export const MAX_API_KEYS = 32

// What one page of an answer holds.

/** Lists of sessions (D52). */
export const MAX_LISTED_SESSIONS = 1000
/** Trace events (EC 2.14). */
export const MAX_TRACE_EVENTS = 10_000
/** Sessions of an export: each is a call to its object, and one request may make a bounded number of them. */
export const SESSIONS_PER_PAGE = 500

// How D1 is written to.

/** Text per D1 batch of the outbox: some rows of the largest kind, however much has piled up. */
export const MAX_BATCH_BYTES = 4 * 1024 * 1024
/** Statements per D1 batch of the outbox: keeps one flush short whatever has piled up. */
export const MAX_BATCH_STATEMENTS = 100
/** How long an idempotency key is remembered (D20). */
export const IDEMPOTENCY_TTL_MS = 24 * 60 * 60 * 1000

const encoder = new TextEncoder()

/** UTF-8 length of a text. */
export const byteLength = (text: string): number => encoder.encode(text).byteLength

/** Whether a text takes more UTF-8 bytes than that; mostly told without encoding it: a unit takes one to three. */
export const isLongerThan = (text: string, bytes: number): boolean =>
  text.length > bytes || (text.length * 3 > bytes && byteLength(text) > bytes)
