import { expect, test } from 'vitest'
import { expectWhole, FAULTS, play } from '../support/workers/own-client-play.ts'
import { makeClient } from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'
import { newSealedSession } from '../support/workers/sealed-client.ts'

/** Our own client in an encrypted session whose router dies at any of its requests. */

const models = scriptModels()

test.each(FAULTS)(
  '[D20, U24, EC 17.3] the router dies when a request %s: the run ends as if nothing had happened',
  async (kind) => {
    const account = await makeClient()
    const clean = await play(models, account, await newSealedSession(account, 2), [])
    expectWhole(clean)
    expect(clean.requests).toBeGreaterThan(5)
    for (let at = 0; at < clean.requests - 1; at++) {
      const session = await newSealedSession(account, 2)
      expectWhole(await play(models, account, session, [{ at, kind, dies: true }]))
    }
  },
)
