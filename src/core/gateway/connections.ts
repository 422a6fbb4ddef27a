/** A device's connection as the gateway holds it. */
export type HeldSocket = {
  id: string
  /** Null: not authenticated yet. */
  deviceId: string | null
  address: string
  lastHeardAtMs: number
}

/** Strangers: few per address, so that one cannot keep the others out (D41). */
const MAX_UNAUTHENTICATED_PER_ADDRESS = 4
const MAX_UNAUTHENTICATED = 64

/** Devices: twice as many connections as there may be devices, and no device may take them all (D36). */
const MAX_CONNECTIONS = 64
const MAX_CONNECTIONS_PER_DEVICE = 8
/** At the cap, a connection that said nothing for so long gives way. Until then silence ends none. */
const SILENT_MS = 90_000

/**
 * Sockets that were told their end and whose peers do not answer: the platform waits for them without a limit. They have
 * places of their own, or their holders would keep everybody else out for as long as they like.
 */
const MAX_LINGERING_PER_ADDRESS = 16
const MAX_LINGERING = 1024

/**
 * Whether one more socket from this address is let in, before it has said who it is.
 * @param lingering the addresses of sockets that were closed from our side, once per socket
 */
export function admitUpgrade(
  held: readonly HeldSocket[],
  lingering: readonly string[],
  address: string,
): boolean {
  const strangers = held.filter((socket) => socket.deviceId === null)
  const ofAddress = strangers.filter((socket) => socket.address === address)
  return (
    strangers.length < MAX_UNAUTHENTICATED &&
    ofAddress.length < MAX_UNAUTHENTICATED_PER_ADDRESS &&
    lingering.length < MAX_LINGERING &&
    lingering.filter((other) => other === address).length < MAX_LINGERING_PER_ADDRESS
  )
}

/**
 * Whether a socket that proved to be this device may stay, and which ones have to go for it, by id. A device that has
 * all that it may have loses the one that was silent longest. Otherwise, when all places are taken, the one that was
 * silent longest of those unheard for 90 s goes; without such a one the device is refused, and nobody goes.
 */
export function admitDevice(
  held: readonly HeldSocket[],
  deviceId: string,
  nowMs: number,
): { ok: true; evict: string[] } | { ok: false } {
  const longestSilent = held
    .filter((socket) => socket.deviceId !== null)
    .toSorted((a, b) => a.lastHeardAtMs - b.lastHeardAtMs)

  const own = longestSilent.filter((socket) => socket.deviceId === deviceId)
  const evict = own.slice(0, surplus(own.length, MAX_CONNECTIONS_PER_DEVICE))

  const staying = longestSilent.filter((socket) => !evict.includes(socket))
  const inTheWay = surplus(staying.length, MAX_CONNECTIONS)
  const silent = staying.filter((socket) => nowMs - socket.lastHeardAtMs >= SILENT_MS)
  if (silent.length < inTheWay) return { ok: false }
  return { ok: true, evict: [...evict, ...silent.slice(0, inTheWay)].map((socket) => socket.id) }
}

/** How many of `count` have to go so that one more is within the limit. */
const surplus = (count: number, limit: number): number => Math.max(0, count + 1 - limit)
