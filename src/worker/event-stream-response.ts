/** Server-sent events, which nothing on the way may keep, change or hold back (U46). */
export const eventStreamResponse = (stream: ReadableStream<Uint8Array>): Response =>
  new Response(stream, {
    headers: {
      'Content-Type': 'text/event-stream',
      'Cache-Control': 'no-store, no-transform',
      'X-Accel-Buffering': 'no',
    },
  })
