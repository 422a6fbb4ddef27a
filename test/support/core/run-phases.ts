/** A run machine brought into each phase, as a client of the contract would bring it there. */

import type { AskedCost, RunPhase } from '../../../src/core/run/state.ts'
import type { ContinueRequest } from '../../../src/protocol/execution/continue.ts'
import { BREAK, clientCall, Machine } from './run-machine.ts'
import { SEALED } from './run-vault.ts'

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

export const DISCLOSURE = { provider: 'openai', model: 'm', paths: ['a.ts'] }

export const COST: AskedCost = {
  rule: 'cheap',
  provider: 'openai',
  model: 'm',
  limit: '1',
  estimate: { min: '0.5', max: '2' },
}

/** Situations that only a sealed session comes into. */
const SEALED_ALONE: readonly Situation[] = ['AwaitingDecrypt', 'AwaitingEncrypt']

/** A run that waits in the given phase; no turn is being served. */
export function machineIn(situation: Situation): Machine {
  const machine = new Machine(SEALED_ALONE.includes(situation) ? SEALED : null)
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
      machine.round({ text: 'answer' })
      machine.continue({ type: 'sealed', data: { encrypted: machine.seals() } })
      machine.execute('second prompt')
      machine.pauseToOpen()
      break
    case 'AwaitingEncrypt':
      machine.round({ text: 'answer' })
  }
  return machine
}

/** A stop that leaves nothing unsealed behind. */
export const stopOf = (machine: Machine): ContinueRequest =>
  machine.sealed === null ? BREAK : { type: 'break', data: { encrypted: machine.seals() } }

/** What opens all that the pause asked for, and seals all that it asked to seal. */
export function opening(machine: Machine): Extract<ContinueRequest, { type: 'decrypted' }> {
  const records = machine.phase?.k === 'AwaitingDecrypt' ? machine.phase.records : []
  const plaintext = machine.sealed?.open([...records, ...machine.asked]) ?? {}
  return { type: 'decrypted', data: { plaintext, encrypted: machine.seals() } }
}
