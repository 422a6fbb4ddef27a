import { expect, test } from 'vitest'
import { checkPrivacy, nothingSeen } from '../../support/core/privacy-rules.ts'

test('[U37][EC 9] in 2,000 random turns no byte of constrained content is in a request to a remote model', () => {
  const seen = nothingSeen()
  for (let seed = 1; seed <= 2000; seed++) checkPrivacy(seed, seen)
  for (const [what, times] of Object.entries(seen)) expect([what, times > 250]).toEqual([what, true])
}, 60_000)
