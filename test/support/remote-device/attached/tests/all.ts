import type { AttachTest } from './attach-test.ts'
import { ATTACHING } from './attaching.ts'
import { CONTENTS } from './contents.ts'
import { DECISIONS } from './decisions.ts'
import { HOST_WIDE } from './host-wide.ts'
import { IMAGES } from './images.ts'
import { PROMPTS } from './prompts.ts'
import { RECEIPTS } from './receipts.ts'
import { SETTINGS } from './settings.ts'

/** What the contract says of attached devices, by its sections. */
export const SUITES: Readonly<Record<string, readonly AttachTest[]>> = {
  attaching: ATTACHING,
  prompts: PROMPTS,
  decisions: DECISIONS,
  receipts: RECEIPTS,
  contents: CONTENTS,
  settings: SETTINGS,
  'host-wide operations': HOST_WIDE,
  images: IMAGES,
}
