import type { FlowAck } from '../protocol/remote/flow-ack.ts'
import { utf8Bytes } from '../protocol/remote/utf8.ts'

/** Well below what a gateway sends ahead (4 MiB), and many frames. */
const REPORT_BYTES = 512 * 1024
/** What is left is reported when nothing more has come for so long: a gateway that has been quiet longer sleeps. */
const IDLE_MS = 1_000
/** Gateways answer it without counting it. */
const PONG = '{"type":"pong"}'

/** Tells a gateway how much of what it sends has been read, so that it need not guess (D35). */
export class ReadReports {
  readonly #send: (frame: string) => void
  #readBytes = 0
  #reportedBytes = 0
  #isWanted = false
  #timer: ReturnType<typeof setTimeout> | undefined
  /** Something has been read since the timer was set. */
  #isReading = false

  constructor(send: (frame: string) => void) {
    this.#send = send
  }

  /** The gateway understands reports. Without that, nothing is sent: an older one would take them for bad requests. */
  begin(): void {
    this.#isWanted = true
  }

  /** A frame has been read, and dealt with. */
  read(frame: string): void {
    if (frame === PONG) return
    this.#readBytes += utf8Bytes(frame)
    this.#isReading = true
    if (!this.#isWanted) return
    if (this.#readBytes - this.#reportedBytes >= REPORT_BYTES) this.report()
    else if (this.#timer === undefined) this.#wait()
  }

  /** Reports what has not been. */
  report(): void {
    if (!this.#isWanted || this.#readBytes === this.#reportedBytes) return
    this.#reportedBytes = this.#readBytes
    this.#send(JSON.stringify({ type: 'flow_ack', bytes: this.#readBytes } satisfies FlowAck))
  }

  /** Reports nothing more, and leaves no timer behind. */
  end(): void {
    this.#isWanted = false
    if (this.#timer !== undefined) clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #wait(): void {
    this.#isReading = false
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      if (this.#isReading) this.#wait()
      else this.report()
    }, IDLE_MS)
  }
}
