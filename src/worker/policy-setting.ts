import type { PolicySettingResponse } from '../protocol/execution/settings.ts'
import { toWireTime } from '../protocol/time.ts'
import type { DefaultPolicy } from '../storage/d1/settings.ts'

/** What was published as answers and exports show it; nothing at all before that. */
export const toPolicySetting = (published: DefaultPolicy | null): PolicySettingResponse =>
  published === null
    ? {}
    : {
        policy: published.policy,
        local_preferences: published.localPreferences,
        updated_at: toWireTime(published.updatedAtMs),
      }
