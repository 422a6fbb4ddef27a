import { describe, expect, test } from 'vitest'
import type { MediatedCall } from '../../../../src/core/mediate.ts'
import { LEASE_MS } from '../../../../src/core/run/state.ts'
import type { ContinueRequest } from '../../../../src/protocol/execution/continue.ts'
import type { ContentRef } from '../../../../src/protocol/execution/ids.ts'
import type { EncryptedPayload, SealedMap } from '../../../../src/protocol/execution/sealed.ts'
import {
  BREAK,
  clientCall,
  decision,
  inject,
  Machine,
  makePartial,
  makeRecord,
  makeReport,
  results,
} from '../../../support/core/run-machine.ts'
import { DISCLOSURE, opening } from '../../../support/core/run-phases.ts'
import { BOUND, envelopeOf, SEALED, toEncryptOf } from '../../../support/core/run-vault.ts'

const kindsOf = (refs: readonly ContentRef[]): string[] => refs.map((ref) => ref.split(':')[0] ?? '').sort()

const EDIT: MediatedCall = {
  call: { name: 'edit_file', arguments: { path: 'edit_file.ts' } },
  to: 'client',
  requiresApproval: 'allow',
  recordsDiff: true,
}

/** A sealed session whose first turn is being served. */
function served(session = SEALED, command: 'plan' | null = null): Machine {
  const machine = new Machine(session)
  machine.execute('prompt', { command })
  return machine
}

/** One that waits for the ciphertext of an answer. */
function answered(session = SEALED): Machine {
  const machine = served(session)
  machine.round({ text: 'answer' })
  return machine
}

/** One that waits for the result of a call that changes a file. */
function calling(session = SEALED): Machine {
  const machine = served(session)
  machine.round({ text: 'Looking.', calls: [EDIT] })
  return machine
}

/** One that waits for a plan to be approved. */
function planned(): Machine {
  const machine = served(SEALED, 'plan')
  machine.round({ text: '1. do it' })
  return machine
}

/** One that waits for a decision on what may leave. */
function gated(): Machine {
  const machine = served()
  machine.resolve({ kind: 'remote_disclosure', disclosure: DISCLOSURE })
  return machine
}

const seals = (machine: Machine, ...more: ContentRef[]): SealedMap => machine.seals(...more)

/** The results of all calls with the ciphertext of everything. */
const resultsOf = (machine: Machine): ContinueRequest =>
  results(machine.waiting, {}, seals(machine, ...machine.waiting.map((id) => `tool_call:${id}`)))

const sealedOf = (machine: Machine): ContinueRequest => ({
  type: 'sealed',
  data: { encrypted: seals(machine) },
})

/** The second run of a session, which waits for the first to be opened. */
function opened(session = SEALED): Machine {
  const machine = answered(session)
  machine.continue(sealedOf(machine))
  machine.execute('second')
  machine.pauseToOpen()
  return machine
}

type Answer = [pause: string, make: () => Machine, answer: (machine: Machine) => ContinueRequest]

/** Each pause with the message that answers it, complete. */
const ANSWERS: Answer[] = [
  ['tool_results', calling, resultsOf],
  [
    'a decision on a gate',
    gated,
    (machine) => decision(machine.approvalId, 'approved', { encrypted: seals(machine) }),
  ],
  [
    'a decision on a plan',
    planned,
    (machine) => decision(machine.approvalId, 'approved', { encrypted: seals(machine) }),
  ],
  ['decrypted', opened, opening],
  ['sealed', answered, sealedOf],
  [
    'inject',
    calling,
    (machine) => ({ type: 'inject', data: { messages: [{ text: 'more' }], encrypted: seals(machine) } }),
  ],
  ['break', calling, (machine) => ({ type: 'break', data: { encrypted: seals(machine) } })],
]

const encryptedOf = (message: ContinueRequest): SealedMap =>
  (message.type === 'break' ? message.data?.encrypted : message.data.encrypted) ?? {}

/** The same message with other ciphertext. */
const withEncrypted = (message: ContinueRequest, encrypted: SealedMap): ContinueRequest =>
  ({ ...message, data: { ...message.data, encrypted } }) as ContinueRequest

/** Gives a message that must be refused and change nothing; returns the details. */
function refused(machine: Machine, message: ContinueRequest): unknown {
  const { state } = machine
  const stored = JSON.stringify([machine.store.messages, [...machine.store.sealed.keys()]])
  const held = [...(machine.sealed?.held.keys() ?? [])]
  const result = machine.continue(message)
  if (!('refused' in result)) throw new Error('not refused')
  expect(machine.state).toBe(state)
  expect(JSON.stringify([machine.store.messages, [...machine.store.sealed.keys()]])).toBe(stored)
  expect([...(machine.sealed?.held.keys() ?? [])]).toEqual(held)
  expect(result.refused.code).toBe('invalid_request')
  return result.refused.details
}

const isAccepted = (result: object): boolean => 'state' in result

const said = (machine: Machine): (string | undefined)[] =>
  machine.store.messages.map(({ id }) => machine.sealed?.known.get(`message:${id}`))

describe('[EC 17.3] what each outcome asks to seal', () => {
  test.each<[string, () => Machine, string[]]>([
    ['an answer', answered, ['message', 'message', 'run_input', 'trace', 'trace', 'trace', 'trace']],
    [
      'a call that changes a file, with what it proposes',
      calling,
      ['diff', 'message', 'message', 'run_input', 'tool_call', ...Array(5).fill('trace')],
    ],
    ['a plan', planned, ['message', 'message', 'plan', 'run_input', ...Array(4).fill('trace')]],
    ['a gate', gated, ['message', 'run_input', 'trace']],
    ['content to open', opened, ['message', 'run_input']],
  ])('%s', (_, make, kinds) => {
    const machine = make()
    const texts = toEncryptOf(machine.outcome)
    expect(kindsOf(Object.keys(texts))).toEqual(kinds)
    expect(Object.keys(texts)).toEqual(machine.asked)
    expect(machine.asked).toEqual(machine.state?.unsealed?.refs)
  })

  test('the texts are those that were said, and what a message asked for stands under the id of the message', () => {
    const machine = calling()
    const [prompt, answer] = machine.store.messages
    const [call] = machine.waiting
    expect(toEncryptOf(machine.outcome)).toMatchObject({
      'run_input:session': '{"version":1,"input":"prompt"}',
      [`message:${prompt?.id}`]: 'prompt',
      [`message:${answer?.id}`]: 'Looking.',
      [`tool_call:${answer?.id}`]: JSON.stringify({
        version: 1,
        calls: [{ id: call, name: 'edit_file', arguments: { path: 'edit_file.ts' } }],
      }),
      [`diff:${call}`]: expect.stringContaining('edit_file.ts'),
    })
  })

  test('half a character has no UTF-8, and so no ciphertext: what is to be sealed is whole', () => {
    const machine = served()
    machine.round({ text: 'half: \ud83d' })
    const texts = Object.values(toEncryptOf(machine.outcome))
    expect(texts).toContain('half: \ufffd')
    expect(texts.every((text) => text.isWellFormed())).toBe(true)
  })

  test('nothing but traces holds no run up: they ride on the next outcome', () => {
    const machine = opened()
    machine.continue(opening(machine))
    machine.resolve()
    machine.fail()
    expect(machine.outcome?.status).toBe('error')
    expect(machine.phase).toEqual({ k: 'Idle' })
    const left = machine.state?.unsealed?.refs ?? []
    expect([left.length > 0, [...new Set(kindsOf(left))], machine.asked]).toEqual([true, ['trace'], []])
    machine.execute('third')
    machine.pauseToOpen()
    expect(machine.asked).toEqual(expect.arrayContaining(left))
  })

  test('[D28] each candidate of a selection is an event of its own, with its own id', () => {
    const machine = served()
    const items = ['a', 'b', 'c'].map((path) => ({ path, kind: 'file', included: true, reason: 'asked for' }))
    machine.accept({
      type: 'turn_resolved',
      lease: machine.lease,
      report: makeReport(),
      traces: [{ type: 'context_selection_list', items }],
      gate: null,
      call: makeRecord('lost'),
      failedCall: null,
    })
    const [turn] = [...machine.store.turns.values()]
    const selected = turn?.trace.filter(
      ({ payload }) => payload.type === 'sealed' && payload.event_type === 'context_selection',
    )
    expect(new Set(selected?.map(({ id }) => id)).size).toBe(3)
    expect(
      selected?.map(({ id }) => JSON.parse(machine.sealed?.held.get(`trace:${id}`) ?? '{}').path),
    ).toEqual(['a', 'b', 'c'])
  })

  test('[EC 20.2] what a call used is in its trace, and nowhere in what is stored', () => {
    const machine = answered()
    const [turn] = [...machine.store.turns.values()]
    expect(turn?.calls).toMatchObject([{ status: 'answered', usage: null, sealed: true }])
    expect(Object.values(toEncryptOf(machine.outcome))).toContainEqual(
      expect.stringContaining('"input_tokens":1'),
    )
  })
})

describe('[EC 17.3] what comes back sealed', () => {
  test.each(ANSWERS)('%s: all of it is kept', (_, make, answer) => {
    const machine = make()
    const message = answer(machine)
    expect(isAccepted(machine.continue(message))).toBe(true)
    for (const [ref, payload] of Object.entries(encryptedOf(message)))
      expect(machine.store.sealed.get(ref)).toEqual(payload)
  })

  test.each(ANSWERS)('%s: with one left out, nothing is taken and the pause stays', (_, make, answer) => {
    const machine = make()
    const message = answer(machine)
    for (const ref of Object.keys(encryptedOf(message))) {
      const { [ref]: _left, ...rest } = encryptedOf(message)
      expect(refused(machine, withEncrypted(message, rest))).toEqual({ missing: [ref] })
    }
    expect(isAccepted(machine.continue(message))).toBe(true)
  })

  test.each(ANSWERS)('%s: what the session does not know is refused', (_, make, answer) => {
    const machine = make()
    const message = answer(machine)
    const foreign = { ...encryptedOf(message), 'message:nobody': envelopeOf('message:nobody') }
    expect(refused(machine, withEncrypted(message, foreign))).toEqual({ unknown: ['message:nobody'] })
    expect(isAccepted(machine.continue(message))).toBe(true)
  })

  test('what is sealed already stays as it is, and its repeat is no fault', () => {
    const machine = opened()
    const [first] = machine.store.sealed.keys()
    if (first === undefined) throw new Error('nothing is sealed')
    const before = machine.store.sealed.get(first)
    const message = opening(machine)
    const repeated = { ...encryptedOf(message), [first]: envelopeOf(first, SEALED.keyId, ' another time') }
    expect(isAccepted(machine.continue(withEncrypted(message, repeated)))).toBe(true)
    expect(machine.store.sealed.get(first)).toBe(before)
  })

  const good = envelopeOf('x')
  test.each<[string, Partial<EncryptedPayload>, RegExp]>([
    ['another key', { key_id: 'kf_other' }, /another key/],
    ['another version', { version: 2 }, /version 1/],
    ['another algorithm', { algorithm: 'aes-gcm' }, /algorithm/],
    ['a nonce too short', { nonce: 'n'.repeat(31) }, /nonce/],
    ['a nonce too long', { nonce: 'n'.repeat(33) }, /nonce/],
    ['a padded nonce', { nonce: `${'n'.repeat(32)}==` }, /nonce/],
    ['no room for a tag', { ciphertext: 'c'.repeat(20) }, /ciphertext/],
    ['padding', { ciphertext: `${'c'.repeat(22)}==` }, /ciphertext/],
    ['standard base64', { ciphertext: `${'c'.repeat(22)}+/` }, /ciphertext/],
    ['bits left over', { ciphertext: `${'A'.repeat(21)}B` }, /ciphertext/],
    ['a length that no bytes have', { ciphertext: 'c'.repeat(25) }, /ciphertext/],
  ])('[EC 17.1] an envelope with %s is refused, and named', (_, part, problem) => {
    const machine = answered()
    const [ref = ''] = machine.asked
    const encrypted = { ...seals(machine), [ref]: { ...good, ...part } }
    expect(refused(machine, { type: 'sealed', data: { encrypted } })).toEqual({
      ref,
      problem: expect.stringMatching(problem),
    })
  })

  test('[D48] a key of bound envelopes takes version 2 and no other', () => {
    const machine = answered(BOUND)
    const [ref = ''] = machine.asked
    const older = { ...seals(machine), [ref]: { ...envelopeOf(ref, BOUND.keyId), version: 1 } }
    expect(refused(machine, { type: 'sealed', data: { encrypted: older } })).toMatchObject({ ref })
    expect(machine.continue(sealedOf(machine))).toMatchObject({ state: { phase: { k: 'Idle' } } })
  })

  test('`sealed` ends the wait: idle, and nothing is in memory any more', () => {
    const machine = answered()
    expect(machine.outcome?.allowed_continuations).toEqual(['sealed', 'break'])
    machine.continue(sealedOf(machine))
    expect(machine.outcome).toMatchObject({ status: 'idle' })
    expect(machine.sealed?.held.size).toBe(0)
    expect(machine.state?.unsealed?.refs).toEqual([])
  })

  test('[D20] `sealed` sent again is answered again, also in new ciphertext; what was never sealed is not', () => {
    const machine = answered()
    const message = sealedOf(machine)
    machine.continue(message, { digest: 'same' })
    expect(machine.continue(message, { digest: 'same' })).toMatchObject({
      reply: { outcome: { status: 'idle' } },
      writes: [],
    })
    expect(machine.continue(message)).toMatchObject({ reply: { outcome: { status: 'idle' } }, writes: [] })
    expect(refused(machine, { type: 'sealed', data: { encrypted: {} } })).toMatchObject({ phase: 'Idle' })
  })

  test('a result has to come sealed; one that was settled before a crash has not', () => {
    const machine = calling()
    const [call = ''] = machine.waiting
    expect(refused(machine, results([call], {}, seals(machine)))).toEqual({ missing: [`tool_call:${call}`] })
    machine.continue(resultsOf(machine))
    machine.crash()
    expect(isAccepted(machine.continue(results([call])))).toBe(true)
  })

  test('what no outcome has asked for yet is not taken: what belongs to it may be missing', () => {
    const machine = answered()
    const old = seals(machine)
    machine.execute('second')
    const early: ContinueRequest = {
      type: 'inject',
      data: { messages: [{ text: 'third' }], encrypted: old },
    }
    expect(isAccepted(machine.continue(early))).toBe(true)
    expect(machine.store.sealed.size).toBe(0)
    machine.resolve()
    machine.answer({ text: 'answer' })
    expect(machine.asked).toEqual(expect.arrayContaining(Object.keys(old)))
  })
})

describe('[EC 15] words and stops in between', () => {
  test('words may come sealed: nobody is asked to seal them', () => {
    const machine = calling()
    const ciphertext = envelopeOf('injected')
    machine.continue({ type: 'inject', data: { messages: [{ text: 'more', ciphertext }] } })
    const id = machine.store.messages.at(-1)?.id
    expect(machine.store.sealed.get(`message:${id}`)).toEqual(ciphertext)
    expect(machine.sealed?.held.get(`message:${id}`)).toBe('more')
    expect(machine.state?.unsealed?.refs).not.toContain(`message:${id}`)
  })

  test('several become one message, which nobody has sealed yet', () => {
    const machine = calling()
    const ciphertext = envelopeOf('injected')
    const messages = [{ text: 'more', ciphertext }, { text: 'and more' }]
    machine.continue({ type: 'inject', data: { messages } })
    const id = machine.store.messages.at(-1)?.id
    expect(machine.store.sealed.has(`message:${id}`)).toBe(false)
    expect(machine.state?.unsealed?.refs).toContain(`message:${id}`)
    expect(machine.sealed?.held.get(`message:${id}`)).toBe('more\nand more')
  })

  test('[D48] words sealed for a place that has no id yet cannot be kept', () => {
    const machine = calling(BOUND)
    const ciphertext = envelopeOf('injected', BOUND.keyId)
    expect(
      refused(machine, { type: 'inject', data: { messages: [{ text: 'x', ciphertext }] } }),
    ).toBeUndefined()
    expect(isAccepted(machine.continue(inject('x')))).toBe(true)
  })

  test('words sealed with another key are refused', () => {
    const machine = calling()
    const messages = [{ text: 'x', ciphertext: envelopeOf('x', 'kf_other') }]
    expect(refused(machine, { type: 'inject', data: { messages } })).toBeUndefined()
  })

  test('without ciphertext, what is held is asked for with the next outcome', () => {
    const machine = calling()
    const { asked } = machine
    machine.continue(inject('more'))
    machine.round({ text: 'answer' })
    expect(machine.asked).toEqual(expect.arrayContaining(asked))
  })

  test('[D24] a stop that cuts an answer leaves it to be sealed; then the run is idle', () => {
    const machine = served()
    machine.resolve()
    machine.continue(BREAK, { partial: makePartial('I was go') })
    expect(machine.outcome).toMatchObject({
      status: 'awaiting_encrypt',
      data: { ended: { interrupted: true } },
    })
    expect(Object.values(toEncryptOf(machine.outcome))).toContain('I was go')
    machine.continue(sealedOf(machine))
    expect(machine.outcome).toMatchObject({ status: 'idle' })
    expect(said(machine)).toEqual(['prompt', 'I was go'])
  })

  test('a stop with the ciphertext of the pause leaves nothing: idle at once', () => {
    const machine = calling()
    const before = machine.asked
    machine.continue({ type: 'break', data: { encrypted: seals(machine) } })
    expect(machine.outcome).toMatchObject({ status: 'idle' })
    for (const ref of before) expect(machine.store.sealed.has(ref)).toBe(true)
  })

  test('a second stop gives up what nobody sealed: its rows go', () => {
    const machine = calling()
    machine.continue(BREAK)
    expect(machine.outcome?.status).toBe('awaiting_encrypt')
    expect(machine.store.messages).toHaveLength(2)
    machine.continue(BREAK)
    expect(machine.outcome?.status).toBe('idle')
    expect([machine.store.messages, machine.state?.unsealed?.refs, machine.sealed?.held.size]).toEqual([
      [],
      [],
      0,
    ])
  })

  test('the first stop after an answer asks once more; the second drops it', () => {
    const machine = answered()
    machine.continue(BREAK)
    expect(machine.outcome?.status).toBe('awaiting_encrypt')
    machine.continue(BREAK)
    expect([machine.outcome?.status, machine.store.messages.length]).toEqual(['idle', 0])
  })

  test('[EC 5.7] a failure leaves to be sealed what was said before it; handing it in is good, not required', () => {
    for (const handsIn of [true, false]) {
      const machine = served()
      machine.resolve()
      machine.fail('provider_error', makePartial('half'))
      expect(machine.outcome?.status).toBe('error')
      expect(machine.phase?.k).toBe('AwaitingEncrypt')
      if (handsIn) machine.continue(sealedOf(machine))
      machine.execute('next')
      expect([said(machine), machine.store.sealed.size > 0]).toEqual([['prompt', 'half', 'next'], handsIn])
    }
  })

  test('a prompt over an answer that is not sealed yet keeps its texts, and asks for them again', () => {
    const machine = answered()
    const { asked } = machine
    machine.execute('next')
    expect(machine.state?.unsealed).toMatchObject({ told: 0 })
    machine.round({ text: 'second answer' })
    expect(machine.asked).toEqual(expect.arrayContaining(asked))
    expect(new Set(machine.asked).size).toBe(machine.asked.length)
    expect(said(machine)).toEqual(['prompt', 'answer', 'next', 'second answer'])
    machine.continue(sealedOf(machine))
    expect(machine.phase?.k).toBe('Idle')
  })
})

describe('[D20] after the memory was lost at a pause', () => {
  test.each(ANSWERS)('%s with all of the ciphertext is good all the same', (_, make, answer) => {
    const machine = make()
    machine.crash()
    expect(isAccepted(machine.continue(answer(machine)))).toBe(true)
  })

  test.each<[string, (machine: Machine) => unknown]>([
    ['inject', (machine) => machine.continue(inject('other'))],
    ['break', (machine) => machine.continue(BREAK)],
    ['execute', (machine) => machine.execute('other')],
  ])('%s drops what is lost: nothing of it stays in the history', (kind, go) => {
    for (const make of [calling, planned, gated, answered]) {
      const machine = make()
      machine.crash()
      go(machine)
      expect(said(machine)).toEqual(kind === 'break' ? [] : ['other'])
      expect([...machine.store.plans, ...machine.store.calls]).toEqual([])
      expect(machine.state?.unsealed?.refs.every((ref) => machine.sealed?.held.has(ref))).toBe(true)
    }
  })

  test('what was sealed before the pause stays', () => {
    const machine = opened()
    machine.crash()
    machine.continue(BREAK)
    expect(said(machine)).toEqual(['prompt', 'answer'])
    expect(machine.phase?.k).toBe('Idle')
  })

  /** Runs in which one request led to a pause; returns the request. */
  const led: [string, () => [Machine, ContinueRequest]][] = [
    [
      'tool_results',
      () => {
        const machine = calling()
        const message = resultsOf(machine)
        machine.continue(message, { digest: 'led' })
        return [machine, message]
      },
    ],
    [
      'approval_decisions',
      () => {
        const machine = gated()
        const message = decision(machine.approvalId, 'approved', { encrypted: seals(machine) })
        machine.continue(message, { digest: 'led' })
        return [machine, message]
      },
    ],
    [
      'decrypted',
      () => {
        const machine = opened()
        const message = opening(machine)
        machine.continue(message, { digest: 'led' })
        return [machine, message]
      },
    ],
    [
      'inject that came sealed',
      () => {
        const machine = calling()
        const message: ContinueRequest = {
          type: 'inject',
          data: { messages: [{ text: 'more', ciphertext: envelopeOf('more') }], encrypted: seals(machine) },
        }
        machine.continue(message, { digest: 'led' })
        return [machine, message]
      },
    ],
  ]

  test.each(led)('%s: sent again, its turn is served again, and nothing is stored twice', (_, make) => {
    const [machine, message] = make()
    const before = machine.store.messages.length
    machine.round({ text: 'lost answer' })
    const { runId, turn } = machine.state ?? {}
    machine.crash()
    const again = machine.continue(message, { digest: 'led' })
    expect(again).toMatchObject({ state: { runId, turn }, effects: [{ e: 'serve_turn' }] })
    expect(machine.store.messages).toHaveLength(before)
    const brought = message.type === 'decrypted' ? Object.keys(message.data.plaintext) : []
    expect([...(machine.sealed?.held.keys() ?? [])]).toEqual(expect.arrayContaining(brought))
    // Another crash, and once more.
    machine.crash()
    expect(isAccepted(machine.continue(message, { digest: 'led' }))).toBe(true)
    expect(machine.store.messages).toHaveLength(before)
    while (machine.pauseToOpen()) machine.continue(opening(machine))
    machine.round({ text: 'answer' })
    machine.continue(sealedOf(machine))
    expect(said(machine).at(-1)).toBe('answer')
    expect(said(machine)).not.toContain('lost answer')
    expect(machine.phase?.k).toBe('Idle')
  })

  test.each(led)(
    '%s: sent again while its pause is held, it is refused or answers nothing twice',
    (kind, make) => {
      const [machine, message] = make()
      machine.round({ text: 'answer' })
      if (kind === 'inject that came sealed') {
        // New words are always taken: without a loss they are said again, and half a pause is not sealed by them.
        expect(refused(machine, message)).toHaveProperty('missing')
      } else expect(refused(machine, message)).toMatchObject({ phase: 'AwaitingEncrypt' })
    },
  )

  test('planning that failed is planning when its turn is served again', () => {
    const machine = served(SEALED, 'plan')
    machine.round({ text: 'Looking.', calls: [clientCall('read_file')] })
    const message = resultsOf(machine)
    machine.continue(message, { digest: 'led' })
    machine.resolve()
    machine.fail('provider_error', makePartial('half'))
    expect(machine.state?.planning).toBe(false)
    machine.crash()
    machine.continue(message, { digest: 'led' })
    expect(machine.state?.planning).toBe(true)
  })
})

describe('[D20][U06] a crash in the middle of a turn, then the same request', () => {
  test('execute: its words were lost with the memory, so they are said anew, once', () => {
    const machine = new Machine(SEALED)
    machine.execute('prompt', { digest: 'same' })
    machine.crash()
    expect(machine.store.messages).toEqual([])
    machine.execute('prompt', { digest: 'same' })
    expect(said(machine)).toEqual(['prompt'])
    expect(machine.events.filter(({ type }) => type === 'turn_cancelled')).toHaveLength(1)
  })

  test('execute while the memory lasts: a lease that ran out repeats nothing', () => {
    const machine = new Machine(SEALED)
    machine.execute('prompt', { digest: 'same' })
    machine.nowMs += LEASE_MS
    machine.execute('prompt', { digest: 'same' })
    expect(said(machine)).toEqual(['prompt'])
    expect(machine.store.runInputs).toBe(1)
  })

  test('execute after a lease that ran out, and then a loss: it is not served without its words', () => {
    const machine = new Machine(SEALED)
    machine.execute('prompt', { digest: 'same' })
    machine.nowMs += LEASE_MS
    machine.execute('prompt', { digest: 'same' })
    machine.crash()
    machine.execute('prompt', { digest: 'same' })
    expect(said(machine)).toEqual(['prompt'])
  })

  test('inject: the same run goes on, with its words once', () => {
    const machine = calling()
    const { runId } = machine.state ?? {}
    const message: ContinueRequest = {
      type: 'inject',
      data: { messages: [{ text: 'more' }], encrypted: seals(machine) },
    }
    machine.continue(message, { digest: 'same' })
    machine.crash()
    expect(said(machine)).toEqual(['prompt', 'Looking.'])
    machine.continue(message, { digest: 'same' })
    expect(machine.state?.runId).toBe(runId)
    expect(said(machine)).toEqual(['prompt', 'Looking.', 'more'])
    expect(machine.store.runInputs).toBe(1)
  })

  test('results: settled once, and in memory again for the turn that needs them', () => {
    const machine = calling()
    const [call = ''] = machine.waiting
    const message = resultsOf(machine)
    machine.continue(message, { digest: 'same' })
    machine.crash()
    machine.continue(message, { digest: 'same' })
    expect(machine.sealed?.held.get(`tool_call:${call}`)).toBe('out')
    expect(machine.store.calls.get(call)?.status).toBe('completed')
  })

  test('a result of another request does not take the place of the one that was settled', () => {
    const machine = calling()
    const [call = ''] = machine.waiting
    machine.continue(resultsOf(machine))
    machine.crash()
    machine.continue(results([call], { content: 'something else' }))
    expect(machine.sealed?.held.has(`tool_call:${call}`)).toBe(false)
  })

  test('what the cut turn had said is gone with it', () => {
    const machine = calling()
    const message = resultsOf(machine)
    machine.continue(message, { digest: 'same' })
    machine.round({ text: 'lost', calls: [memory('record', 'k', 'a fact')] })
    expect(machine.store.messages).toHaveLength(3)
    machine.crash()
    expect([machine.store.messages.length, machine.store.facts.size]).toEqual([2, 0])
    expect(isAccepted(machine.continue(message, { digest: 'same' }))).toBe(true)
  })
})

function memory(op: 'record' | 'forget', key: string, content = '') {
  const asked =
    op === 'record'
      ? ({ op, scope: 'session', key, content, localOnly: false } as const)
      : ({ op, scope: 'session', key } as const)
  return {
    call: { name: 'memory', arguments: { ...asked } },
    to: 'model' as const,
    result: 'noted',
    isError: false,
    refused: false,
    memory: asked,
  }
}

describe('[EC 16] facts of a sealed session', () => {
  const contents = (machine: Machine) =>
    [...machine.store.facts.keys()].map((id) => machine.sealed?.known.get(`memory:${id}`))

  /** Records a fact in a run of its own and seals it. */
  function remembering(content: string): Machine {
    const machine = served()
    machine.round({ calls: [memory('record', 'k', content)] })
    machine.round({ text: 'noted' })
    machine.continue(sealedOf(machine))
    return machine
  }

  /** A new turn with everything opened. */
  function nextTurn(machine: Machine): void {
    machine.execute('next')
    if (machine.pauseToOpen()) machine.continue(opening(machine))
  }

  test('key and content go to be sealed as one text', () => {
    const machine = remembering('one')
    expect(contents(machine)).toEqual(['{"key":"k","content":"one"}'])
  })

  test('twice under one key in one answer: the later one stands alone once it is sealed', () => {
    const machine = served()
    machine.round({ calls: [memory('record', 'k', 'one'), memory('record', 'k', 'two')] })
    machine.round({ text: 'noted' })
    machine.continue(sealedOf(machine))
    expect(contents(machine)).toEqual(['{"key":"k","content":"two"}'])
  })

  test('a fact is replaced when the new one is sealed, and not before', () => {
    const machine = remembering('one')
    nextTurn(machine)
    machine.round({ calls: [memory('record', 'k', 'two')] })
    machine.round({ text: 'noted' })
    expect(contents(machine)).toHaveLength(2)
    machine.continue(sealedOf(machine))
    expect(contents(machine)).toEqual(['{"key":"k","content":"two"}'])
  })

  test('[D20] where the new one is lost, the old one stands', () => {
    const machine = remembering('one')
    nextTurn(machine)
    machine.round({ calls: [memory('record', 'k', 'two')] })
    machine.crash()
    expect(contents(machine)).toEqual(['{"key":"k","content":"one"}'])
    nextTurn(machine)
    machine.round({ calls: [memory('record', 'k', 'three')] })
    machine.round({ text: 'noted' })
    machine.continue(sealedOf(machine))
    expect(contents(machine)).toEqual(['{"key":"k","content":"three"}'])
  })

  test('forgotten before it was sealed: nobody is asked to seal it', () => {
    const machine = served()
    machine.round({ calls: [memory('record', 'k', 'one')] })
    machine.round({ calls: [memory('forget', 'k')] })
    machine.round({ text: 'noted' })
    expect(kindsOf(machine.asked)).not.toContain('memory')
    expect(machine.store.facts.size).toBe(0)
  })

  test('[D20] a request that sealed a fact is good again after that was forgotten', () => {
    const machine = served()
    machine.round({ calls: [memory('record', 'k', 'one'), clientCall('shell')] })
    const message = resultsOf(machine)
    machine.continue(message, { digest: 'same' })
    machine.round({ calls: [memory('forget', 'k')] })
    machine.crash()
    expect(isAccepted(machine.continue(message, { digest: 'same' }))).toBe(true)
  })

  test('what is remembered of the user stays in clear', () => {
    const machine = served()
    const op = { op: 'record', scope: 'user', key: 'k', content: 'likes tea', localOnly: false } as const
    machine.round({ calls: [{ ...memory('record', 'k'), memory: op }] })
    expect(machine.store.memory).toEqual([op])
    expect(kindsOf(machine.state?.unsealed?.refs ?? [])).not.toContain('memory')
  })
})

describe('[EC 13] a gate that was decided before content had to be opened', () => {
  test('is not decided again when the turn goes on', () => {
    const machine = opened()
    machine.continue(opening(machine))
    machine.accept({
      type: 'turn_resolved',
      lease: machine.lease,
      report: makeReport(),
      traces: [],
      gate: { kind: 'remote_disclosure', disclosure: DISCLOSURE },
      failed: ['openai/a'],
      call: makeRecord('lost'),
      failedCall: null,
    })
    machine.crash()
    machine.continue(decision(machine.approvalId, 'approved', { encrypted: seals(machine) }))
    expect(machine.pauseToOpen()).toBe(true)
    expect(machine.phase).toMatchObject({ k: 'AwaitingDecrypt', gate: { failed: ['openai/a'] } })
    machine.continue(opening(machine))
    expect(machine.phase).toMatchObject({ k: 'AwaitingDecrypt', gate: { failed: ['openai/a'] } })
    expect(machine.store.approvals).toMatchObject([{ outcome: 'approved' }])
    expect(machine.state?.disclosed).toHaveLength(1)
    machine.round({ text: 'answer' })
    expect(machine.outcome?.status).toBe('completed')
  })

  test('the reason of a decision is not stored: it is in the trace, which is sealed', () => {
    const machine = gated()
    machine.continue(
      decision(machine.approvalId, 'approved', { reason: 'why not', encrypted: seals(machine) }),
    )
    expect(machine.store.approvals).toMatchObject([{ decision: 'approved' }])
    expect(machine.store.approvals[0]).not.toHaveProperty('reason')
    expect([...(machine.sealed?.held.values() ?? [])]).toContainEqual(expect.stringContaining('why not'))
  })
})

describe('[EC 17.3] opened content', () => {
  test('every record that was asked for has to come', () => {
    const machine = opened()
    const message = opening(machine)
    expect(refused(machine, { ...message, data: { ...message.data, plaintext: {} } })).toHaveProperty(
      'missing',
    )
    expect(isAccepted(machine.continue(message))).toBe(true)
    expect(machine.pauseToOpen()).toBe(false)
  })

  test('what is no content of the session does not come into memory', () => {
    const machine = opened()
    const message = opening(machine)
    const plaintext = { ...message.data.plaintext, 'message:nobody': 'x' }
    machine.continue({ ...message, data: { ...message.data, plaintext } })
    expect(machine.sealed?.held.has('message:nobody')).toBe(false)
  })
})

describe('[D27] what a client never seals', () => {
  const failOnce = (machine: Machine, text: string) => {
    machine.execute(text)
    machine.resolve()
    machine.fail()
  }

  test('is kept over failed runs as long as it is little, and asked for with the next outcome', () => {
    const machine = new Machine(SEALED)
    failOnce(machine, 'first')
    machine.execute('second')
    machine.round({ text: 'answer' })
    expect(kindsOf(machine.state?.unsealed?.refs ?? []).filter((kind) => kind === 'message')).toHaveLength(3)
  })

  test('is given up when the next run begins once it would fill the memory of the object', () => {
    const machine = new Machine(SEALED)
    const long = 'x'.repeat(3 * 1024 * 1024)
    for (let i = 0; i < 6; i++) failOnce(machine, long)
    const messages = machine.state?.unsealed?.refs.filter((ref) => ref.startsWith('message:')) ?? []
    expect(messages.length).toBeLessThanOrEqual(3)
    machine.execute('last')
    machine.round({ text: 'answer' })
    expect(kindsOf(machine.state?.unsealed?.refs ?? [])).toEqual(
      expect.arrayContaining(['message', 'run_input']),
    )
  })
})

describe('[D27] new words while much waits', () => {
  test('are refused where they bring no ciphertext, and taken where they do; a stop is never refused', () => {
    const machine = served()
    machine.round({ text: 'x'.repeat(1024 * 1024), calls: [EDIT] })
    const refusal = machine.continue(inject('more'))
    expect(refusal).toMatchObject({
      refused: { code: 'invalid_request', details: { missing: expect.any(Array) } },
    })
    const message = inject('more')
    if (message.type !== 'inject') throw new Error('no inject')
    const withSeals: ContinueRequest = { ...message, data: { ...message.data, encrypted: seals(machine) } }
    expect(isAccepted(machine.continue(withSeals))).toBe(true)
    expect(isAccepted(machine.continue(BREAK))).toBe(true)
  })

  test('give up traces alone when there are thousands of those', () => {
    const machine = served()
    machine.resolve()
    for (let i = 0; i < 150; i++) {
      machine.answer({ text: 'look', calls: Array.from({ length: 4 }, () => EDIT) })
      machine.continue(inject('more'))
      machine.resolve()
    }
    const refs = machine.state?.unsealed?.refs ?? []
    expect(refs.length).toBeLessThan(2_100)
    expect(refs.filter((ref) => ref.startsWith('message:'))).toHaveLength(301)
  })
})

test('[D20] of an answer that both sides have lost nothing has to be handed in; who has part of it has all', () => {
  const machine = answered()
  const all = seals(machine)
  machine.crash()
  const [ref = '', ...others] = Object.keys(all)
  const part = Object.fromEntries(others.flatMap((other) => (all[other] ? [[other, all[other]]] : [])))
  expect(refused(machine, { type: 'sealed', data: { encrypted: part } })).toEqual({ missing: [ref] })
  expect(machine.continue({ type: 'sealed', data: { encrypted: {} } })).toMatchObject({
    reply: { outcome: { status: 'idle' } },
  })
  expect(machine.store.messages).toEqual([])
})
