import { z } from 'zod'

/** The models and efforts that a device may choose from for one session (remote protocol, "Session model and reasoning controls"). */
export const RemoteSessionSettings = z
  .object({
    models: z.array(z.object({ id: z.string(), model: z.string(), reasoning_efforts: z.array(z.string()) })),
    selected_model: z.string().describe('The `id` of one of `models`.'),
    reasoning_effort: z.string().describe('`default` when nothing overrides it.'),
    can_change: z.boolean(),
  })
  .meta({ id: 'RemoteSessionSettings' })
export type RemoteSessionSettings = z.infer<typeof RemoteSessionSettings>
