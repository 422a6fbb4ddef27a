import { expect, test } from 'vitest'
import { isKeptLocal } from '../../../../src/core/privacy/kept-local.ts'
import { LOCAL, makeRequest, type RequestParts } from '../../../support/core/builders.ts'

test.each<[string, RequestParts, boolean]>([
  ['nothing', {}, false],
  ['local models only', { preferences: { local_only: true } }, true],
  ['no network', { preferences: { no_network: true } }, true],
  ['a policy that denies remote models', { privacy: { remote: { mode: 'deny' } } }, true],
  ['a policy that asks', { privacy: { remote: { mode: 'ask' } } }, false],
  ['a policy that says nothing of remote models', { privacy: { remote: undefined } }, false],
  ['a local-only rule', { rules: [{ name: 'r', model: LOCAL, local_only: true }] }, false],
])('[U37] a run started with %s keeps its words local: %j -> %s', (_, parts, kept) => {
  expect(isKeptLocal(makeRequest(parts))).toBe(kept)
})
