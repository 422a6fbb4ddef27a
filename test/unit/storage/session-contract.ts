import { ITEM_RULES } from './contract/item-rules.ts'
import { MEMORY_RULES } from './contract/memory-rules.ts'
import { MESSAGE_RULES } from './contract/message-rules.ts'
import { MIGRATION_RULES } from './contract/migration-rules.ts'
import { POLICY_RULES } from './contract/policy-rules.ts'
import { RING_RULES } from './contract/ring-rules.ts'
import { ROW_RULES } from './contract/row-rules.ts'
import type { StorageRule } from './contract/rules.ts'
import { SEALED_FACT_RULES } from './contract/sealed-fact-rules.ts'
import { SEALED_RULES } from './contract/sealed-rules.ts'
import { SETTLED_RULES } from './contract/settled-rules.ts'
import { SIZE_RULES } from './contract/size-rules.ts'
import { STEP_RULES } from './contract/step-rules.ts'
import { TEXT_RULES } from './contract/text-rules.ts'
import { TURN_RULES } from './contract/turn-rules.ts'
import { UPLOAD_RULES } from './contract/upload-rules.ts'

/** What the session’s storage must do on any SQLite: in an object, and in Node. */
export const STORAGE_RULES: readonly StorageRule[] = [
  ...TEXT_RULES,
  ...MESSAGE_RULES,
  ...TURN_RULES,
  ...ITEM_RULES,
  ...SIZE_RULES,
  ...ROW_RULES,
  ...RING_RULES,
  ...STEP_RULES,
  ...SETTLED_RULES,
  ...MEMORY_RULES,
  ...POLICY_RULES,
  ...SEALED_RULES,
  ...SEALED_FACT_RULES,
  ...UPLOAD_RULES,
  ...MIGRATION_RULES,
]
