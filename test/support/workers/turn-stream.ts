import { TurnEvent } from '../../../src/protocol/execution/stream.ts'

export const STREAM = { Accept: 'text/event-stream' }

/** One server-sent event of a turn. */
export type Frame = { id: string; event: TurnEvent }

/** A turn's stream, read as it comes. Every record must be one `id` line and one `data` line with an event of the contract (EC 18). */
export class TurnStream {
  readonly #reader: ReadableStreamDefaultReader<string>
  #text = ''
  #ended = false

  constructor(response: Response) {
    const type = response.headers.get('Content-Type')
    if (response.status !== 200 || type !== 'text/event-stream' || response.body === null) {
      throw new Error(`no event stream: ${response.status} ${type}`)
    }
    this.#reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  }

  /** The next event; null at the end of the stream. */
  async next(): Promise<Frame | null> {
    for (;;) {
      const end = this.#text.indexOf('\n\n')
      if (end >= 0) {
        const record = this.#text.slice(0, end)
        this.#text = this.#text.slice(end + 2)
        if (record.startsWith(':')) continue
        return parseRecord(record)
      }
      if (this.#ended) {
        if (this.#text !== '') throw new Error(`the stream ends in the middle of a record: ${this.#text}`)
        return null
      }
      const { done, value } = await this.#reader.read()
      if (done) this.#ended = true
      else this.#text += value
    }
  }

  /** Events up to and with the first that fits. */
  async until(fits: (event: TurnEvent) => boolean): Promise<Frame[]> {
    const frames: Frame[] = []
    for (;;) {
      const frame = await this.next()
      if (frame === null) throw new Error('the stream ended before that')
      frames.push(frame)
      if (fits(frame.event)) return frames
    }
  }

  async rest(): Promise<Frame[]> {
    const frames: Frame[] = []
    for (let frame = await this.next(); frame !== null; frame = await this.next()) frames.push(frame)
    return frames
  }

  /** The reader goes away. */
  cancel(): Promise<void> {
    return this.#reader.cancel()
  }
}

function parseRecord(record: string): Frame {
  const match = /^id: (\S+)\ndata: (.*)$/.exec(record)
  if (match?.[1] === undefined || match[2] === undefined) throw new Error(`not a record: ${record}`)
  return { id: match[1], event: TurnEvent.parse(JSON.parse(match[2])) as TurnEvent }
}

export const eventsOf = async (response: Response): Promise<TurnEvent[]> =>
  (await new TurnStream(response).rest()).map(({ event }) => event)

export const textOf = (events: readonly TurnEvent[]): string =>
  events.map((event) => (event.type === 'text_delta' ? event.delta : '')).join('')

export type TurnEnd = Extract<TurnEvent, { type: 'turn_end' }>

/** The one `turn_end`, which must be the last event. */
export function endOf(events: readonly TurnEvent[]): TurnEnd {
  const ends = events.filter((event) => event.type === 'turn_end')
  const last = events.at(-1)
  if (ends.length !== 1 || last?.type !== 'turn_end') {
    throw new Error(`expected one turn_end, at the end: ${JSON.stringify(events)}`)
  }
  return last
}
