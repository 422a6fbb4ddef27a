/**
 * Every bound on what a provider may do to a call, in one place. What a bound cuts off is a failure of the provider: the
 * upstream connection is closed, another model is tried if nothing had been said, and what had been said is kept as
 * interrupted (D24).
 */

/** The ruling for one model call, from the request to the last byte (D21). Signs of life do not extend it. */
export const CALL_TOTAL_MS = 14 * 60_000

/**
 * Until the first byte of a stream. Hosted models that think long say something at once, be it only that they have begun
 * or a comment that keeps the connection open; two minutes cover a queue and the reading of the longest prompt.
 */
export const FIRST_BYTE_MS = 2 * 60_000

/**
 * The same where silence is normal: a machine of the user's loads a cold model before the first byte (Ollama itself gives
 * up on that after five minutes), and some compatible endpoints say nothing while their model thinks.
 */
export const PATIENT_FIRST_BYTE_MS = 5 * 60_000

/**
 * Between two bytes of a stream that has begun: a connection that died without a word. Hosted models send something, at
 * least a sign of life, far more often. Not for the user's own machines, which hold a call back until it is whole: a
 * long file at five tokens a second is silent for longer.
 */
export const SILENCE_MS = 5 * 60_000

/** The longest that a client may wait for a catalogue (EC 2.17). */
export const CATALOGUE_TOTAL_MS = 60_000

/**
 * A whole answer that is not streamed. It is held in memory as bytes, as text and parsed, in an object that has 128 MiB;
 * the longest answers of a model have less than 1 MiB.
 */
export const MAX_BUFFERED_BYTES = 16 * 1024 * 1024

/**
 * A whole stream, which passes and is not held. Some dialects spend 400 bytes on a token: this lets the longest answers of
 * today (128,000 tokens) through, and ends a flood of empty pieces.
 */
export const MAX_STREAMED_BYTES = 64 * 1024 * 1024

/** One event or line of a stream, held until its end comes. The last event of some dialects repeats the whole answer. */
export const MAX_EVENT_BYTES = 8 * 1024 * 1024

/** An error body beyond this is a page, and its end is of no interest. */
export const MAX_ERROR_BODY_BYTES = 64 * 1024

/**
 * Text, reasoning and calls of one answer in UTF-16 units: all of it is held until the answer ends. More than three times
 * what the longest output limits of today allow (128,000 tokens).
 */
export const MAX_ANSWER_CHARS = 2 * 1024 * 1024

/** The arguments of one call: more than the longest file that a model can write in one answer. */
export const MAX_ARGUMENT_CHARS = 1024 * 1024

/** Calls of one answer. Models make a dozen at once, and each is a row and a question for the client. */
export const MAX_CALLS_PER_ANSWER = 128

/** The name or the provider's id of a call. Names of tools end at 64, the longest ids of today at a few hundred. */
export const MAX_CALL_LABEL_CHARS = 1024

/** A count of tokens beyond this is none, and unknown (U43): the largest windows are a tenth of it. */
export const MAX_TOKEN_COUNT = 100_000_000

/** A wait that a provider asks for. Longer ones are told as this: quotas start again within a day. */
export const MAX_RETRY_AFTER_MS = 24 * 60 * 60_000
