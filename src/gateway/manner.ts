/** How a device wants to be spoken to. */
export type Manner = { threadNames: boolean; acknowledges: boolean }

/** The capability of a device that says how much it has read (D35). */
export const FLOW_ACK = 'flow_ack' as const

/** What the device asks for in the frame with which it comes. */
export const mannerOf = ({
  wire_names: names,
  capabilities = [],
}: {
  wire_names?: string | undefined
  capabilities?: readonly string[] | undefined
}): Manner => ({ threadNames: names === 'thread', acknowledges: capabilities.includes(FLOW_ACK) })
