import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { BINDINGS, ROUTES, shareOf, titleOf } from '../core/privacy-table.ts'
import { ALL_ENDS, endsOf } from '../core/privacy-table-rules.ts'
import { runCase } from '../core/privacy-table-run.ts'
import { startTableRouters, type TableRouters } from './privacy-table-router.ts'

/** A whole route's cases, each over real sockets, on a machine that is busy with something else. */
const PATIENCE_MS = 60_000

/** Tests for one in so many cases of the table; 1 is the whole of it. */
export function describePrivacyTable(oneIn: number): void {
  let routers: TableRouters
  beforeAll(async () => {
    routers = await startTableRouters()
  })
  afterAll(() => routers.close())

  describe.each(BINDINGS)('[U37][EC 9] bound by %s', (binding) => {
    test.each(ROUTES)(
      'route: %s',
      async (route) => {
        for (const one of shareOf(binding, route, oneIn)) {
          try {
            await runCase(one, routers.fresh())
          } catch (error) {
            throw new Error(titleOf(one), { cause: error })
          }
        }
      },
      PATIENCE_MS,
    )
  })

  test('the cases come to every end there is', () => {
    const cases = BINDINGS.flatMap((binding) => ROUTES.flatMap((route) => shareOf(binding, route, oneIn)))
    expect(endsOf(cases)).toEqual(ALL_ENDS)
  })
}
