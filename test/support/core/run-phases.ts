/** A run machine brought into each phase, as a client of the contract would bring it there. */

import type { AskedCost, RunPhase } from '../../../src/core/run/state.ts'
import type { EncryptedPayload } from '../../../src/protocol/execution/sealed.ts'
import { clientCall, Machine } from './run-machine.ts'

export type Situation =
  | 'Idle'
  | 'AwaitingTool'
  | 'AwaitingApproval: disclosure'
  | 'AwaitingApproval: cost'
  | 'AwaitingApproval: plan'
  | 'AwaitingDecrypt'
  | 'AwaitingEncrypt'

export const SITUATIONS: readonly Situation[] = [
  'Idle',
  'AwaitingTool',
  'AwaitingApproval: disclosure',
  'AwaitingApproval: cost',
  'AwaitingApproval: plan',
  'AwaitingDecrypt',
  'AwaitingEncrypt',
]

export const phaseOf = (situation: Situation): RunPhase['k'] => situation.split(':')[0] as RunPhase['k']

export const SEAL: EncryptedPayload = {
  version: 1,
  algorithm: 'xchacha20poly1305',
  key_id: 'kf_test',
  nonce: 'n',
  ciphertext: 'sealed',
}

export const DISCLOSURE = { provider: 'openai', model: 'm', paths: ['a.ts'] }

export const COST: AskedCost = {
  rule: 'cheap',
  provider: 'openai',
  model: 'm',
  limit: '1',
  estimate: { min: '0.5', max: '2' },
}

/** A run that waits in the given phase; no turn is being served. */
export function machineIn(situation: Situation): Machine {
  const machine = new Machine()
  machine.execute('prompt', { command: situation === 'AwaitingApproval: plan' ? 'plan' : null })
  switch (situation) {
    case 'Idle':
      machine.round({ text: 'answer' })
      break
    case 'AwaitingTool':
      machine.round({ calls: [clientCall('read_file'), clientCall('shell', 'ask')] })
      break
    case 'AwaitingApproval: disclosure':
      machine.resolve({ kind: 'remote_disclosure', disclosure: DISCLOSURE })
      break
    case 'AwaitingApproval: cost':
      machine.resolve({ kind: 'cost_limit', cost: COST })
      break
    case 'AwaitingApproval: plan':
      machine.round({ text: '1. do it' })
      break
    case 'AwaitingDecrypt':
      machine.accept({
        type: 'decryption_needed',
        lease: machine.lease,
        toDecrypt: { 'message:1': SEAL },
        toEncrypt: { 'run_input:1': '{}' },
      })
      break
    case 'AwaitingEncrypt':
      machine.round({ text: 'answer', toEncrypt: { 'message:2': 'answer' } })
  }
  return machine
}
