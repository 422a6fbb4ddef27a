import { MalformedAnswer } from './upstream-call.ts'

/**
 * Reads newline-delimited JSON, however the bytes are split, multi-byte characters included. A last line without its
 * newline counts. Leaving the loop early cancels the body. How long a line may be is the business of the call that the
 * body comes from.
 * @throws MalformedAnswer on a line that is no JSON; the message does not quote it
 */
export async function* readNdjson(body: ReadableStream<Uint8Array>): AsyncGenerator<unknown, void> {
  const decoder = new TextDecoder()
  // The pieces of a line whose end has not come: joined once, since a long line comes in thousands of them.
  let pieces: string[] = []
  for await (const chunk of body) {
    const ends = decoder.decode(chunk, { stream: true }).split('\n')
    const rest = ends.pop() ?? ''
    for (const end of ends) {
      const line = pieces.join('') + end
      pieces = []
      if (line.trim() !== '') yield parse(line)
    }
    pieces.push(rest)
  }
  const last = pieces.join('') + decoder.decode()
  if (last.trim() !== '') yield parse(last)
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch (error) {
    throw new MalformedAnswer('its answer cannot be read', { cause: error })
  }
}
