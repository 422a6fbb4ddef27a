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

/** Saved sessions on one page. */
export const MAX_SAVED_SESSIONS_PAGE = 100
