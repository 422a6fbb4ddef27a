/** Runs one case of the privacy table on a router, whichever it is, and holds what comes of it against the rules. */

import { expect } from 'vitest'
import type { RunInput } from '../../../src/core/turn-view.ts'
import type { ContinueRequest } from '../../../src/protocol/execution/continue.ts'
import type { TurnResponse } from '../../../src/protocol/execution/turn.ts'
import {
  bodyOf,
  bringsSpare,
  CONSTRAINED,
  laterBody,
  MARK,
  MODEL,
  marksIn,
  marksOf,
  type PrivacyCase,
  readPath,
  resultOf,
  type Site,
} from './privacy-table.ts'
import { expectedOf } from './privacy-table-rules.ts'

/** A request that reached a provider: all of it, as text. */
export type Logged = { kind: 'listing' | 'completion'; text: string }

/** What a provider does with a request. */
export type Doing =
  | { does: 'refuse' }
  | { does: 'offer' }
  | {
      does: 'say'
      pieces: string[]
      call?: { name: string; arguments: Record<string, unknown> }
      /** Where the connection breaks, if it does. */
      breaks?: 'before the text' | 'after the first piece' | 'before the end'
    }

/** A router with a local and a remote provider, each with one model. */
export type TableRouter = {
  /** Decides what the providers do from now on. */
  script(next: (site: Site, request: Logged) => Doing): void
  /** Every request that reached the provider, in order. */
  log(site: Site): Logged[]
  execute(body: RunInput): Promise<TurnResponse>
  proceed(message: ContinueRequest): Promise<TurnResponse>
  /** What is remembered is for local models alone; false where nothing can be made to be remembered so. */
  remember(content: string): boolean
  /** What the session keeps of what models said in its first run. */
  said(): Promise<{ text: string; interrupted: boolean }[]>
}

const FIRST_PIECE: Record<Site, string> = { local: 'local read', remote: 'remote read' }
const LAST_PIECE = ', and that is all'

export async function runCase(one: PrivacyCase, router: TableRouter): Promise<void> {
  let stage: 'round' | 'counts' | 'later' = one.roundBefore ? 'round' : 'counts'
  const asked: Site[] = []
  router.script((site, request) => {
    if (request.kind === 'listing')
      return stage !== 'later' && one.fails[site] === 'cannot be listed'
        ? { does: 'refuse' }
        : { does: 'offer' }
    if (stage !== 'later') asked.push(site)
    if (stage === 'round')
      return {
        does: 'say',
        pieces: ['let me look'],
        call: { name: 'read_file', arguments: { path: readPath(one) } },
      }
    const pieces = [[FIRST_PIECE[site], ...marksIn(request.text)].join(' '), LAST_PIECE]
    if (stage === 'later') return { does: 'say', pieces }
    switch (one.fails[site]) {
      case 'breaks before its first token':
        return { does: 'say', pieces, breaks: 'before the text' }
      case 'breaks after its first text':
        return { does: 'say', pieces, breaks: 'after the first piece' }
      case 'breaks before its end':
        return { does: 'say', pieces, breaks: 'before the end' }
      default:
        return { does: 'say', pieces }
    }
  })

  const remembered = bringsSpare(one) && router.remember(MARK.fact)
  const gates: Site[] = []
  let outcome = await router.execute(bodyOf(one))
  while (outcome.status === 'awaiting_approval' || outcome.status === 'awaiting_tool') {
    if (outcome.status === 'awaiting_tool') {
      stage = 'counts'
      const results = outcome.data.tool_requests.map(({ call_id }) => ({
        call_id,
        content: resultOf(one),
        is_error: false,
      }))
      outcome = await router.proceed({ type: 'tool_results', data: { results } })
      continue
    }
    const { approval_id, kind, detail } = outcome.data.approval
    const site = detail?.local === true ? 'local' : 'remote'
    expect({ kind, detail }).toMatchObject({ kind: 'remote_disclosure', detail: MODEL[site] })
    const goes = site === 'local' && bringsSpare(one)
    expect(String(detail?.paths).includes('secrets/spare'), 'what is asked for is what goes').toBe(goes)
    if (gates.push(site) > 2) throw new Error('asked again and again')
    const decision = one.binding.endsWith('declined') ? ('rejected' as const) : ('approved' as const)
    outcome = await router.proceed({
      type: 'approval_decisions',
      data: { decisions: [{ approval_id, decision }] },
    })
  }
  check(one, router, { outcome, asked, gates, remembered, said: await router.said() })
  // Whoever could not be asked is not asked again for a while.
  if (one.fails.remote === 'cannot be listed') return
  stage = 'later'
  await checkLater(one, router)
}

type Told = {
  outcome: TurnResponse
  asked: Site[]
  gates: Site[]
  remembered: boolean
  said: { text: string; interrupted: boolean }[]
}

function check(one: PrivacyCase, router: TableRouter, told: Told): void {
  const { outcome, asked, gates, remembered, said } = told
  const want = expectedOf(one)
  const remote = router.log('remote')
  if (want.remoteIsSilent) expect(remote, 'a turn that is bound asks a remote provider nothing').toEqual([])
  for (const { text } of remote) {
    for (const mark of CONSTRAINED) expect(text, 'content that only local models may see').not.toContain(mark)
  }
  for (const { kind, text } of remote) {
    if (kind === 'listing') expect(marksIn(text), 'a listing holds nothing of the user').toEqual([])
    else expect(text, 'what may be seen is seen').toContain(MARK.open)
  }
  for (const { kind, text } of router.log('local')) {
    if (kind === 'listing') continue
    for (const mark of [...marksOf(one), ...(remembered ? [MARK.fact] : [])])
      expect(text, 'a local model sees it all').toContain(mark)
  }
  expect({ asked, gates }).toEqual({ asked: want.asked, gates: want.gates })

  const { end } = want
  if ('by' in end) {
    expect(outcome).toMatchObject({
      status: 'completed',
      data: {
        message: MODEL[end.by],
        routing: {
          ...MODEL[end.by],
          fallback_used: end.fallbackUsed,
          override_used: one.route.startsWith('explicit'),
        },
      },
    })
    expect(said.at(-1)?.text).toMatch(new RegExp(`^${FIRST_PIECE[end.by]}.*${LAST_PIECE}$`))
    expect(said.at(-1)?.interrupted).toBe(false)
    return
  }
  expect(outcome).toMatchObject({ status: 'error', data: { error: { code: end.code } } })
  const interrupted = said.filter((message) => message.interrupted)
  if (end.partialBy === null) expect(interrupted).toEqual([])
  else {
    expect(interrupted).toHaveLength(1)
    expect(interrupted[0]?.text).toMatch(new RegExp(`^${FIRST_PIECE[end.partialBy]}`))
    expect(interrupted[0]?.text.endsWith(LAST_PIECE)).toBe(
      one.fails[end.partialBy] === 'breaks before its end',
    )
  }
}

/** What a remote model is told afterwards of what was said in the run. */
async function checkLater(one: PrivacyCase, router: TableRouter): Promise<void> {
  const { keptLocal, end } = expectedOf(one)
  const before = router.log('remote').length
  expect(await router.execute(laterBody())).toMatchObject({
    status: 'completed',
    data: { message: MODEL.remote },
  })
  const text = router
    .log('remote')
    .slice(before)
    .flatMap((request) => (request.kind === 'completion' ? [request.text] : []))
    .join('\n')
  const marks = marksIn(text)
  for (const mark of CONSTRAINED) expect(marks, 'content that only local models may see').not.toContain(mark)
  expect(marks).toContain(MARK.later)
  if (keptLocal)
    expect(
      marks.filter((mark) => mark !== MARK.later),
      'what was kept local stays so',
    ).toEqual([])
  else expect(marks, 'what the user said is ordinary history').toContain(MARK.prompt)
  if (!keptLocal && 'by' in end && end.by === 'remote')
    expect(text, 'what a remote model said is, too').toContain(FIRST_PIECE.remote)
}
