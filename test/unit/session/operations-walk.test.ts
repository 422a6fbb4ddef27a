import { expect, test, vi } from 'vitest'
import { type OperationTally, walkOperations } from '../../support/node/operations-walk.ts'

test('[D29][U06][U14][U21] in 60 random sessions every request is done at most once, and everything that was taken runs', async () => {
  vi.spyOn(console, 'error').mockImplementation(() => {})
  vi.spyOn(console, 'warn').mockImplementation(() => {})
  const tally: OperationTally = new Map()
  for (let seed = 1; seed <= 60; seed++) await walkOperations(seed, 60, tally)
  for (const [what, times] of Object.entries({
    'submit_prompt applied': 20,
    'submit_prompt busy': 50,
    'submit_prompt internal': 5,
    'queue applied': 50,
    'queue not_running': 5,
    'steer applied': 30,
    'steer unsupported_operation': 20,
    'cancel_turn applied': 20,
    'cancel_turn stale_turn': 50,
    'answer_question applied': 15,
    'answer_question stale_question': 30,
    'resolve_approval applied': 10,
    'resolve_approval stale_approval': 30,
    'sent again': 100,
    crash: 100,
    'client results': 20,
  }))
    expect([what, (tally.get(what) ?? 0) >= times]).toEqual([what, true])
}, 60_000)
