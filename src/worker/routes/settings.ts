import { Hono } from 'hono'
import { failure } from '../../protocol/execution/errors.ts'
import { PutPolicyRequest } from '../../protocol/execution/settings.ts'
import { openDatabase } from '../../storage/d1/database.ts'
import { loadDefaultPolicy, saveDefaultPolicy } from '../../storage/d1/settings.ts'
import { byteLength, MAX_D1_TEXT_BYTES } from '../../storage/limits.ts'
import { readBody } from '../body.ts'
import type { AppEnv } from '../context.ts'
import { failed } from '../errors.ts'
import { identify } from '../middleware/identify.ts'
import { loosenedPermissions, tooManyPatterns, unknownCapabilities } from '../policy-refusals.ts'
import { toPolicySetting } from '../policy-setting.ts'
import { beyondBounds, POLICY_BOUNDS } from '../request-bounds.ts'

/** What holds for an account, as its owner says (D07). */
export const settings = new Hono<AppEnv>()

settings.use(identify)

settings.get('/policy', async (c) =>
  c.json(toPolicySetting(await loadDefaultPolicy(openDatabase(c.env.DB), c.var.identity.userId))),
)

settings.put('/policy', async (c) => {
  const body = await readBody(c, PutPolicyRequest, notToCarryOut)
  if (!body.ok) return failed(c, body.error)
  const { policy, local_preferences: preferences } = body.value.value
  const published = { policy, localPreferences: preferences ?? CAUTIOUS, updatedAtMs: Date.now() }
  if (byteLength(JSON.stringify(published)) > MAX_D1_TEXT_BYTES) return failed(c, TOO_LONG)
  // An account that is deleted at this moment has nothing more to say.
  await saveDefaultPolicy(openDatabase(c.env.DB), c.var.identity.userId, published)
  return c.json(toPolicySetting(published))
})

const CAUTIOUS = { auto_apply: false, local_only: false, no_network: false }

/** What `execute` would refuse is refused when it is published: whoever is at the phone cannot put it right. */
const notToCarryOut = (json: unknown) => [
  ...unknownCapabilities(json),
  ...tooManyPatterns(json),
  ...beyondBounds(POLICY_BOUNDS)(json),
  ...loosenedPermissions(json),
]

const TOO_LONG = failure(
  'invalid_request',
  `a published policy takes at most ${MAX_D1_TEXT_BYTES} bytes as JSON`,
  { max_bytes: MAX_D1_TEXT_BYTES },
)
