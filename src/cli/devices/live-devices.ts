import type { SwitchyardClient } from '../../client/client.ts'
import type { ConnectRequestSummary } from '../../protocol/execution/devices.ts'
import { CHALLENGE_TTL_MS, LISTEN_WINDOW_MS } from '../../protocol/remote/limits.ts'
import { type Clock, timeOfDay } from '../clock.ts'
import { CommandStop, must } from '../command-context.ts'
import { EXIT } from '../exit-code.ts'
import type { CliIo } from '../io.ts'
import { printable } from '../printable.ts'
import { acceptRequest, askerText, requireRequest, typeItText } from './connect-requests.ts'
import { quotedName } from './device-list.ts'
import { shortestPrefix } from './find-by-prefix.ts'
import { type NewDeviceLook, pairedText, rememberDevices } from './new-device.ts'
import { obstacle, pairingText } from './pairing-view.ts'
import { ifReached, pollUntil } from './polling.ts'

/**
 * Devices in the interactive session: pairing one, and answering those that ask. Only while the owner has something to
 * wait for is the router asked, and only while the prompt waits; what there is to tell is shown above the prompt.
 */
export class LiveDevices {
  readonly #client: SwitchyardClient
  readonly #io: CliIo
  readonly #clock: Clock
  /** Devices can ask until then. */
  #window: { untilMs: number } | undefined
  /** A code is out, in a QR code or typed; the router has one at a time. */
  #pairing: { untilMs: number; look: NewDeviceLook } | undefined
  #shown = new Set<string>()

  constructor(options: { client: SwitchyardClient; io: CliIo; clock: Clock }) {
    this.#client = options.client
    this.#io = options.io
    this.#clock = options.clock
  }

  /** `/pair` */
  pair(): Promise<void> {
    return this.#orSay(async () => {
      const io = this.#io
      const look = await rememberDevices(this.#client)
      const opened = must(await this.#client.pairing.open())
      const untilMs = this.#clock.nowMs() + CHALLENGE_TTL_MS
      this.#pairing = { untilMs, look }
      io.err(pairingText(opened, { colored: io.paint.isOn, columns: io.columns, withQr: true, untilMs }))
      const note = obstacle(opened)
      if (note !== null) io.err(`${io.paint.yellow('note')}: ${note}\n`)
    })
  }

  /** `/requests` */
  listen(): Promise<void> {
    return this.#orSay(async () => {
      must(await this.#client.connectRequests.listen())
      this.#window = { untilMs: this.#clock.nowMs() + LISTEN_WINDOW_MS }
      // Those that still wait are shown once more.
      this.#shown = new Set()
      const until = timeOfDay(this.#window.untilMs)
      this.#io.err(
        this.#io.paint.dim(`devices can ask until ${until}; whoever does is shown at the prompt\n`),
      )
    })
  }

  /** `/accept ID` */
  accept(typed: string): Promise<void> {
    return this.#orSay(async () => {
      const request = await this.#requireNamed(typed)
      const look = await rememberDevices(this.#client)
      const out = must(await acceptRequest(this.#client, this.#clock, request))
      if (this.#pairing) this.#io.err(this.#io.paint.dim('the code before it holds no longer\n'))
      this.#pairing = { untilMs: out.untilMs, look }
      this.#io.err(`${typeItText(out)}${printable(out.code)}\n`)
    })
  }

  /** `/deny ID` */
  deny(typed: string): Promise<void> {
    return this.#orSay(async () => {
      const request = await this.#requireNamed(typed)
      must(await this.#client.connectRequests.deny(request.request_id))
      this.#io.err(`denied ${quotedName(request.device_name)}\n`)
    })
  }

  /** Waits at the prompt, and tells meanwhile what devices do. A typed line waits for no answer of the router. */
  async during<T>(prompt: () => Promise<T>): Promise<T> {
    const typed = new AbortController()
    void this.#watch(typed.signal)
    try {
      return await prompt()
    } finally {
      typed.abort()
    }
  }

  /** There is no default: the one request that waits may be another one by the time that Enter is pressed. */
  #requireNamed(typed: string): Promise<ConnectRequestSummary> {
    if (typed === '') throw new CommandStop(EXIT.usage, 'say which request: /accept ID, /deny ID')
    return requireRequest(this.#client, typed)
  }

  async #watch(signal: AbortSignal): Promise<void> {
    try {
      while (!signal.aborted && (this.#window || this.#pairing)) {
        // The earlier end is looked at by itself, so that its last look is one.
        const untilMs = Math.min(this.#window?.untilMs ?? Infinity, this.#pairing?.untilMs ?? Infinity)
        await pollUntil(this.#clock, untilMs, signal, () => this.#look(signal))
      }
    } catch (error) {
      if (!(error instanceof CommandStop)) throw error
      this.#window = undefined
      this.#pairing = undefined
      this.#tell(signal, this.#errorText(error))
    }
  }

  /** True: something that was waited for is over. */
  async #look(signal: AbortSignal): Promise<true | undefined> {
    const hasEnded = await this.#lookForPaired(signal)
    return (await this.#lookForRequests(signal)) || hasEnded || undefined
  }

  async #lookForPaired(signal: AbortSignal): Promise<boolean> {
    const pairing = this.#pairing
    if (!pairing) return false
    const isOver = this.#clock.nowMs() >= pairing.untilMs
    const device = await pairing.look(signal, isOver)
    if (signal.aborted || (device === undefined && !isOver)) return false
    if (this.#pairing === pairing) this.#pairing = undefined
    const { paint } = this.#io
    const told = device ? `${paint.green('✓')} ${pairedText(device)}` : paint.dim('the code holds no longer')
    this.#tell(signal, `${told}\n`)
    return true
  }

  async #lookForRequests(signal: AbortSignal): Promise<boolean> {
    const window = this.#window
    if (!window) return false
    const isOver = this.#clock.nowMs() >= window.untilMs
    const waiting = ifReached(await this.#client.connectRequests.list({ signal }), isOver)
    if (signal.aborted) return false
    const ids = waiting?.map(({ request_id: id }) => id) ?? []
    for (const request of waiting ?? []) this.#show(signal, request, ids)
    if (!isOver) return false
    if (this.#window === window) this.#window = undefined
    this.#tell(signal, this.#io.paint.dim('devices can ask no longer; /requests lets them again\n'))
    return true
  }

  #show(signal: AbortSignal, request: ConnectRequestSummary, ids: readonly string[]): void {
    if (this.#shown.has(request.request_id)) return
    this.#shown.add(request.request_id)
    const id = shortestPrefix(request.request_id, ids)
    this.#tell(signal, `${askerText(request)} asks to be paired: /accept ${id} or /deny ${id}\n`)
  }

  /** What comes after a line was typed would stand in the middle of something else. */
  #tell(signal: AbortSignal, lines: string): void {
    if (!signal.aborted) this.#io.above(lines)
  }

  /** A command that fails says why, and the conversation goes on. */
  async #orSay(command: () => Promise<void>): Promise<void> {
    try {
      await command()
    } catch (error) {
      if (!(error instanceof CommandStop)) throw error
      this.#io.err(this.#errorText(error))
    }
  }

  #errorText(error: CommandStop): string {
    return `${this.#io.paint.red('error')}: ${printable(error.message)}\n`
  }
}
