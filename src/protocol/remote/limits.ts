/** Numbers of the remote protocol, in one place. "Bytes" are UTF-8 bytes (RF 1). */

/** The one version there is. */
export const REMOTE_PROTOCOL_VERSION = 1
export const SUPPORTED_VERSIONS: readonly number[] = [REMOTE_PROTOCOL_VERSION]

/** A first frame, and every frame before authentication. */
export const MAX_HANDSHAKE_BYTES = 8 * 1024
/** A request; above it the answer says so and the connection stays. */
export const MAX_REQUEST_BYTES = 256 * 1024
/** Any message; above it the connection ends. */
export const MAX_MESSAGE_BYTES = 1024 * 1024
/** Any frame that we send. */
export const MAX_FRAME_BYTES = 256 * 1024

/** From the upgrade to the first frame. */
export const HANDSHAKE_TIMEOUT_MS = 10_000

export const MAX_REQUEST_ID_BYTES = 128
/** Code points of a device's name. */
export const MAX_DEVICE_NAME_CHARS = 64
export const MAX_HOST_NAME_CHARS = 64
/** Of the host's name in a QR payload. */
export const MAX_QR_HOST_NAME_CHARS = 24
export const MAX_QR_ALTERNATES = 4

/** How long a pairing code or credential can be redeemed. */
export const CHALLENGE_TTL_MS = 120_000
export const MAX_CHALLENGE_ATTEMPTS = 5
export const CODE_LENGTH = 8
/** Failed pairings within the window that lock pairing until the oldest leaves it. */
export const MAX_PAIRING_FAILURES = 10
export const PAIRING_FAILURE_WINDOW_MS = 300_000

export const STATIC_TOKEN_TTL_MS = 30 * 24 * 3_600_000
export const ACCESS_TOKEN_TTL_MS = 15 * 60_000
export const MAX_RETIRED_FINGERPRINTS = 1024

/** How long connection requests are taken after the owner has asked for them (D41). */
export const LISTEN_WINDOW_MS = 10 * 60_000
export const MAX_CONNECT_REQUESTS = 4
/** How long a request waits for the owner, and then for the code to be typed. */
export const CONNECT_REQUEST_TTL_MS = 120_000
/** After a denial this address waits so long. */
export const CONNECT_DENIAL_MS = 30_000

export const MAX_DEVICES = 32
/** Sessions that are listed live at once. */
export const MAX_SHARED_SESSIONS = 32

/** What a snapshot or a page of history may take of a frame; the rest is for what is around it. */
export const MAX_PAYLOAD_BYTES = 252 * 1024
/** Of the settings in a snapshot; a longer catalogue is left out whole. */
export const MAX_SETTINGS_BYTES = MAX_PAYLOAD_BYTES / 4
/** Messages at the end of a snapshot, and on a page of history. */
export const MAX_MESSAGES = 40
/** Text of a message, a result or a prompt. */
export const MAX_MESSAGE_TEXT_BYTES = 4096
/** The end of the answer that is being given. */
export const MAX_LIVE_RESPONSE_BYTES = 32 * 1024
/** Shared by the actions of an approval … */
export const MAX_APPROVAL_BYTES = 32 * 1024
/** … of which each has this much at least. */
export const MIN_APPROVAL_ACTION_BYTES = 256
export const MAX_LABEL_BYTES = 512
export const MAX_SUMMARY_CHARS = 160
/** Tools, prompts, subagents and tasks in a snapshot. */
export const MAX_LISTED = 32
export const MIN_CONTENT_CHUNK_BYTES = 4
export const MAX_CONTENT_CHUNK_BYTES = 64 * 1024
export const MAX_COMMAND_OUTPUT_BYTES = 32 * 1024
export const MAX_TITLE_BYTES = 512

/** Requests of one connection that wait for sessions. */
export const MAX_IN_FLIGHT = 16
/** How long a session has to answer … */
export const OWNER_TIMEOUT_MS = 30_000
/** … and to answer with a snapshot. */
export const ATTACH_TIMEOUT_MS = 10_000
/** Repeats of one request that is being decided which may wait for its answer, itself included. */
export const MAX_RECEIPT_WAITERS = 4

/** Images. */
export const MAX_IMAGE_CHUNK_BYTES = 128 * 1024
export const MAX_IMAGE_BYTES = 8 * 1024 * 1024
export const MAX_IMAGE_SIDE = 4096
export const MAX_PROMPT_IMAGES = 8
export const MAX_UPLOAD_BYTES = 64 * 1024 * 1024
export const MAX_UPLOADS = 256
export const PARTIAL_UPLOAD_TTL_MS = 3_600_000

/** Rows of a list in an account of usage, and the days that it covers. */
export const MAX_USAGE_ROWS = 1000
export const USAGE_DAYS = 30

/** Saved sessions on one page. */
export const MAX_SAVED_SESSIONS_PAGE = 100
