import type { WireNames } from '../protocol/remote/decode-request.ts'
import type { RemoteEvent } from '../protocol/remote/events.ts'
import type { RemoteEventFrame } from '../protocol/remote/frame.ts'
import { MAX_FRAME_BYTES, REMOTE_PROTOCOL_VERSION } from '../protocol/remote/limits.ts'
import { toThreadNames } from '../protocol/remote/wire-names.ts'
import { byteLength } from '../storage/limits.ts'

/** A frame as it is sent, and how long it is. */
export type FrameText = { text: string; bytes: number }

/** Ours count no generations (RF 2). */
const GENERATION = 0

/**
 * An event with a name that the vocabularies spell differently holds one of these, be it in a text: then the translation
 * finds nothing to do.
 */
const MAY_HOLD_NAMES = /"session(?:_id|_closed)?"/

/**
 * The event frames of one registration of a session, each made once for all devices that get it. Events come as JSON and
 * are put into their frames unread; only those that may hold session names are translated for thread connections.
 */
export class EventFrames {
  readonly #sessionId: string
  readonly #epoch: number
  readonly #made = new Map<string, FrameText>()

  constructor(sessionId: string, epoch: number) {
    this.#sessionId = sessionId
    this.#epoch = epoch
  }

  /**
   * @param key tells this event from others of the registration
   * @param event the JSON of a `RemoteEvent`
   */
  frame(key: string | number, sequence: number, event: string, names: WireNames): FrameText {
    const id = `${names} ${key}`
    const made = this.#made.get(id)
    if (made) return made
    const text = this.#text(sequence, event, names)
    const frame = { text, bytes: byteLength(text) }
    this.#made.set(id, frame)
    return frame
  }

  #text(sequence: number, event: string, names: WireNames): string {
    if (names === 'thread' && MAY_HOLD_NAMES.test(event)) {
      const parsed: RemoteEvent = JSON.parse(event)
      return JSON.stringify(
        toThreadNames({
          kind: 'event',
          protocol_version: REMOTE_PROTOCOL_VERSION,
          session_id: this.#sessionId,
          registration_epoch: this.#epoch,
          sequence,
          generation: GENERATION,
          event: parsed,
        } satisfies RemoteEventFrame),
      )
    }
    const idField = names === 'thread' ? 'thread_id' : 'session_id'
    const id = JSON.stringify(this.#sessionId)
    return `{"kind":"event","protocol_version":${REMOTE_PROTOCOL_VERSION},"${idField}":${id},"registration_epoch":${this.#epoch},"sequence":${sequence},"generation":${GENERATION},"event":${event}}`
  }
}

export const fitsFrame = ({ bytes }: FrameText): boolean => bytes <= MAX_FRAME_BYTES
