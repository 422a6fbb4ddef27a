/** What a follower needs of a WebSocket; the one of the platform has it. */
export type GatewaySocket = {
  send(text: string): void
  close(): void
  addEventListener(type: 'message', listener: (event: { data: unknown }) => void): void
  addEventListener(type: 'close', listener: () => void): void
}

/** How long a socket may take to open. */
const OPEN_TIMEOUT_MS = 15_000

/**
 * Opens the socket of a user's own gateway with a token of the API (D38). Only where the platform's WebSocket takes
 * headers: Node, and not browsers, which pair as a device instead.
 * @returns null when it cannot be opened, for whatever reason: the platform does not tell it
 */
export function openGatewaySocket(
  { baseUrl, token }: { baseUrl: string; token: string },
  signal: AbortSignal,
): Promise<GatewaySocket | null> {
  return new Promise((resolve) => {
    if (signal.aborted || typeof WebSocket === 'undefined') return resolve(null)
    const url = `${baseUrl.replace(/^http/, 'ws')}/api/v1/gateway`
    const headers = { Authorization: `Bearer ${token}` }
    // Only Node's types know of the headers, and this is read with those of other platforms, too.
    const socket: WebSocket = Reflect.construct(WebSocket, [url, { headers }])
    const done = (opened: GatewaySocket | null) => {
      clearTimeout(timer)
      signal.removeEventListener('abort', give)
      if (opened === null) socket.close()
      resolve(opened)
    }
    const give = () => done(null)
    const timer = setTimeout(give, OPEN_TIMEOUT_MS)
    signal.addEventListener('abort', give, { once: true })
    socket.addEventListener('open', () => done(socket), { once: true })
    socket.addEventListener('error', give, { once: true })
    socket.addEventListener('close', give, { once: true })
  })
}
