import type { RunState } from '../../../../src/core/run/state.ts'
import type { CallRecord, NewCall, TraceEntry, Write } from '../../../../src/core/run/writes.ts'
import { NOT_LISTED, type SessionRow } from '../../../../src/storage/session/session-row.ts'
import type { StoredTurn } from '../../../../src/storage/session/turns.ts'
import { NOW } from './rules.ts'

export const userMessage = (
  id: string,
  text: string,
  runId = 'run',
): Extract<Write, { w: 'user_message' }> => ({
  w: 'user_message',
  id,
  runId,
  text,
})
export const assistantMessage = (
  id: string,
  text: string,
  calls: NewCall[] = [],
  interrupted = false,
): Extract<Write, { w: 'assistant_message' }> => ({
  w: 'assistant_message',
  id,
  runId: 'run',
  text,
  provider: 'ollama',
  model: 'small',
  interrupted,
  calls,
})
export const call = (id: string, more: Partial<NewCall> = {}): NewCall => ({
  id,
  name: 'read_file',
  arguments: { path: 'a.ts' },
  recordsDiff: false,
  ...more,
})

export const lostCall: CallRecord = {
  provider: 'ollama',
  model: 'small',
  taskType: 'chat',
  chosenBy: 'default route',
  status: 'lost',
  usage: null,
}
export const entry = (id: string): TraceEntry => ({
  id,
  createdAtMs: NOW,
  taskType: 'chat',
  provider: 'ollama',
  model: 'small',
  payload: { type: 'message', role: 'user', provider: 'ollama', model: 'small' },
})
export const makeState = (changes: Partial<RunState> = {}): RunState => ({
  v: 1,
  runId: 'run',
  turn: 1,
  phase: { k: 'Idle' },
  active: null,
  driver: { kind: 'http' },
  driverEpoch: 1,
  unsettled: null,
  planning: false,
  planApproved: false,
  remoteDeclined: false,
  disclosed: [],
  unattendedRounds: 0,
  lastRoute: null,
  promptTraced: false,
  traceId: 'trace:1',
  checkpointTurnId: null,
  ...changes,
})

export const makeSession = (changes: Partial<SessionRow> = {}): SessionRow => ({
  sessionId: 's',
  userId: 'u',
  title: 't',
  scope: null,
  keyId: null,
  createdAtMs: NOW,
  updatedAtMs: NOW,
  archivedAtMs: null,
  deletedAtMs: null,
  rev: 0,
  ...NOT_LISTED,
  settings: null,
  ...changes,
})

export const makeTurn = (seq: number, changes: Partial<StoredTurn> = {}): StoredTurn => ({
  turnId: `t${seq}`,
  seq,
  runId: 'run',
  turn: 1,
  status: 'running',
  trace: [],
  calls: [],
  outcome: null,
  startedAtMs: NOW,
  endedAtMs: null,
  rev: 1,
  ...changes,
})
