/** Why a device was revoked: by its owner, or since a retired token was presented. */
export type RevocationReason = 'revoked' | 'token_replayed'

/** A revocation that a gateway could not store itself, and that was noted elsewhere. */
export type NotedRevocation = { deviceId: string; reason: RevocationReason }
