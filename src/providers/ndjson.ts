import { MalformedAnswer } from './upstream-call.ts'

/** One line is one piece of an answer; even a whole buffered one stays far below. */
const MAX_LINE_CHARS = 8 * 1024 * 1024

/**
 * Reads newline-delimited JSON, however the bytes are split, multi-byte characters included. A last line without its
 * newline counts. Leaving the loop early cancels the body.
 * @throws MalformedAnswer on a line that is no JSON; the message does not quote it
 */
export async function* readNdjson(body: ReadableStream<Uint8Array>): AsyncGenerator<unknown, void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of body) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > MAX_LINE_CHARS) throw new MalformedAnswer('a line of its answer is too long')
    for (const line of lines) if (line.trim() !== '') yield parse(line)
  }
  rest += decoder.decode()
  if (rest.trim() !== '') yield parse(rest)
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch (error) {
    throw new MalformedAnswer('its answer cannot be read', { cause: error })
  }
}
