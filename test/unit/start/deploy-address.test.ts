import { expect, test } from 'vitest'
import { addressOf } from '../../../scripts/lib-node/deploy/address.mjs'
import { parseDeployArguments } from '../../../scripts/lib-node/deploy/arguments.mjs'

const DEV = 'https://switchyard.ada.workers.dev'

test.each([
  ['the one under workers.dev', [], [DEV], DEV],
  [
    'a custom domain before it',
    [{ pattern: 'llm.example.com', custom_domain: true }],
    [DEV],
    'https://llm.example.com',
  ],
  [
    'the host of a route to all of it',
    ['llm.example.com/*'],
    ['llm.example.com/*'],
    'https://llm.example.com',
  ],
  ['none where a route serves a part of a host', ['example.com/llm/*'], ['example.com/llm/*'], undefined],
  ['none where a route serves many hosts', ['*.example.com/*'], ['*.example.com/*'], undefined],
  ['none without any', [], ['schedule: 7 * * * *'], undefined],
])('the address of a router is %s', (_what, routes, targets, expected) => {
  expect(addressOf(routes, targets)).toBe(expected)
})

test('the arguments of npm run deploy are two, and any other is named', () => {
  expect(parseDeployArguments([])).toEqual({ ok: true, value: { dryRun: false, help: false } })
  expect(parseDeployArguments(['--dry-run'])).toEqual({ ok: true, value: { dryRun: true, help: false } })
  expect(parseDeployArguments(['-h'])).toEqual({ ok: true, value: { dryRun: false, help: true } })
  expect(parseDeployArguments(['--dry-run', '--var', 'LOCAL_DEV:1'])).toEqual({
    ok: false,
    error: '--var is no option of npm run deploy; --help lists them.',
  })
})
