import { describe, expect, test } from 'vitest'
import { effortName } from '../../../../src/core/operations/effort-name.ts'
import {
  changedSettings,
  chosenOf,
  profilesOf,
  settingsOf,
} from '../../../../src/core/operations/session-settings.ts'
import type { RemoteSessionSettings } from '../../../../src/protocol/remote/session-settings.ts'
import { makeRequest, makeRule } from '../../../support/core/builders.ts'

const policy = makeRequest({
  rules: [
    makeRule({ name: 'a', model: 'anthropic/big', fallbacks: ['ollama/small'] }),
    makeRule({ name: 'b', model: 'ollama/small' }),
  ],
  defaultRoute: { model: 'openai/any', fallbacks: ['anthropic/big'] },
}).policy

const settings = (fields: Partial<RemoteSessionSettings> = {}): RemoteSessionSettings => ({
  models: [
    { id: 'auto', model: 'any', reasoning_efforts: ['default'] },
    { id: 'p/m', model: 'm', reasoning_efforts: ['default', 'high'] },
  ],
  selected_model: 'auto',
  reasoning_effort: 'default',
  can_change: true,
  ...fields,
})

describe('the profiles of a session', () => {
  test('[D09] are `auto` and each model that the policy names, once, in its order', () => {
    expect(profilesOf(policy).map(({ id }) => id)).toEqual([
      'auto',
      'anthropic/big',
      'ollama/small',
      'openai/any',
    ])
  })

  test('[RF 20] each offers the default effort first', () => {
    expect(profilesOf(policy).every(({ reasoning_efforts: [first] }) => first === 'default')).toBe(true)
  })

  test('[D09] a choice that the policy does not offer any more does not count', () => {
    const models = profilesOf(policy)
    expect(settingsOf(models, { model: 'gone/model', effort: null }, true).selected_model).toBe('auto')
    expect(settingsOf(models, { model: 'openai/any', effort: null }, true).selected_model).toBe('openai/any')
    expect(settingsOf(models, null, false)).toMatchObject({
      selected_model: 'auto',
      reasoning_effort: 'default',
      can_change: false,
    })
  })
})

describe('a change of the settings', () => {
  const codeOf = (current: RemoteSessionSettings, model: string, effort: string) => {
    const changed = changedSettings(current, { model, effort })
    return changed.ok ? 'changed' : changed.error.code
  }

  test('[RF 20] is refused while something goes on, before it is looked at', () => {
    expect(codeOf(settings({ can_change: false }), 'no/such', 'none')).toBe('busy')
  })

  test('[RF 20] takes a profile and an effort of that profile, both or none', () => {
    expect(codeOf(settings(), 'no/such', 'default')).toBe('invalid_request')
    expect(codeOf(settings(), 'auto', 'high')).toBe('invalid_request')
    expect(changedSettings(settings(), { model: 'p/m', effort: 'high' })).toEqual({
      ok: true,
      value: settings({ selected_model: 'p/m', reasoning_effort: 'high' }),
    })
  })

  test('"frame_too_large without changing state": a catalogue that no answer can hold', () => {
    const models = Array.from({ length: 2_000 }, (_, i) => ({
      id: `provider/${'m'.repeat(30)}${i}`,
      model: 'm',
      reasoning_efforts: ['default'],
    }))
    expect(codeOf(settings({ models: [...settings().models, ...models] }), 'p/m', 'high')).toBe(
      'frame_too_large',
    )
  })

  test('"default clears the effort override": what is the default anyway is not kept', () => {
    expect(chosenOf(settings())).toBeNull()
    expect(chosenOf(settings({ selected_model: 'p/m' }))).toEqual({ model: 'p/m', effort: null })
    expect(chosenOf(settings({ selected_model: 'p/m', reasoning_effort: 'high' }))).toEqual({
      model: 'p/m',
      effort: 'high',
    })
  })

  test.each([
    ['off', 'default'],
    ['None', 'default'],
    ['med', 'medium'],
    ['HIGH', 'high'],
    ['toString', 'tostring'],
  ])('[RF 21] the effort %s is %s', (typed, meant) => {
    expect(effortName(typed)).toBe(meant)
  })
})
