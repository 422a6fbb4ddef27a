import { describe, expect, test } from 'vitest'
import { ExecuteRequest } from '../../../src/protocol/execution/execute.ts'
import { codeOfIssue } from '../../../src/protocol/execution/unknown-names.ts'
import { makeRequest } from '../../support/core/builders.ts'

/** A request with one value put in its place, and the code that it is refused with. */
function codeWith(path: string, value: unknown): string | undefined {
  const request: unknown = JSON.parse(
    JSON.stringify(
      makeRequest({
        rules: [{ name: 'r', model: 'ollama/m', fallbacks: ['ollama/n'] }],
        classification: { rules: [{ intent: 'edit' }] },
      }),
    ),
  )
  const keys = path.split('.')
  const last = keys.pop() ?? ''
  const parent = keys.reduce<unknown>((at, key) => Reflect.get(Object(at), key), request)
  Reflect.set(Object(parent), last, value)
  const parsed = ExecuteRequest.safeParse(request, { reportInput: true })
  const [issue] = parsed.error?.issues ?? []
  return issue && codeOfIssue(issue)
}

describe('[EC 3] a name that nothing bears', () => {
  test.each([
    ['input.command', 'sing', 'unknown_intent'],
    ['policy.classification.default_intent', 'sing', 'unknown_intent'],
    ['policy.classification.rules.0.intent', 'Edit', 'unknown_intent'],
    ['policy.routing.rules.0.intent', '', 'unknown_intent'],
    ['policy.routing.rules.0.effort', 'extreme', 'unknown_effort'],
    ['policy.routing.rules.0.model', 'mistral/large', 'unknown_provider'],
    ['policy.routing.rules.0.fallbacks.0', 'mistral/large', 'unknown_provider'],
    ['policy.routing.default.model', 'gpt-x', 'invalid_model_reference'],
    ['policy.routing.rules.0.model', 'openai/', 'invalid_model_reference'],
    ['input.explicit_model', '', 'invalid_model_reference'],
    ['input.explicit_model', 'openai-compat:my lab/m', 'invalid_provider_name'],
    ['input.explicit_model', 'openai-compat:/m', 'invalid_provider_name'],
    ['input.explicit_model', 'openai-compat:lab/', 'invalid_model_reference'],
    ['policy.tools.permissions', { shell: 'maybe' }, 'invalid_request'],
    ['policy.routing.rules.0.effort', 3, 'invalid_request'],
    ['policy.routing.rules.0.model', null, 'invalid_request'],
    ['input.text', 7, 'invalid_request'],
  ])('%s = %j: %s', (path, value, code) => {
    expect(codeWith(path, value)).toBe(code)
  })

  test('a name in another spelling that the wire takes is none of these', () => {
    expect(codeWith('input.explicit_model', 'OpenAI/gpt-x')).toBe(undefined)
  })
})
