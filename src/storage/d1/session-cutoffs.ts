/** Which sessions are to go, by when they were archived or, if they are not, last updated; null keeps them for ever. */
export type SessionCutoffs = { archivedBeforeMs: number | null; idleBeforeMs: number | null }
