import { describe, expect, test } from 'vitest'
import { deviceRunInput, firstInput } from '../../../../src/core/operations/device-run-input.ts'
import { dispositionOf, readPrompt } from '../../../../src/core/operations/prompt.ts'
import { makeFile, makeRequest, makeRule } from '../../../support/core/builders.ts'

const NOW = { text: 'now', localOnly: false }

describe('the words of a prompt', () => {
  test('[RF 16] are trimmed, and stay as they are inside', () => {
    expect(readPrompt(' \n fix\n  it \t')).toEqual({ ok: true, value: 'fix\n  it' })
  })

  test.each(['', '   ', '\n\t'])('[RF 16] %j is no prompt', (prompt) => {
    expect(readPrompt(prompt)).toMatchObject({ ok: false, error: { code: 'invalid_request' } })
  })

  test.each(['/help', '  /anything at all', '/'])('"refused with unsupported_operation": %j', (prompt) => {
    expect(readPrompt(prompt)).toMatchObject({ ok: false, error: { code: 'unsupported_operation' } })
  })
})

describe('what becomes of a prompt', () => {
  const over = { isOver: true, queued: 0, canSteer: false }
  const waiting = { isOver: true, queued: 1, canSteer: false }
  const streaming = { isOver: false, queued: 0, canSteer: true }
  const paused = { isOver: false, queued: 0, canSteer: false }
  test.each([
    ['submit_prompt', over, 'started'],
    ['submit_prompt', waiting, 'busy'],
    ['submit_prompt', streaming, 'busy'],
    ['submit_prompt', paused, 'busy'],
    ['queue', over, 'not_running'],
    ['queue', waiting, 'queued'],
    ['queue', streaming, 'queued'],
    ['queue', paused, 'queued'],
    ['steer', over, 'not_running'],
    ['steer', waiting, 'unsupported_operation'],
    ['steer', streaming, 'steered'],
    ['steer', paused, 'unsupported_operation'],
  ] as const)('[RF 16] %s in %j: %s', (operation, standing, expected) => {
    const disposition = dispositionOf(operation, standing)
    expect(disposition.ok ? disposition.value : disposition.error.code).toBe(expected)
  })
})

describe('the input of a run that a device starts', () => {
  const last = makeRequest({
    text: 'before',
    command: 'plan',
    explicitModel: 'anthropic/asked-for',
    workspace: {
      root: '/code',
      git_branch: 'main',
      git_diff: 'diff',
      referenced_paths: ['a.ts'],
      active_file: 'a.ts',
    },
    rules: [makeRule({ name: 'r' })],
    preferences: { local_only: true },
    attachments: {
      files: [makeFile('a.ts', 'text')],
      instructions: [{ source: 's', content: 'c' }],
      invoked_skills: [{ name: 'k', content: 'c' }],
      tools: [{ name: 'deploy', parameters: {} }],
    },
  })

  test('[D07] is the policy, the preferences and the workspace of the last one, and nothing of what it brought', () => {
    expect(deviceRunInput(last, NOW, 'auto')).toEqual({
      input: { text: 'now' },
      workspace: { root: '/code', git_branch: 'main', referenced_paths: [] },
      policy: last.policy,
      local_preferences: last.local_preferences,
      attachments: { files: [], instructions: [], invoked_skills: [], available_skills: [] },
    })
  })

  test('[D09] names the model of the profile that was chosen', () => {
    expect(deviceRunInput(last, NOW, 'ollama/small').input).toEqual({
      text: 'now',
      explicit_model: 'ollama/small',
    })
  })

  test('[D07] in a session without a run it says nothing of a machine', () => {
    const published = { policy: last.policy, localPreferences: last.local_preferences }
    expect(deviceRunInput(firstInput(published), NOW, 'auto')).toMatchObject({
      workspace: { root: '', referenced_paths: [] },
      policy: last.policy,
      local_preferences: last.local_preferences,
    })
  })

  test('[U37] what was queued where no remote model was to hear it stays with local ones', () => {
    const input = deviceRunInput(
      makeRequest({ privacy: { remote: { mode: 'allow' } } }),
      { text: 'mine', localOnly: true },
      'auto',
    )
    expect(input.local_preferences.local_only).toBe(true)
  })
})
