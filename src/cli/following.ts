import type { SwitchyardClient } from '../client/client.ts'
import { RemoteFollower, type RemoteNews } from '../client/remote-follower.ts'

/**
 * Follows the session that the command works in, over the user's gateway (D38): one connection, for one session at a
 * time. A command goes on without it just as well.
 */
export class Following {
  readonly #client: Pick<SwitchyardClient, 'gatewaySocket'>
  readonly #listener: ((news: RemoteNews) => void) | undefined
  #follower: RemoteFollower | undefined

  /** @param listener hears of every session that is followed */
  constructor(client: Pick<SwitchyardClient, 'gatewaySocket'>, listener?: (news: RemoteNews) => void) {
    this.#client = client
    this.#listener = listener
  }

  /** What happens in a session from now on; the one before is left. */
  of(sessionId: string): RemoteFollower {
    if (this.#follower?.sessionId === sessionId) return this.#follower
    void this.#follower?.close()
    const follower = new RemoteFollower({
      sessionId,
      connect: (how) => this.#client.gatewaySocket(how),
    })
    if (this.#listener) follower.onNews(this.#listener)
    this.#follower = follower
    follower.start()
    return follower
  }

  async close(): Promise<void> {
    await this.#follower?.close()
    this.#follower = undefined
  }
}
