import { isLiveToken } from '../storage/d1/accounts.ts'
import type { Database } from '../storage/d1/database.ts'

/** How long what was signed out may still be told to whoever had begun to listen (D30). */
const CHECK_EVERY_MS = 30_000

/**
 * A stream that ends when its token does. It is looked at when something passes, and at most so often; an open stream is
 * never silent for longer. A database that does not answer ends it as well: whoever may comes back.
 */
export function whileSignedIn(
  stream: ReadableStream<Uint8Array>,
  db: Database,
  tokenId: string,
): ReadableStream<Uint8Array> {
  let checkedAtMs = Date.now()
  return stream.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      async transform(chunk, controller) {
        const nowMs = Date.now()
        if (nowMs - checkedAtMs >= CHECK_EVERY_MS) {
          checkedAtMs = nowMs
          if (!(await isLiveToken(db, tokenId, nowMs))) return controller.terminate()
        }
        controller.enqueue(chunk)
      },
    }),
  )
}
