// The platform rings the hourly clean-up of a deployed router (D31); nobody rings it for a local one.

/** A router that has just started has better things to do. */
const FIRST_MS = 60_000
const EVERY_MS = 60 * 60_000

/**
 * Rings the clean-up of a local router, soon after its start and each hour. Keeps no process alive. A router that does
 * not answer is asked again the next hour; what the clean-up itself has to say stands in the router's log.
 * @param {string} origin of the router
 * @param {(url: string) => Promise<unknown>} ring
 * @returns {() => void} stops it
 */
export function startCleanUpTimer(origin, ring = (url) => fetch(url)) {
  const url = `${origin}/cdn-cgi/handler/scheduled`
  const call = () => {
    ring(url).catch((/** @type {unknown} */ error) => {
      console.error(`the clean-up could not be started: ${error instanceof Error ? error.message : error}`)
    })
  }
  const first = setTimeout(call, FIRST_MS)
  const hourly = setInterval(call, EVERY_MS)
  first.unref()
  hourly.unref()
  return () => {
    clearTimeout(first)
    clearInterval(hourly)
  }
}
