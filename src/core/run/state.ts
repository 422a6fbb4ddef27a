import type { ApprovalDecision } from '../../protocol/execution/continue.ts'
import type { ContentRef, Decimal, ModelReference, Provider } from '../../protocol/execution/ids.ts'
import type { TaskIntent } from '../../protocol/execution/policy.ts'
import type { ApprovalKind, ToolApproval } from '../../protocol/execution/turn.ts'

/** A call that the client has to answer. */
export type ToolWait = {
  callId: string
  toolName: string
  requiresApproval: ToolApproval
  recordsDiff: boolean
  /** Its result has been accepted; the turn that it belongs to has not reached a checkpoint yet. */
  settled: boolean
  /** A device has decided it, and its driver has not reported yet (D05). */
  decision?: DeviceDecision
  /** Of an `ask_user` call: its questions, in their order (D08). */
  questions?: AskedQuestion[]
}

/** One question of a chain. Its words stand in the arguments of the call. `answer`: null while nobody has given one. */
export type AskedQuestion = { id: string; answer: string | null }

/** What a device decided while the driver has yet to act on it (D05, D06, D10). Times are epoch milliseconds. */
export type DeviceDecision = {
  decision: ApprovalDecision
  storedAtMs: number
  /** When the driver was shown it; absent before. */
  deliveredAtMs?: number
}

/**
 * What a sealed session still lacks the ciphertext of (EC 17.3). Its rows are stored without their texts; the texts are in
 * memory, and lost with it.
 */
export type Unsealed = {
  /** In the order in which it was made. */
  refs: ContentRef[]
  /** So many of them the client has been asked to seal; the others came up since. */
  told: number
  /**
   * The request whose turn led to the present pause: sent again after the texts of the pause were lost, it is served
   * again (D20).
   */
  answered: { digest: string; kind: string; planning?: true } | null
  /** Of `refs`, the user's words that came with the request being served. */
  words: ContentRef | null
}

export const NOTHING_UNSEALED: Unsealed = { refs: [], told: 0, answered: null, words: null }

/** What was shown to the user before a model may see it (EC 13). */
export type Disclosure = {
  provider: Provider
  /** The model that it was first asked for; what is approved holds for every model of the provider. */
  model: string
  paths: string[]
  /** It was asked for a local model. */
  local?: true
}

/**
 * A disclosure that the user approved, for the rest of the run (U23). States of older releases hold some without an id:
 * those were given under narrower terms, and count as not given.
 */
export type GivenDisclosure = Disclosure & { id?: string }

/** A call that may cost more than its rule allows, as it was shown to the user before it may leave (EC 13). */
export type AskedCost = {
  /** The name of the rule that sets the limit. */
  rule: string
  provider: Provider
  model: string
  limit: Decimal
  /** From the prompt alone to the longest answer; null where nobody knows the price (EC 20.3). */
  estimate: { min: Decimal; max: Decimal } | null
}

/** A cost that the user accepted, for the rest of the run, of calls by this rule to this model (U23). */
export type CostGrant = Pick<AskedCost, 'rule' | 'provider' | 'model'> & {
  id: string
  /** The most that one call may cost. Absent: calls are accepted whose price nobody knows, and no others. */
  upTo?: Decimal
}

/** A gate that the turn being served stood at, and that has been decided. */
export type PassedGate = {
  /** What had been asked before the gate, and did not answer. */
  failed?: readonly ModelReference[]
}

/** The durable checkpoint of a run (EC 5.1). Each phase carries only its own fields. */
export type RunPhase =
  | { k: 'Idle' }
  | {
      k: 'AwaitingDecrypt'
      records: ContentRef[]
      /** The gate that was decided before it turned out that content has to be opened first. */
      gate?: PassedGate
      resume: 'BuildPrompt'
    }
  | {
      k: 'AwaitingTool'
      calls: ToolWait[]
      /** The id under which devices decide the calls that ask, together (D02); absent where none does. */
      batchId?: string
      resume: 'NextTurn'
    }
  | {
      k: 'AwaitingApproval'
      approvalId: string
      kind: ApprovalKind
      /** The plan that a `plan` approval is about. */
      planId?: string
      /** What a disclosure approval is about. */
      disclosure?: Disclosure
      /** What a cost approval is about; absent in states of older releases, where a yes brings nothing. */
      cost?: AskedCost
      /** The decision has been accepted; the turn that it started has not reached a checkpoint yet. */
      decided: ApprovalDecision | null
      /** It was decided by a device, and the run waits for its driver's keys (D06). */
      byDevice?: DeviceDecision
      /** What had been asked in this turn before the gate, and did not answer. */
      failed?: readonly ModelReference[]
      resume: 'Invoke' | 'NextTurn'
    }
  /** `stopped`: the client was asked once before and stopped: a stop now gives up what is unsealed. */
  | { k: 'AwaitingEncrypt'; stopped?: true; resume: 'Finalize' }

/** The processing lock: a turn is being served, independent of the phase (EC 5.2). */
export type Serving = { lease: string; turnId: string; startedAtMs: number; leaseUntilMs: number }

/** Who executes the tools of the run (D05). */
export type Driver = { kind: 'http' } | { kind: 'host'; id: string } | { kind: 'none' }

/** The route of the latest turn: continuations trace under it (EC 19). */
export type LastRoute = { taskType: TaskIntent; provider: Provider; model: string; matchedRule?: string }

/** A session that never had a run has no state. */
export type RunState = {
  v: 1
  runId: string
  /** Turns begun in this run, from 1. */
  turn: number
  phase: RunPhase
  active: Serving | null
  driver: Driver
  driverEpoch: number
  /**
   * The digest of the request that is being served and has not reached a checkpoint. If a crash cuts it off, the same
   * request sent again goes on where it was accepted, and stores nothing twice (D20).
   */
  unsettled: { digest: string; kind: string } | null
  planning: boolean
  planApproved: boolean
  /** `sha256:` key of the policy that the run is decided under; absent in states of older releases. */
  policyDigest?: string
  /** How many plans this run has made; absent before the first, and in states of older releases. */
  planVersion?: number
  /** Nothing of this run goes to a remote model: the user declined a disclosure (EC 13). */
  remoteDeclined: boolean
  /** The same for local models, which a policy may ask about as well; absent for no. */
  localDeclined?: true
  /** What may be shown in this run without asking again, one entry per provider and locality (EC 13, U23). */
  disclosed: GivenDisclosure[]
  /** What calls may cost without asking again, one entry per rule, model and whether the price is known; absent for none. */
  costs?: CostGrant[]
  /** Model calls in a row that were answered by the router alone. */
  unattendedRounds: number
  lastRoute: LastRoute | null
  /** The trace tells of the newest user message. */
  promptTraced: boolean
  /** `trace:<uuid>` of the run's newest trace event. */
  traceId: string
  /** The turn whose outcome is the run's current envelope; null until the run reaches its first checkpoint. */
  checkpointTurnId: string | null
  /** Of a sealed session only. */
  unsealed?: Unsealed
  /** Providers whose keys came with requests of this run: without its driver they cannot be asked (D06). Absent: none. */
  keyed?: readonly Provider[]
  /**
   * Gates, plans and calls of this run that devices settled and that the run went on from without its driver: whoever comes
   * to answer one of them is told where the run stands (D05). Absent: none.
   */
  deviceSettled?: readonly string[]
  /** What a device decided last in this run, and how far that has come (D10); absent: nothing yet. */
  lastDecision?: DeviceDecision & { batchId: string; actedOnAtMs?: number }
  /** When the run began, and for how long turns of it have been served, without the one under way (RF 14). */
  clock?: { startedAtMs: number; workMs: number }
}

/** What an approval decides: a plan, or a gate, which is nothing but its approval (EC 13). */
export const decisionTarget = ({
  approvalId,
  planId,
}: Extract<RunPhase, { k: 'AwaitingApproval' }>): { targetType: 'gate' | 'plan'; targetId: string } =>
  planId === undefined
    ? { targetType: 'gate', targetId: approvalId }
    : { targetType: 'plan', targetId: planId }

/**
 * The run has come to its end: nothing is being served, nothing was cut off by a crash, and no answer is waited for but
 * the ciphertext of what has been told already. What comes next is another run.
 */
export const isOver = ({ active, unsettled, phase }: RunState): boolean =>
  active === null && unsettled === null && (phase.k === 'Idle' || phase.k === 'AwaitingEncrypt')

/** The gate that this turn stood at, now that it has been decided; null for a turn that begins. */
export function passedGate({ phase }: RunState): PassedGate | null {
  if (phase.k === 'AwaitingDecrypt') return phase.gate ?? null
  if (phase.k !== 'AwaitingApproval' || phase.kind === 'plan' || phase.decided === null) return null
  return phase.failed === undefined ? {} : { failed: phase.failed }
}

/** How long a lock holds without being renewed (D21). */
export const LEASE_MS = 90_000
/** How often the turn that is being served renews it (D21). */
export const LEASE_HEARTBEAT_MS = 30_000
