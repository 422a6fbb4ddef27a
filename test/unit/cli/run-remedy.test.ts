import { beforeEach, describe, expect, test } from 'vitest'
import { type RunFacts, runRemedy } from '../../../src/cli/run-remedy.ts'
import { configHome } from '../../support/node/config-home.ts'
import { SESSION } from '../../support/node/scripted-router-turns.ts'

beforeEach(() => {
  configHome()
})

const FACTS: RunFacts = {
  sessionId: SESSION,
  declined: undefined,
  approve: 'ask',
  isTty: true,
  attached: [],
  toolCalls: 0,
}

const remedy = (code: string, details: Record<string, unknown>, facts: Partial<RunFacts> = {}) =>
  runRemedy({ kind: 'turn', code, message: 'x', details }, { ...FACTS, ...facts }) ?? ''

const candidates = (...reasons: string[]) => ({
  candidates: reasons.map((reason, i) => ({ model: `ollama/m${i}`, reason })),
})
const ENV = {
  local_because: 'required_content',
  local_about: '`app/.env` matches `**/.env` of restricted_paths',
}

describe('[EC 9] a turn that is bound to local models and has none', () => {
  test.each<[says: string, details: Record<string, unknown>, facts: Partial<RunFacts>, ...parts: string[]]>([
    [
      'content that the user attached',
      { ...ENV, ...candidates('remote') },
      { attached: ['app/.env'] },
      'name a local model in [routing], or take `app/.env` out of the prompt',
    ],
    ['a folder that the user attached', ENV, { attached: ['app'] }, 'take `app/.env` out of the prompt'],
    [
      'content that a call brought',
      ENV,
      { attached: ['app/.envrc'], toolCalls: 1 },
      'does not need `app/.env`: a tool call of this run',
    ],
    ['content that the diff brought', ENV, {}, 'keep `app/.env` out of this run'],
    [
      'content without a path',
      { ...ENV, local_about: 'it answers what was said' },
      {},
      'keep the private content out',
    ],
    [
      'a preference',
      { local_because: 'preference', local_about: 'no_network' },
      {},
      'set no_network = false under [local_preferences]',
    ],
    ['a rule', { local_because: 'rule', local_about: 'pay' }, {}, 'take local_only out of the rule "pay"'],
    ['a mode', { local_because: 'remote_denied' }, {}, 'set mode = "ask" under [privacy.remote] in /'],
  ])('hears how it is freed from %s', (_says, details, facts, expected) => {
    expect(remedy('no_route', { reason: 'no_local_model', ...details }, facts)).toContain(expected)
  })

  test.each([
    ['window', 'ollama/m1 is too small for this prompt: name a local model with a larger window'],
    [
      'capability',
      `ollama/m1 lacks what the turn needs: name a local model that has it (\`switchyard explain ${SESSION}`,
    ],
    ['absent', 'its provider does not have ollama/m1'],
    ['unavailable', 'the provider of ollama/m1 cannot be asked: start it'],
    ['failed', 'ollama/m1 did not answer'],
    ['credential', 'there is no key for ollama/m1'],
  ])('hears what is amiss with the local one that its route names: %s', (reason, expected) => {
    const told = remedy('no_route', { local_because: 'preference', ...candidates('remote', reason) })
    expect(told).toContain(expected)
    expect(told).not.toContain('name a local model in [routing]')
  })

  test('with an explicit model hears the preference, and nothing of restricted content', () => {
    const told = remedy('override_not_allowed', { reason: 'preference', local_about: 'no_network' })
    expect(told).toContain('leave --model out or name a local model with it, or set no_network = false')
    expect(told).not.toMatch(/restricted|private/)
  })
})

describe('[EC 13] a disclosure that nobody could be asked about', () => {
  const declined: RunFacts['declined'] = { approval_id: 'a', kind: 'remote_disclosure', detail: {} }

  test('may be allowed, or a local model named', () => {
    const told = remedy('no_route', { local_because: 'remote_declined' }, { declined, isTty: false })
    expect(told).toContain('add --yes, or set mode = "allow" under [privacy.remote] in /')
    expect(told).toContain(', or name a local model;')
  })

  test('is no remedy where the content is bound whatever the user says', () => {
    const told = remedy('no_route', ENV, { declined, isTty: false })
    expect(told).not.toContain('--yes')
    expect(told).toContain('keep `app/.env` out of this run')
  })
})

test.each([
  [
    'routing_unsupported_capability',
    { capability: 'reasoning' },
    'by its effort (high or xhigh): name a model',
  ],
  ['routing_unsupported_capability', { capability: 'images' }, 'leave the picture out'],
  ['missing_capability', { capability: 'images' }, 'by `requires_capabilities`'],
  ['no_route', { reason: 'local_denied' }, 'set mode = "allow" under [privacy.local] in /'],
  ['session_not_found', {}, `\`switchyard sessions archive ${SESSION} --restore\` brings it back`],
])('[EC 8.5] what asks for it is named, and what to do: %s %j', (code, details, expected) => {
  expect(remedy(code, details)).toContain(expected)
})

test('details of a shape that nobody knows leave the general remedy', () => {
  expect(remedy('no_route', { candidates: 'none', local_because: 7 })).toMatch(
    /^name a local model in \[routing\];/,
  )
})
