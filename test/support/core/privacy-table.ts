/**
 * The cases of the privacy table: what binds a turn to local models, crossed with the route, with how each model of it
 * fails, and with a round of calls before. `privacy-table-rules.ts` says what has to come of each.
 */

import type { RunInput } from '../../../src/core/turn-view.ts'
import { makeFile, makeRequest, type RequestParts } from './builders.ts'

export type Site = 'local' | 'remote'

export const MODEL: Record<Site, { provider: string; model: string }> = {
  local: { provider: 'ollama', model: 'small' },
  remote: { provider: 'openai-compat:cloud', model: 'big' },
}
const nameOf = (site: Site): string => `${MODEL[site].provider}/${MODEL[site].model}`

export const BINDINGS = [
  'mode allow',
  'mode ask, approved',
  'mode ask, declined',
  'no mode, approved',
  'no mode, declined',
  'mode deny',
  'local mode ask, approved',
  'local mode ask, declined',
  'local mode deny',
  'local_only',
  'no_network',
  'a rule that says local_only',
  'a required file of restricted_paths',
  'a required file of blocked_paths',
  'a required file of a local_only rule',
  'a referenced path',
  'an instruction',
  'content that can be left out',
  'a call that reads a restricted file',
] as const
export type Binding = (typeof BINDINGS)[number]

export const ROUTES = [
  'local, then remote',
  'remote, then local',
  'remote',
  'local',
  'explicit remote',
  'explicit local',
] as const
export type Route = (typeof ROUTES)[number]

/** How a model fails in the turn that counts; its models cannot be listed from the beginning on. */
export const FAILURES = [
  'does not fail',
  'cannot be listed',
  'breaks before its first token',
  'breaks after its first text',
  'breaks before its end',
] as const
export type Failing = (typeof FAILURES)[number]

export type PrivacyCase = {
  binding: Binding
  route: Route
  fails: Record<Site, Failing>
  /** The models have called a tool before; the turn that counts is the second one of the run. */
  roundBefore: boolean
}

/** The models of a route, first choice first. */
export const sitesOf = (route: Route): Site[] =>
  route.match(/local|remote/g)?.map((site) => (site === 'local' ? 'local' : 'remote')) ?? []

/** The whole product. A failure of a model that is not in the route is no case of its own. */
export const PRIVACY_CASES: readonly PrivacyCase[] = BINDINGS.flatMap((binding) =>
  ROUTES.flatMap((route) =>
    FAILURES.flatMap((local) =>
      FAILURES.flatMap((remote) =>
        [false, true].map((roundBefore) => ({ binding, route, fails: { local, remote }, roundBefore })),
      ),
    ),
  ),
).filter(
  ({ binding, route, fails, roundBefore }) =>
    (roundBefore || binding !== 'a call that reads a restricted file') &&
    (['local', 'remote'] as const).every(
      (site) => fails[site] === FAILURES[0] || sitesOf(route).includes(site),
    ),
)

/** One in so many of the cases of a binding and a route, from another one on for each, so that all failures occur. */
export function shareOf(binding: Binding, route: Route, oneIn: number): PrivacyCase[] {
  const group = PRIVACY_CASES.filter((one) => one.binding === binding && one.route === route)
  const ordinal = BINDINGS.indexOf(binding) * ROUTES.length + ROUTES.indexOf(route)
  const first = (ordinal * 3) % Math.min(oneIn, group.length)
  return group.filter((_, index) => index % oneIn === first)
}

export const titleOf = ({ binding, route, fails, roundBefore }: PrivacyCase): string =>
  `${binding}; route: ${route}; the local one ${fails.local}, the remote one ${fails.remote}${roundBefore ? '; after a round of calls' : ''}`

/** Every piece of content carries a mark of its own; models repeat the marks that they see. */
export const MARK = {
  prompt: '<<prompt>>',
  open: '<<open>>',
  required: '<<required>>',
  spare: '<<spare>>',
  fact: '<<fact>>',
  result: '<<result>>',
  read: '<<read>>',
  later: '<<later>>',
} as const
export const marksIn = (text: string): string[] => [...new Set(text.match(/<<\w+>>/g))]

/** What no remote model may ever see. */
export const CONSTRAINED = [MARK.required, MARK.spare, MARK.fact, MARK.read]

/** What the case's tool call reads. */
export const readPath = ({ binding }: PrivacyCase): string =>
  binding === 'a call that reads a restricted file' ? 'secrets/read' : 'src/read.ts'
export const resultOf = ({ binding }: PrivacyCase): string =>
  binding === 'a call that reads a restricted file' ? MARK.read : MARK.result

/** All bindings but one come with something constrained that can be left out: a file and a fact. */
export const bringsSpare = ({ binding }: PrivacyCase): boolean => binding !== 'mode allow'

/** The request of a case. */
export function bodyOf(one: PrivacyCase): RunInput {
  const { binding, route } = one
  const [first = 'local', ...rest] = sitesOf(route)
  const explicit = route.startsWith('explicit')
  const references = explicit
    ? { model: nameOf('local') }
    : { model: nameOf(first), fallbacks: rest.map(nameOf) }
  const required = REQUIRED[binding]
  return makeRequest({
    text: `please look ${MARK.prompt}`,
    ...(explicit ? { explicitModel: nameOf(first) } : {}),
    defaultRoute: references,
    rules: [
      ...(binding === 'a rule that says local_only'
        ? [{ name: 'here', local_only: true, ...references }]
        : []),
      // It never wins; its paths are part of the policy all the same.
      { name: 'vault', intent: 'skill', paths: ['vault/**'], local_only: true, model: nameOf('local') },
    ],
    permissions: { read_file: 'allow', shell: 'deny', write_file: 'deny', edit_file: 'deny' },
    privacy: {
      restricted_paths: ['secrets/**'],
      remote: { ...MODE[binding], blocked_paths: ['blocked/**'] },
      local: { mode: LOCAL_MODE[binding] ?? null },
    },
    preferences: { local_only: binding === 'local_only', no_network: binding === 'no_network' },
    workspace: { referenced_paths: binding === 'a referenced path' ? ['secrets/referenced'] : [] },
    attachments: {
      files: [
        makeFile('src/open.ts', MARK.open),
        ...(bringsSpare(one) ? [makeFile('secrets/spare', MARK.spare)] : []),
        ...(required === undefined ? [] : [makeFile(required, MARK.required, true)]),
      ],
      instructions:
        binding === 'an instruction' ? [{ source: 'secrets/RULES.md', content: MARK.required }] : [],
    },
  })
}

const REQUIRED: Partial<Record<Binding, string>> = {
  'a required file of restricted_paths': 'secrets/required',
  'a required file of blocked_paths': 'blocked/required',
  'a required file of a local_only rule': 'vault/required',
}

type Mode = NonNullable<NonNullable<RequestParts['privacy']>['remote']>['mode']
const ALLOW = { mode: 'allow' } as const
const MODE: Record<Binding, { mode?: Mode }> = {
  'mode allow': ALLOW,
  'mode ask, approved': { mode: 'ask' },
  'mode ask, declined': { mode: 'ask' },
  'no mode, approved': {},
  'no mode, declined': {},
  'mode deny': { mode: 'deny' },
  'local mode ask, approved': ALLOW,
  'local mode ask, declined': ALLOW,
  'local mode deny': ALLOW,
  local_only: ALLOW,
  no_network: ALLOW,
  'a rule that says local_only': ALLOW,
  'a required file of restricted_paths': ALLOW,
  'a required file of blocked_paths': ALLOW,
  'a required file of a local_only rule': ALLOW,
  'a referenced path': ALLOW,
  'an instruction': ALLOW,
  'content that can be left out': ALLOW,
  'a call that reads a restricted file': ALLOW,
}

const LOCAL_MODE: Partial<Record<Binding, Mode>> = {
  'local mode ask, approved': 'ask',
  'local mode ask, declined': 'ask',
  'local mode deny': 'deny',
}

/** Everything of the request that has to be in a prompt for a local model. */
export function marksOf(one: PrivacyCase): string[] {
  const { binding } = one
  const required = REQUIRED[binding] !== undefined || binding === 'an instruction'
  return [
    MARK.prompt,
    MARK.open,
    ...(bringsSpare(one) ? [MARK.spare] : []),
    ...(required ? [MARK.required] : []),
  ]
}

/** Another run of the session afterwards, on the remote model, with nothing of its own that is constrained. */
export const laterBody = (): RunInput =>
  makeRequest({
    text: `and now? ${MARK.later}`,
    defaultRoute: { model: nameOf('remote') },
    privacy: { restricted_paths: ['secrets/**'], remote: { mode: 'allow', blocked_paths: ['blocked/**'] } },
    rules: [
      { name: 'vault', intent: 'skill', paths: ['vault/**'], local_only: true, model: nameOf('local') },
    ],
  })
