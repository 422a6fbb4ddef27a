/**
 * A session's rows in memory. It applies what the run machine tells it to store, as strictly as the machine promises:
 * whatever is stored twice, settled twice or closed twice is an error here, not overwritten.
 */

import type { MemoryOp } from '../../../src/core/memory.ts'
import type { CallRecord, NewCall, TraceEntry, Write } from '../../../src/core/run/writes.ts'
import type { Seen } from '../../../src/core/transcript.ts'
import { assertNever } from '../../../src/protocol/assert.ts'
import type { TurnResponse } from '../../../src/protocol/execution/turn.ts'

export type StoredCall = NewCall & {
  status: 'pending' | 'completed' | 'failed'
  result: string | null
}

export type StoredMessage = {
  id: string
  runId: string
  role: 'user' | 'assistant'
  text: string
  interrupted: boolean
  localOnly?: true
  seen?: Seen
  calls: StoredCall[]
}

export type StoredTurn = {
  turnId: string
  runId: string
  turn: number
  status: 'running' | 'done' | 'failed' | 'superseded' | 'interrupted'
  calls: CallRecord[]
  trace: TraceEntry[]
  outcome: TurnResponse | null
}

const must = (condition: unknown, message: string): void => {
  if (!condition) throw new Error(`the store refuses: ${message}`)
}

export class RunStore {
  readonly messages: StoredMessage[] = []
  readonly calls = new Map<string, StoredCall>()
  readonly turns = new Map<string, StoredTurn>()
  readonly approvals: Extract<Write, { w: 'approval' }>[] = []
  readonly plans = new Map<
    string,
    { content: string; status: 'draft' | 'approved' | 'rejected'; version: number }
  >()
  /** What was to be remembered or forgotten, in order. */
  readonly memory: MemoryOp[] = []
  readonly sealed = new Map<string, string>()
  /** How often a run's input was stored, whole or stripped. */
  runInputs = 0
  readonly #ids = new Set<string>()

  apply(writes: readonly Write[]): void {
    for (const write of writes) this.#apply(write)
  }

  #fresh(id: string): void {
    must(!this.#ids.has(id), `the id ${id} is used twice`)
    this.#ids.add(id)
  }

  #turn(turnId: string): StoredTurn {
    const turn = this.turns.get(turnId)
    if (!turn) throw new Error(`the store refuses: no turn ${turnId}`)
    return turn
  }

  #apply(write: Write): void {
    switch (write.w) {
      case 'run_input':
      case 'injected_input':
        this.runInputs++
        return
      case 'user_message':
        this.#fresh(write.id)
        this.messages.push({
          id: write.id,
          runId: write.runId,
          role: 'user',
          text: write.text,
          interrupted: false,
          ...(write.localOnly ? { localOnly: true } : {}),
          calls: [],
        })
        return
      case 'keep_local': {
        const said = this.messages.filter(({ runId }) => runId === write.runId)
        must(said.length > 0, `${write.runId} has said nothing that could be kept local`)
        for (const message of said) message.localOnly = true
        return
      }
      case 'assistant_message': {
        this.#fresh(write.id)
        const calls = write.calls.map(
          (call): StoredCall => ({
            ...call,
            status: call.answer ? (call.answer.isError ? 'failed' : 'completed') : 'pending',
            result: call.answer?.result ?? null,
          }),
        )
        for (const call of calls) {
          this.#fresh(call.id)
          this.calls.set(call.id, call)
        }
        const { id, runId, text, interrupted, localOnly, seen } = write
        this.messages.push({
          id,
          runId,
          role: 'assistant',
          text,
          interrupted,
          ...(localOnly ? { localOnly } : {}),
          ...(seen ? { seen } : {}),
          calls,
        })
        return
      }
      case 'settle_call': {
        const call = this.calls.get(write.callId)
        if (!call) throw new Error(`the store refuses: no call ${write.callId}`)
        must(call.status === 'pending', `call ${write.callId} is settled twice`)
        call.status = write.isError ? 'failed' : 'completed'
        call.result = write.content
        return
      }
      case 'approval':
        this.#fresh(write.id)
        must(
          this.approvals.every(({ targetId }) => targetId !== write.targetId),
          `${write.targetId} is decided twice`,
        )
        this.approvals.push(write)
        return
      case 'plan':
        this.#fresh(write.id)
        this.plans.set(write.id, { content: write.content, status: 'draft', version: write.version })
        return
      case 'plan_status': {
        const plan = this.plans.get(write.id)
        if (!plan) throw new Error(`the store refuses: no plan ${write.id}`)
        must(plan.status === 'draft', `plan ${write.id} is decided twice`)
        plan.status = write.status
        return
      }
      case 'open_turn':
        this.#fresh(write.turnId)
        this.turns.set(write.turnId, {
          turnId: write.turnId,
          runId: write.runId,
          turn: write.turn,
          status: 'running',
          calls: [],
          trace: [],
          outcome: null,
        })
        return
      case 'trace':
        for (const { id } of write.entries) this.#fresh(id)
        this.#turn(write.turnId).trace.push(...write.entries)
        return
      case 'call':
        this.#turn(write.turnId).calls.push(write.call)
        return
      case 'call_settled': {
        const { calls } = this.#turn(write.turnId)
        must(calls.at(-1)?.status === 'lost', `${write.turnId} settles a call that is not under way`)
        calls[calls.length - 1] = write.call
        return
      }
      case 'close_turn': {
        const turn = this.#turn(write.turnId)
        must(turn.status === 'running', `turn ${write.turnId} is closed twice`)
        turn.status = write.status
        turn.outcome = write.outcome
        return
      }
      case 'memory':
        this.#fresh(write.id)
        this.memory.push(write.op)
        return
      case 'sealed':
        this.sealed.set(write.ref, write.payload.ciphertext)
        return
      default:
        assertNever(write)
    }
  }
}
