import { WebSocket } from 'ws'

/** One WebSocket whose frames are texts, waited for one after another. */
export type BenchSocket = {
  send(content: object | string): void
  /** The next frame. */
  next(): Promise<string>
  /** Sends, and waits for the next frame. */
  ask(content: object): Promise<Record<string, unknown>>
  close(): void
}

export function openSocket(url: string): Promise<BenchSocket> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, { perMessageDeflate: false })
    const unread: string[] = []
    let waiting: { resolve: (frame: string) => void; reject: (error: Error) => void } | null = null
    socket.on('message', (data) => {
      const frame = String(data)
      const one = waiting
      waiting = null
      if (one === null) unread.push(frame)
      else one.resolve(frame)
    })
    socket.on('close', () => waiting?.reject(new Error('the connection was closed')))
    socket.once('error', reject)
    const next = (): Promise<string> => {
      const frame = unread.shift()
      if (frame !== undefined) return Promise.resolve(frame)
      return new Promise((resolveFrame, rejectFrame) => {
        waiting = { resolve: resolveFrame, reject: rejectFrame }
      })
    }
    const send = (content: object | string) =>
      socket.send(typeof content === 'string' ? content : JSON.stringify(content))
    socket.once('open', () =>
      resolve({
        send,
        next,
        ask: async (content) => {
          send(content)
          return JSON.parse(await next())
        },
        close: () => socket.terminate(),
      }),
    )
  })
}
