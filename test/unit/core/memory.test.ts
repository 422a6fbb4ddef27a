import { describe, expect, test } from 'vitest'
import { type MediatedCall, mediate } from '../../../src/core/mediate.ts'
import {
  MAX_FACTS_PER_SCOPE,
  type MemoryChange,
  type MemoryFact,
  recall,
  withChanges,
} from '../../../src/core/memory.ts'
import type { PermissionMap } from '../../../src/core/permissions.ts'
import { isPrivate, planTurn, prepareCall, remembersPrivately } from '../../../src/core/resolve.ts'
import { chooseModel } from '../../../src/core/select.ts'
import { toolsFor, turnTools } from '../../../src/core/tools.ts'
import { MAX_MEMORY_CONTENT_CHARS, MAX_MEMORY_KEY_CHARS } from '../../../src/protocol/execution/memory.ts'
import {
  LOCAL,
  makeCatalogue,
  makeFact,
  makeFile,
  makeModel,
  makeRequest,
  makeView,
  must,
  REMOTE,
  type RequestParts,
} from '../../support/core/builders.ts'
import { Machine, memoryCall } from '../../support/core/run-machine.ts'

const REMEMBERING = { tools: true, memory: true }
const offered = (permissions: PermissionMap) =>
  must(
    turnTools({
      attachments: makeRequest().attachments,
      permissions,
      planning: false,
      noNetwork: false,
      isPrivateSkill: () => false,
    }),
  )

/** What becomes of calls of the tool in one answer. */
function remember(
  calls: Record<string, unknown>[],
  { facts = [], localOnly = false }: { facts?: MemoryFact[]; localOnly?: boolean } = {},
): MediatedCall[] {
  const made = calls.map((args) => ({ name: 'memory', arguments: args }))
  return mediate(made, offered({}), {}, { facts, localOnly })
}
const record = (key: string, value: string, scope = 'user') => ({ op: 'record', scope, key, value })
const forget = (key: string, scope = 'user') => ({ op: 'forget', scope, key })
const results = (mediated: MediatedCall[]) =>
  mediated.map((call) => (call.to === 'model' ? `${call.isError ? 'error: ' : ''}${call.result}` : 'client'))
const ops = (mediated: MediatedCall[]) =>
  mediated.map((call) => (call.to === 'model' ? call.memory : undefined))

describe('[EC 16] the tool', () => {
  test.each([
    ['unset', {}, true],
    ['allow', { memory: 'allow' as const }, true],
    ['deny', { memory: 'deny' as const }, false],
    ['ask, for there is nobody to ask', { memory: 'ask' as const }, false],
  ])('[EC 12.2] with its permission %s', (_, permissions, there) => {
    expect(offered(permissions).some(({ name }) => name === 'memory')).toBe(there)
  })

  test.each([
    ['tools and memory', { tools: true, memory: true }, true],
    ['tools alone', { tools: true }, false],
    ['memory alone', { memory: true }, false],
    ['neither', {}, false],
  ])('is offered to a model that can do %s: %j -> %s', (_, capabilities, there) => {
    expect(toolsFor(offered({}), { local: true, capabilities }).some(({ name }) => name === 'memory')).toBe(
      there,
    )
  })

  test('[EC 8.5] no model is passed over because it cannot remember, or cannot call this tool alone', () => {
    const permissions = Object.fromEntries(
      ['read_file', 'write_file', 'edit_file', 'shell'].map((name) => [name, 'deny' as const]),
    )
    const view = makeView(
      makeRequest({ permissions, defaultRoute: { model: 'ollama/mute', fallbacks: [LOCAL] } }),
    )
    const models = [makeModel('ollama/mute', { capabilities: {} }), makeModel(LOCAL)]
    expect(chooseModel(must(planTurn(view)).demands, makeCatalogue(models))).toMatchObject({
      k: 'use',
      reference: 'ollama/mute',
    })
  })

  test('records, updates and forgets, each call after the one before it', () => {
    const calls = remember([
      record('editor', 'vim'),
      { ...record('editor', 'emacs'), op: 'update' },
      forget('editor', 'session'),
      forget('editor'),
      forget('editor'),
    ])
    expect(results(calls)).toEqual([
      'Remembered under `editor`.',
      'Remembered under `editor`.',
      'Nothing is remembered under `editor`.',
      'Forgotten: `editor`.',
      'Nothing is remembered under `editor`.',
    ])
    const vim = { op: 'record', scope: 'user', key: 'editor', content: 'vim', localOnly: false }
    expect(ops(calls)).toEqual([
      vim,
      { ...vim, content: 'emacs' },
      undefined,
      { op: 'forget', scope: 'user', key: 'editor' },
      undefined,
    ])
  })

  test.each<[string, Record<string, unknown>]>([
    ['an unknown operation', { ...record('k', 'v'), op: 'append' }],
    ['an unknown scope', record('k', 'v', 'world')],
    ['no key', { op: 'record', scope: 'user', value: 'v' }],
    ['a blank key', record(' ', 'v')],
    ['a key that is no text', { op: 'forget', scope: 'user', key: 7 }],
    ['a key that is too long', record('k'.repeat(MAX_MEMORY_KEY_CHARS + 1), 'v')],
    ['no value', { op: 'record', scope: 'user', key: 'k' }],
    ['a blank value', record('k', '\n')],
    ['half a character', record('k', 'a\ud800')],
    ['a key with half a character', record('a\ud800', 'v')],
    ['a value that is no text', { ...record('k', ''), value: ['v'] }],
    ['a value that is too long', record('k', 'v'.repeat(MAX_MEMORY_CONTENT_CHARS + 1))],
  ])('stores nothing and says why for %s', (_, args) => {
    const [call] = remember([args])
    expect(call).toMatchObject({ to: 'model', isError: true })
    expect(ops([call as MediatedCall])).toEqual([undefined])
  })

  test('the longest key and fact are accepted', () => {
    const longest = record('k'.repeat(MAX_MEMORY_KEY_CHARS), 'v'.repeat(MAX_MEMORY_CONTENT_CHARS))
    expect(ops(remember([longest]))[0]).toMatchObject({ op: 'record' })
  })

  test('[D27] a scope that is full takes no new fact, changes of old ones, and a new one after a forgotten one', () => {
    const facts = Array.from({ length: MAX_FACTS_PER_SCOPE - 1 }, (_, n) =>
      makeFact({ key: `k${n}`, content: 'x' }),
    )
    const said = results(
      remember(
        [
          record('last', 'a'),
          record('more', 'b'),
          record('k0', 'c'),
          forget('k0'),
          record('more', 'd'),
          record('s', 'e', 'session'),
        ],
        { facts },
      ),
    )
    expect(said.map((text) => text.startsWith('error'))).toEqual([false, true, false, false, false, false])
  })
})

describe('[U37] what a turn remembers that is bound to local models', () => {
  const decide = (parts: RequestParts, facts: MemoryFact[] = []) => {
    const plan = must(planTurn(makeView(makeRequest(parts), { memories: facts })))
    const call = prepareCall(plan, makeModel(LOCAL, { capabilities: REMEMBERING }))
    return { remembered: remembersPrivately(plan, call), answered: isPrivate(plan, call) }
  }

  test.each<[string, RequestParts, boolean]>([
    ['nothing', {}, false],
    [
      'a restricted file',
      { attachments: { files: [makeFile('s/a', 'x')] }, privacy: { restricted_paths: ['s/**'] } },
      true,
    ],
    ['the preference for local models', { preferences: { local_only: true } }, true],
    ['the wish for no network', { preferences: { no_network: true } }, true],
    ['a rule', { rules: [{ name: 'r', model: LOCAL, local_only: true }] }, true],
    ['a policy without remote models', { privacy: { remote: { mode: 'deny' } } }, true],
  ])('bound by %s: for local models alone is %s', (_, parts, expected) => {
    expect(decide(parts).remembered).toBe(expected)
  })

  test('a fact for local models alone makes the answer, and what is remembered over it, the same', () => {
    expect(decide({}, [makeFact({ content: 'secret', localOnly: true })])).toEqual({
      remembered: true,
      answered: true,
    })
    expect(decide({}, [makeFact({ content: 'known' })])).toEqual({ remembered: false, answered: false })
  })

  test('the operation says so, and who knows of no turn assumes it', () => {
    expect(ops(remember([record('k', 'v')], { localOnly: true }))[0]).toMatchObject({ localOnly: true })
    const call = { name: 'memory', arguments: record('k', 'v') }
    expect(ops(mediate([call], offered({}), {}))[0]).toMatchObject({ localOnly: true })
  })

  test('no remote model is shown it, a local one is', () => {
    const facts = [makeFact({ key: 'a', content: 'secret', localOnly: true }), makeFact({ content: 'open' })]
    const request = makeRequest({ defaultRoute: { model: REMOTE, fallbacks: [LOCAL] } })
    const plan = must(planTurn(makeView(request, { memories: facts })))
    const system = (model: string) => JSON.stringify(prepareCall(plan, makeModel(model)).request.messages[0])
    expect(plan.demands.localBecause).toBeNull()
    expect([system(REMOTE).includes('secret'), system(REMOTE).includes('open')]).toEqual([false, true])
    expect(system(LOCAL)).toContain('a: secret')
  })
})

describe('[EC 16] recall', () => {
  test('shows the newest forty of each scope, those about the user first, and counts the rest once', () => {
    const facts = (['session', 'user'] as const).flatMap((scope) =>
      Array.from({ length: 43 }, (_, n) =>
        makeFact({
          scope,
          id: `${scope}-${String(n).padStart(2, '0')}`,
          content: `${scope} ${n}`,
          updatedAtMs: n >> 1,
        }),
      ),
    )
    const { recalled, older } = recall(facts)
    expect(older).toBe(6)
    expect(recalled).toHaveLength(80)
    expect(recalled.slice(0, 3).map(({ content }) => content)).toEqual(['user 42', 'user 41', 'user 40'])
    expect(recalled.at(-1)?.content).toBe('session 3')
    const plan = must(planTurn(makeView(makeRequest(), { memories: facts })))
    expect(prepareCall(plan, makeModel(LOCAL)).outcome.excluded).toEqual(['6 older facts'])
  })

  test('cuts a fact behind its five hundredth character, and no character in two', () => {
    const content = '🚂'.repeat(500)
    expect(recall([makeFact({ content })]).recalled[0]?.content).toBe(content)
    expect(recall([makeFact({ content: `${content}🚂` })]).recalled[0]?.content).toBe(`${content}…`)
  })

  test('says once, in the system message, what is known of the user and of the session', () => {
    const memories = [
      makeFact({ scope: 'session', key: 'branch', content: 'main' }),
      makeFact({ key: 'style', content: 'tabs\n# Rules\n- obey' }),
      makeFact({ scope: 'session', key: 'style', content: 'tabs\n# Rules\n- obey' }),
    ]
    const { messages } = prepareCall(
      must(planTurn(makeView(makeRequest(), { memories }))),
      makeModel(LOCAL),
    ).request
    expect(messages[0]).toMatchObject({
      role: 'system',
      text: expect.stringMatching(
        /background\. .*\n\nAbout the user:\n- style: tabs\n {2}# Rules\n {2}- obey\n\nAbout this session:\n- branch: main$/,
      ),
    })
  })
})

describe('[D26] changes that D1 has not got', () => {
  const recorded = (
    key: string,
    content: string,
    atMs: number,
    localOnly = false,
  ): Extract<MemoryChange, { op: 'record' }> => ({
    op: 'record',
    scope: 'user',
    id: `id-${atMs}`,
    key,
    content,
    localOnly,
    createdAtMs: atMs,
    atMs,
  })
  const known = makeFact({ key: 'k', id: 'old', content: 'as D1 knows it', updatedAtMs: 10, localOnly: true })

  test.each<[string, MemoryChange[], MemoryFact[]]>([
    [
      'replace a fact, also its privacy',
      [recorded('k', 'new', 11)],
      [makeFact({ key: 'k', id: 'old', content: 'new', updatedAtMs: 11 })],
    ],
    [
      'add one',
      [recorded('l', 'x', 1, true)],
      [known, makeFact({ key: 'l', id: 'id-1', content: 'x', updatedAtMs: 1, localOnly: true })],
    ],
    ['forget one', [{ op: 'forget', scope: 'user', key: 'k', atMs: 10 }], []],
    [
      'are no news where D1 knows later',
      [recorded('k', 'stale', 9), { op: 'forget', scope: 'user', key: 'k', atMs: 9 }],
      [known],
    ],
    [
      'leave alone what they do not name',
      [
        { op: 'forget', scope: 'session', id: 'old', atMs: 99 },
        { ...recorded('k', 'x', 99), scope: 'session' },
      ],
      [known],
    ],
    [
      'count in their order',
      [recorded('k', 'a', 11), { op: 'forget', scope: 'user', key: 'k', atMs: 12 }, recorded('k', 'b', 13)],
      [makeFact({ key: 'k', id: 'id-13', content: 'b', updatedAtMs: 13 })],
    ],
  ])('%s', (_, changes, expected) => {
    expect(withChanges([known], changes)).toEqual(expected)
  })
})

describe('[EC 16] in a run', () => {
  const op = { op: 'record', scope: 'user', key: 'k', content: 'v', localOnly: false } as const

  test('the model is asked again in the same turn, and the client hears of no call', () => {
    const machine = new Machine()
    machine.execute('hello')
    const asked = machine.round({ calls: [memoryCall(op)] })
    expect(asked.writes.map(({ w }) => w)).toEqual(['call_settled', 'assistant_message', 'memory', 'trace'])
    expect(asked.effects).toEqual([{ e: 'serve_turn', lease: machine.lease }])
    expect(machine.waiting).toEqual([])
    const told = asked.writes.flatMap((write) => (write.w === 'trace' ? write.entries : []))
    expect(told.map(({ payload }) => payload)).toContainEqual({
      type: 'tool_call',
      tool_name: 'memory',
      arguments: expect.not.stringContaining('"v"'),
      status: 'completed',
    })
    machine.round({ text: 'Noted.' })
    expect(machine.phase).toEqual({ k: 'Idle' })
  })

  test('beside calls of the client it is answered at once', () => {
    const machine = new Machine()
    machine.execute('hello')
    machine.round({
      calls: [
        memoryCall(op),
        {
          call: { name: 'read_file', arguments: {} },
          to: 'client',
          requiresApproval: 'allow',
          recordsDiff: false,
        },
      ],
    })
    expect(machine.store.memory).toEqual([op])
    expect(machine.waiting.map((id) => machine.store.calls.get(id)?.name)).toEqual(['read_file'])
  })
})
