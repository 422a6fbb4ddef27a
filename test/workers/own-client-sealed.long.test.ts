import { expect, test } from 'vitest'
import { expectWhole, FAULTS, type Fault, play } from '../support/workers/own-client-play.ts'
import { makeClient } from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'
import { newSealedSession } from '../support/workers/sealed-client.ts'

const models = scriptModels()

/** Every two requests of a run, each with the fault that its number comes to. */
function pairs(requests: number): [Fault, Fault][] {
  const fault = (at: number, n: number): Fault => ({
    at,
    kind: FAULTS[n % FAULTS.length] ?? FAULTS[0],
    dies: n % 2 === 0,
  })
  const all: [Fault, Fault][] = []
  for (let first = 0; first < requests; first++)
    for (let second = first + 1; second < requests; second++)
      all.push([fault(first, all.length), fault(second, all.length + first + 1)])
  return all
}

test('[D20, U24] two faults in one run of our own client, with and without the death of the router', async () => {
  const account = await makeClient()
  const clean = await play(models, account, await newSealedSession(account, 1), [])
  const faults = pairs(clean.requests - 1)
  expect(faults.length).toBeGreaterThan(10)
  for (const pair of faults) {
    const told = await play(models, account, await newSealedSession(account, 1), pair)
    expect({ pair, outcomes: told.outcomes.map((outcome) => outcome?.status) }).toEqual({
      pair,
      outcomes: ['completed', 'completed'],
    })
    expectWhole(told)
  }
})

test.each(FAULTS)(
  '[U02] a request %s while the router lives on: the run ends as if nothing had',
  async (kind) => {
    const account = await makeClient()
    const { requests } = await play(models, account, await newSealedSession(account, 1), [])
    for (let at = 0; at < requests - 1; at++) {
      const session = await newSealedSession(account, 1)
      expectWhole(await play(models, account, session, [{ at, kind, dies: false }]))
    }
  },
)
