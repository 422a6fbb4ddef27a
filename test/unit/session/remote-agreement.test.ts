import { describe, expect, it } from 'vitest'
import type { MediatedCall } from '../../../src/core/mediate.ts'
import { frameBytes } from '../../../src/core/remote/bounded-text.ts'
import { needsSnapshot, projectEvents } from '../../../src/core/remote/project.ts'
import type { RunInputEvent } from '../../../src/core/run/inputs.ts'
import { pendingBatchId } from '../../../src/core/run/pending.ts'
import type { RunState } from '../../../src/core/run/state.ts'
import { step } from '../../../src/core/run/step.ts'
import type { ContinueRequest } from '../../../src/protocol/execution/continue.ts'
import { RemoteEvent } from '../../../src/protocol/remote/events.ts'
import { MAX_PAYLOAD_BYTES } from '../../../src/protocol/remote/limits.ts'
import type { RemoteTurnTiming } from '../../../src/protocol/remote/message.ts'
import type {
  RemoteApprovalBatch,
  RemoteDecision,
  RemoteQuestion,
} from '../../../src/protocol/remote/question.ts'
import { RemoteSnapshot } from '../../../src/protocol/remote/snapshot.ts'
import { RemoteView } from '../../../src/session/remote-view.ts'
import { type Checkpoint, loadCheckpoint } from '../../../src/storage/session/checkpoint.ts'
import { commitStep } from '../../../src/storage/session/commit.ts'
import { migrateSession } from '../../../src/storage/session/migrations.ts'
import { saveSession } from '../../../src/storage/session/session-row.ts'
import { makeRequest } from '../../support/core/builders.ts'
import { makeRandom, type Random } from '../../support/core/random.ts'
import {
  BREAK,
  clientCall,
  decision,
  executeRequested,
  inject,
  makePartial,
  makeRecord,
  makeReport,
  refusedCall,
  results,
} from '../../support/core/run-machine.ts'
import { makeNodeSql } from '../../support/node/node-sql.ts'
import { makeSession } from '../storage/contract/builders.ts'

type Item = { says: string } | { tool: string; state: string; gave: string }

/** What a device knows of a session: a snapshot, and the events since. */
class Client {
  items: Item[] = []
  turn: { id: string; live: string } | null = null
  approval: RemoteApprovalBatch | null = null
  question: RemoteQuestion | null = null
  decision: RemoteDecision | null = null
  lastTurn: RemoteTurnTiming | null = null

  static of(snapshot: RemoteSnapshot): Client {
    const client = new Client()
    client.items = snapshot.transcript.flatMap(({ role, content, tool }): Item[] => {
      if (tool !== undefined)
        return [
          {
            tool: tool.call_id ?? '',
            state: tool.pending ? 'running' : tool.success ? 'succeeded' : 'failed',
            gave: content.text,
          },
        ]
      // An answer without words shows by its calls alone.
      return role === 'assistant' && content.text === '' ? [] : [{ says: content.text }]
    })
    const { turn } = snapshot
    client.turn = turn === undefined ? null : { id: turn.turn_id, live: turn.live_response.text }
    client.approval = snapshot.pending_approval ?? null
    client.question = snapshot.pending_question ?? null
    client.decision = snapshot.approval_decision ?? null
    client.lastTurn = snapshot.last_turn ?? null
    return client
  }

  apply(event: RemoteEvent): void {
    switch (event.type) {
      case 'turn_started':
        this.items.push({ says: event.prompt.text })
        this.turn = { id: event.turn_id ?? '', live: '' }
        this.decision = null
        return
      case 'text_delta':
        if (this.turn === null) throw new Error('text outside a turn')
        this.turn.live += event.text
        return
      case 'tool_started':
        this.#closeSegment()
        this.items.push({ tool: event.tool.id, state: event.tool.state, gave: '' })
        return
      case 'tool_finished': {
        const at = this.items.findIndex((item) => 'tool' in item && item.tool === event.id)
        if (at < 0) throw new Error(`${event.id} ends and never began`)
        this.items[at] = {
          tool: event.id,
          state: event.success ? 'succeeded' : 'failed',
          gave: event.content.text,
        }
        return
      }
      case 'approval_requested':
        this.approval = event.approval
        return
      case 'approval_resolved':
        if (this.approval?.batch_id !== event.batch_id) throw new Error('another approval is resolved')
        this.approval = null
        return
      case 'approval_decision':
        this.decision = event.decision
        return
      case 'question_requested':
        this.question = event.question
        return
      case 'question_resolved':
        if (this.question?.question_id !== event.question_id) throw new Error('another question is resolved')
        this.question = null
        return
      case 'turn_finished':
      case 'turn_cancelled':
        if (this.turn?.id !== event.turn_id) throw new Error('another turn ends')
        this.#closeSegment()
        this.turn = null
        this.lastTurn = event.timing ?? null
        return
      default:
        throw new Error(`a step tells ${event.type}`)
    }
  }

  #closeSegment(): void {
    if (this.turn === null || this.turn.live === '') return
    this.items.push({ says: this.turn.live })
    this.turn.live = ''
  }
}

const askCall = (questions: number): MediatedCall => ({
  call: {
    name: 'ask_user',
    arguments: {
      questions: Array.from({ length: questions }, (_, n) => ({
        header: `h${n}`,
        text: `t${n}`,
        options: [],
      })),
    },
  },
  to: 'client',
  requiresApproval: 'allow',
  recordsDiff: false,
  questions,
})

/** A session with its machine, its rows and a device that follows it. */
class World {
  readonly #sql = makeNodeSql()
  readonly #random: Random
  readonly view: RemoteView
  #checkpoint: Checkpoint
  #committing: RunState | null = null
  #live = ''
  #nowMs = 1_800_000_000_000
  #ids = 0
  client: Client
  /** Steps by what became of them. */
  readonly tally = { events: 0, snapshots: 0 }

  constructor(seed: number) {
    this.#random = makeRandom(seed)
    migrateSession(this.#sql)
    saveSession(this.#sql, makeSession())
    this.#checkpoint = loadCheckpoint(this.#sql)
    this.view = new RemoteView({
      sql: this.#sql,
      state: () => this.state,
      session: () => makeSession(),
      row: () => ({
        session_id: 's',
        registration_epoch: 1,
        title: '',
        model: '',
        activity: 'idle',
        attention: { approval: false, question: false },
        health: 'live',
      }),
      counters: () => this.#checkpoint.counters,
      live: () => (this.state?.active ? { text: this.#live, thoughts: null } : null),
      textOf: () => undefined,
      nowMs: () => this.#nowMs,
    })
    this.client = Client.of(this.#snapshot())
  }

  get state(): RunState | null {
    return this.#committing ?? this.#checkpoint.state
  }

  move(): void {
    this.#nowMs += this.#random.int(5_000)
    if (this.state?.active && this.#random.chance(0.5)) this.#speak()
    this.#send(this.#input())
    const fresh = Client.of(this.#snapshot())
    const shown = Math.min(fresh.items.length, this.client.items.length)
    expect({ ...this.client, items: this.client.items.slice(-shown) }).toEqual({
      ...fresh,
      items: fresh.items.slice(-shown),
    })
  }

  /** The model says some words: devices are told, and nothing is stored. */
  #speak(): void {
    const text = `word ${++this.#ids} `
    this.#live += text
    this.client.apply({ type: 'text_delta', text })
  }

  #send(input: RunInputEvent): void {
    const before = this.#checkpoint.state
    const result = step(before, input, { nowMs: this.#nowMs, newId: () => `id-${++this.#ids}` })
    if (!('state' in result)) return
    let events: RemoteEvent[] = []
    this.#checkpoint = this.#sql.transaction(() =>
      commitStep(this.#sql, this.#checkpoint, result, {
        nowMs: this.#nowMs,
        runInput: makeRequest(),
        sealedId: null,
        tell: (counters) => {
          this.#committing = result.state
          events = projectEvents(result.events, this.view)
          return counters
        },
      }),
    )
    this.#committing = null
    const { active } = result.state
    if (active?.lease !== before?.active?.lease || result.writes.some(({ w }) => w === 'assistant_message'))
      this.#live = ''
    for (const event of events) {
      expect(RemoteEvent.parse(JSON.parse(JSON.stringify(event)))).toEqual(event)
      this.client.apply(event)
      this.tally.events++
    }
    if (!needsSnapshot(result.events, before, result.state)) return
    this.tally.snapshots++
    // It replaces what the events led to; what they tell of the end of a turn has to be the same.
    const { lastTurn } = this.client
    this.client = Client.of(this.#snapshot())
    if (events.some(({ type }) => type === 'turn_finished' || type === 'turn_cancelled'))
      expect(this.client.lastTurn).toEqual(lastTurn)
  }

  #snapshot(): RemoteSnapshot {
    const snapshot = this.view.snapshot({ id: 'cut', sequence: 1 })
    expect(frameBytes(snapshot)).toBeLessThanOrEqual(MAX_PAYLOAD_BYTES)
    expect(RemoteSnapshot.parse(JSON.parse(JSON.stringify(snapshot)))).toEqual(snapshot)
    return snapshot
  }

  #input(): RunInputEvent {
    const random = this.#random
    const { state } = this
    const digest = `digest ${++this.#ids}`
    const partial = this.#live === '' ? null : makePartial(this.#live)
    const message = (sent: ContinueRequest): RunInputEvent => ({
      type: 'continuation_received',
      digest,
      message: sent,
      partial,
      localOnly: false,
    })
    if (state === null || random.chance(0.05))
      return executeRequested(`prompt ${digest}`, random.chance(0.2) ? 'plan' : null, digest, {
        ...(random.chance(0.3) ? { keyed: ['ollama' as const] } : {}),
      })
    if (random.chance(0.05)) return message(BREAK)
    if (random.chance(0.07)) return message(inject(`more ${digest}`))
    if (state.active !== null) return this.#served(state.active.lease)
    const { phase } = state
    const batchId = pendingBatchId(phase)
    if (phase.k === 'AwaitingApproval') {
      const chosen = random.pick(['approved', 'approved', 'rejected'] as const)
      if (batchId !== null && random.chance(0.5))
        return { type: 'device_decided', digest, batchId, decision: chosen, partial }
      if (random.chance(0.2)) return { type: 'decision_delivered' }
      return message(decision(phase.approvalId, chosen))
    }
    if (phase.k === 'AwaitingTool') {
      const question = phase.calls
        .flatMap(({ questions = [], settled }) => (settled ? [] : questions))
        .find(({ answer }) => answer === null)
      if (question !== undefined && random.chance(0.6))
        return random.chance(0.1)
          ? { type: 'question_cancelled', questionId: question.id, partial }
          : { type: 'question_answered', digest, questionId: question.id, answer: 'yes' }
      if (batchId !== null && random.chance(0.5))
        return {
          type: 'device_decided',
          digest,
          batchId,
          decision: random.chance(0.8) ? 'approved' : 'rejected',
          partial,
        }
      if (random.chance(0.2)) return { type: 'decision_delivered' }
      return message(results(phase.calls.map(({ callId }) => callId)))
    }
    return executeRequested(`prompt ${digest}`, null, digest)
  }

  /** What comes of the turn that is being served. */
  #served(lease: string): RunInputEvent {
    const random = this.#random
    const call = makeRecord('answered', { inputTokens: 1 })
    if (random.chance(0.1)) return { type: 'object_started' }
    if (random.chance(0.1))
      return {
        type: 'turn_failed',
        lease,
        failure: { code: 'provider_error', message: 'it failed' },
        partial: this.#live === '' ? null : makePartial(this.#live),
        call: makeRecord('failed'),
      }
    if (random.chance(0.15) && this.#live === '')
      return {
        type: 'turn_resolved',
        lease,
        report: makeReport(),
        traces: [],
        gate: {
          kind: 'cost_limit',
          cost: { rule: 'r', provider: 'ollama', model: 'm', limit: '1', estimate: null },
        },
        call: makeRecord('lost'),
        failedCall: null,
      }
    if (this.#live === '' && random.chance(0.7)) this.#speak()
    const calls = random.chance(0.5)
      ? random.list(3, (n) =>
          random.pick([
            clientCall(`tool${n}`),
            clientCall(`tool${n}`, 'ask'),
            refusedCall('none'),
            askCall(1 + random.int(3)),
          ]),
        )
      : []
    return {
      type: 'model_responded',
      lease,
      text: this.#live,
      ending: null,
      report: makeReport(),
      calls,
      call,
      usage: { input_tokens: 1, output_tokens: 1 },
    }
  }
}

describe('whoever follows the events', () => {
  it.each(Array.from({ length: 10 }, (_, seed) => seed))(
    '[RF 13] knows after each step what a snapshot would tell, seed %i',
    (seed) => {
      const world = new World(seed)
      for (let n = 0; n < 60; n++) world.move()
      expect(world.tally.events).toBeGreaterThan(20)
      expect(world.tally.snapshots).toBeGreaterThan(2)
    },
  )
})
