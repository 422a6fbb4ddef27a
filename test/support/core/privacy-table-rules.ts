/** What has to come of a case of the privacy table, by a handful of plain rules and without any of the router’s code. */

import type { ErrorCode } from '../../../src/protocol/execution/errors.ts'
import { bringsSpare, type PrivacyCase, type Site, sitesOf } from './privacy-table.ts'

/** The ends of these cases in words, each once. */
export const endsOf = (cases: readonly PrivacyCase[]): string[] =>
  [
    ...new Set(
      cases.map((one) => {
        const { end } = expectedOf(one)
        return 'by' in end
          ? `${end.by}${end.fallbackUsed ? ' as a fallback' : ''}`
          : `${end.code}${end.partialBy === null ? '' : ` after a word of the ${end.partialBy} one`}`
      }),
    ),
  ].sort()

/** Every end that a case can come to. */
export const ALL_ENDS = [
  'fallback_exhausted',
  'local',
  'local as a fallback',
  'no_route',
  'override_not_allowed',
  'provider_unavailable',
  'provider_unavailable after a word of the local one',
  'provider_unavailable after a word of the remote one',
  'remote',
  'remote as a fallback',
]

/** What comes of a case. */
export type Expected = {
  /** Model calls of the turn that counts, and of the round before it, in order. */
  asked: Site[]
  /** The disclosures that the user is asked for, in order. */
  gates: Site[]
  end: { by: Site; fallbackUsed: boolean } | { code: ErrorCode; partialBy: Site | null }
  /** No request of any kind reaches the remote provider. */
  remoteIsSilent: boolean
  /** What was said in the run stays with local models for good, the user's words included. */
  keptLocal: boolean
}

/** Both turns of a case; a run that fails in the first one never comes to the second. */
export function expectedOf(one: PrivacyCase): Expected {
  const run: Run = { asked: [], gates: [], approved: new Set(), declined: new Set() }
  let end: Expected['end'] | null = null
  if (one.roundBefore) {
    const first = walk(one, run, { isFirst: true })
    if ('code' in first) end = first
  }
  end ??= walk(one, run, { isFirst: false })
  const { asked, gates, declined } = run
  return {
    asked,
    gates,
    end,
    remoteIsSilent: !sitesOf(one.route).includes('remote') || isBound(one, true),
    keptLocal: declined.has('remote') || ['mode deny', 'local_only', 'no_network'].includes(one.binding),
  }
}

type Run = { asked: Site[]; gates: Site[]; approved: Set<Site>; declined: Set<Site> }

function walk(one: PrivacyCase, run: Run, { isFirst }: { isFirst: boolean }): Expected['end'] {
  const { binding, route, fails } = one
  const explicit = route.startsWith('explicit')
  // What a local model said before may repeat what it saw, and has to be in the prompt of the turn that follows.
  const bound = isBound(one, isFirst) || (!isFirst && run.asked.includes('local') && bringsSpare(one))
  const asking: Site | null = binding.startsWith('local mode ask')
    ? 'local'
    : binding.startsWith('mode ask') || binding.startsWith('no mode')
      ? 'remote'
      : null
  const isOut = (site: Site): boolean =>
    run.declined.has(site) || (site === 'remote' ? bound : binding === 'local mode deny')
  const failed = new Set<Site>()
  let code: ErrorCode | null = null
  for (let index = 0; index < sitesOf(route).length; index++) {
    const site = sitesOf(route)[index]
    if (site === undefined || failed.has(site)) continue
    if (isOut(site) || fails[site] === 'cannot be listed') continue
    if (site === asking && !run.approved.has(site)) {
      run.gates.push(site)
      // What failed before the question was told then; what is told from here on is what comes of the answer.
      code = null
      if (binding.endsWith('declined')) {
        run.declined.add(site)
        index = -1
        continue
      }
      run.approved.add(site)
    }
    run.asked.push(site)
    if (isFirst || fails[site] === 'does not fail') return { by: site, fallbackUsed: index > 0 }
    if (fails[site] !== 'breaks before its first token')
      return { code: 'provider_unavailable', partialBy: site }
    failed.add(site)
    code = 'provider_unavailable'
  }
  const none = (): ErrorCode => {
    if (route === 'explicit remote' && bound) return 'override_not_allowed'
    if (run.declined.has('remote') || (bound && !explicit)) return 'no_route'
    // One that cannot be listed is not known to be local.
    const isShut = (site: Site) => site === 'local' && isOut(site) && fails[site] !== 'cannot be listed'
    if (sitesOf(route).some(isShut)) return 'no_route'
    return explicit ? 'provider_unavailable' : 'fallback_exhausted'
  }
  return { code: code ?? none(), partialBy: null }
}

function isBound({ binding, route }: PrivacyCase, isFirst: boolean): boolean {
  switch (binding) {
    case 'mode allow':
    case 'mode ask, approved':
    case 'mode ask, declined':
    case 'no mode, approved':
    case 'no mode, declined':
    case 'local mode ask, approved':
    case 'local mode ask, declined':
    case 'local mode deny':
    case 'content that can be left out':
      return false
    case 'a rule that says local_only':
      // An explicit model goes by no rule.
      return !route.startsWith('explicit')
    case 'a call that reads a restricted file':
      return !isFirst
    default:
      return true
  }
}
