import type { RemoteOperation } from '../../protocol/remote/operations.ts'
import type { OutrightResult } from '../../protocol/remote/results.ts'
import { utf8Bytes } from '../../protocol/remote/utf8.ts'
import type { Database } from '../../storage/d1/database.ts'
import { type HostSettings, loadSettings, patchSettings } from '../../storage/d1/settings.ts'
import { refusal } from '../refusal.ts'
import { applied, type HostOutcome, rejected } from './outcome.ts'

type Change = Extract<RemoteOperation, { type: 'set_settings' }>['settings']

/** Names of agents and models are short; longer ones are no names. */
const MAX_SETTING_BYTES = 256

/** What new sessions start with (remote protocol, "Usage, host settings and thread status"). */
export async function getSettings(db: Database, userId: string): Promise<OutrightResult> {
  const settings = await loadSettings(db, userId)
  return settings === null ? GONE : toResult(settings)
}

/** Null takes a setting away, and what is absent stays; the answer is all of them. */
export async function setSettings(db: Database, userId: string, change: Change): Promise<HostOutcome> {
  const odd = Object.entries(change).find(([, value]) => value !== null && !isName(value))
  if (odd !== undefined)
    return rejected(
      'invalid_request',
      `settings.${odd[0]} is blank or longer than ${MAX_SETTING_BYTES} bytes`,
    )
  const { harness, model, effort } = change
  const settings = await patchSettings(db, userId, {
    ...(harness === undefined ? {} : { harness }),
    ...(model === undefined ? {} : { model }),
    ...(effort === undefined ? {} : { effort }),
  })
  return settings === null ? { receipt: 'rejected', result: GONE } : applied(toResult(settings))
}

const GONE = refusal('internal', 'the account is gone')

const isName = (value: string | undefined): boolean =>
  value === undefined || (/\S/.test(value) && value.isWellFormed() && utf8Bytes(value) <= MAX_SETTING_BYTES)

const toResult = ({ harness, model, effort }: HostSettings): OutrightResult => ({
  type: 'settings',
  ...(harness === undefined ? {} : { harness }),
  ...(model === undefined ? {} : { model }),
  ...(effort === undefined ? {} : { effort }),
})
