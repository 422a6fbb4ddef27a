import { expect, test } from 'vitest'
import type { TraceEntry, TracePayload } from '../../../src/core/run/writes.ts'
import { type Payload, TraceEvent } from '../../../src/protocol/execution/trace.ts'
import { type OpenTrace, policiesOf, traceEvents, traceWindow } from '../../../src/session/traces.ts'
import { newId } from '../../../src/storage/ids.ts'

const entryOf = (payload: TracePayload): TraceEntry => ({
  id: newId(),
  createdAtMs: 1_760_000_000_000,
  taskType: 'chat',
  provider: 'ollama',
  model: 'small',
  payload,
})
const sealed = (type: Payload['type'] = 'message') => entryOf({ type: 'sealed', event_type: type })
const message: Payload = { type: 'message', role: 'user', provider: 'ollama', model: 'small' }
const decided = (policy: string): Payload => ({
  type: 'routing_decision',
  provider: 'ollama',
  model: 'small',
  fallback_used: false,
  override_used: false,
  reason: 'default route',
  inputs: {
    policy,
    paths: [],
    effort: 'low',
    rule_capabilities: {},
    needed_capabilities: {},
    may_call_tools: true,
    required_tokens: 1,
    models: [],
  },
})
const envelope = (ciphertext: string) => ({
  encrypted: { version: 1, algorithm: 'xchacha20poly1305', key_id: 'kf_k', nonce: 'n', ciphertext },
})
const turn = { turnId: newId(), runId: newId() }
const knows =
  (...entries: TraceEntry[]): OpenTrace =>
  (id) =>
    entries.some((entry) => entry.id === id) ? envelope(id) : null

test('[EC 19] a sealed entry is shown with its envelope, its kind in clear and the id that it is bound to', () => {
  const entry = sealed('routing_decision')
  const [event] = traceEvents(entry, turn, () => envelope('x'))
  expect(TraceEvent.parse(event)).toEqual(event)
  expect(event).toMatchObject({ event_type: 'routing_decision', id: entry.id, payload: envelope('x') })
})

test('[EC 19] a sealed entry whose content is still held is shown in clear, and one that is lost not at all', () => {
  const entry = sealed()
  expect(traceEvents(entry, turn, () => ({ plaintext: message }))).toMatchObject([
    { event_type: 'message', id: entry.id, payload: { plaintext: message } },
  ])
  expect(traceEvents(entry, turn, () => null)).toEqual([])
  expect(traceEvents(entry, turn)).toEqual([])
})

test('[D28] a window counts the events that are shown: lost ones take no place in it', () => {
  const entries = Array.from({ length: 5 }, () => sealed())
  const [first, , third, fourth, fifth] = entries
  if (!first || !third || !fourth || !fifth) throw new Error('there are five')
  const open = knows(first, third, fourth, fifth)
  const opened: string[] = []
  const openTurn = () => ({
    isTold: (id: string) => open(id) !== null,
    open: (id: string) => {
      opened.push(id)
      return open(id)
    },
  })
  const ids = (limit: number, offset: number) =>
    traceWindow([{ ...turn, trace: entries }], { limit, offset }, openTurn).map(({ id }) => id)
  expect(ids(2, 0)).toEqual([first.id, third.id])
  opened.length = 0
  expect(ids(9, 2)).toEqual([fourth.id, fifth.id])
  expect(opened).toEqual([fourth.id, fifth.id])
})

test('[EC 19] events in clear bear no id, and one event stands for each verdict', () => {
  const items = ['a', 'b'].map((path) => ({ path, kind: 'file', included: true, reason: 'fits' }))
  const events = traceEvents(entryOf({ type: 'context_selection_list', items }), turn)
  expect(events.map(({ payload, id }) => [payload, id])).toEqual(
    items.map((item) => [{ plaintext: { type: 'context_selection', ...item } }, undefined]),
  )
})

test('[U09] policies are named by the decisions in clear, and by the turns of sealed events', () => {
  const other = { turnId: newId(), runId: newId() }
  const clear = traceEvents(entryOf(decided('p1')), turn)
  const hidden = traceEvents(sealed(), other, () => envelope('x'))
  const asked: string[][] = []
  const ofTurns = (turnIds: ReadonlySet<string>) => {
    asked.push([...turnIds])
    return ['p2']
  }
  expect([...policiesOf([...clear, ...hidden, ...hidden], ofTurns)]).toEqual(['p1', 'p2'])
  expect(asked).toEqual([[other.turnId]])
  expect([...policiesOf(clear, ofTurns)]).toEqual(['p1'])
  expect(asked).toHaveLength(1)
})
