import { planRef, refKind } from '../../protocol/execution/content-refs.ts'
import type { ContentRef } from '../../protocol/execution/ids.ts'
import type { SealedMap } from '../../protocol/execution/sealed.ts'
import type { RunResponse, TurnResponse } from '../../protocol/execution/turn.ts'
import { parseCallArguments } from './contents.ts'
import {
  awaitingApproval,
  awaitingDecrypt,
  awaitingEncrypt,
  awaitingTool,
  gateDetail,
  idle,
  withToEncrypt,
} from './envelope.ts'
import type { RunPhase, RunState } from './state.ts'

/** What a sealed session knows besides the state of its run. */
export type HeldContents = {
  held: ReadonlyMap<ContentRef, string>
  sealedOf(refs: readonly ContentRef[]): SealedMap
}

/** The run's current envelope, with `lost` where it lacks texts. */
export type Standing = { outcome: TurnResponse; lost: ContentRef[] }

/**
 * Where the run of a sealed session stands: its outcomes are stored nowhere, so the envelope is made from the state and
 * from what is in memory. Texts that memory has lost are missing in it, and named (D20).
 */
export function standingOf(state: RunState, contents: HeldContents): Standing {
  const { held } = contents
  const { refs, told } = state.unsealed ?? { refs: [], told: 0 }
  const asked = refs.slice(0, told)
  const texts = Object.fromEntries(
    asked.flatMap((ref) => {
      const text = held.get(ref)
      return text === undefined ? [] : [[ref, text]]
    }),
  )
  return {
    outcome: withToEncrypt(bareEnvelope(state, contents), texts),
    lost: asked.filter((ref) => !held.has(ref)),
  }
}

function bareEnvelope(state: RunState, contents: HeldContents): TurnResponse {
  const { phase, traceId } = state
  switch (phase.k) {
    case 'Idle':
      return idle(traceId)
    case 'AwaitingEncrypt':
      return awaitingEncrypt({}, traceId)
    case 'AwaitingDecrypt':
      return awaitingDecrypt(contents.sealedOf(phase.records), traceId)
    case 'AwaitingApproval':
      return awaitingApproval(
        {
          approval_id: phase.approvalId,
          kind: phase.kind,
          detail: approvalDetail(state, phase, contents.held),
        },
        traceId,
      )
    case 'AwaitingTool': {
      const known = argumentsIn(state, contents.held)
      const open = phase.calls.filter(({ settled }) => !settled)
      const requests = open.map(({ callId, toolName, requiresApproval }) => ({
        call_id: callId,
        name: toolName,
        arguments: known.get(callId) ?? null,
        requires_approval: requiresApproval,
        driver_epoch: state.driverEpoch,
      }))
      return awaitingTool(requests, traceId)
    }
  }
}

function approvalDetail(
  { planVersion }: RunState,
  { planId, disclosure, cost }: Extract<RunPhase, { k: 'AwaitingApproval' }>,
  held: ReadonlyMap<ContentRef, string>,
): Record<string, unknown> | null {
  if (planId !== undefined) {
    const content = held.get(planRef(planId))
    return {
      plan: planId,
      ...(planVersion === undefined ? {} : { version: planVersion }),
      ...(content === undefined ? {} : { content }),
    }
  }
  if (disclosure !== undefined) return gateDetail({ kind: 'remote_disclosure', disclosure })
  return cost === undefined ? null : gateDetail({ kind: 'cost_limit', cost })
}

/** The arguments of the calls that wait, as far as their texts are in memory. */
function argumentsIn(
  { unsealed }: RunState,
  held: ReadonlyMap<ContentRef, string>,
): Map<string, Record<string, unknown>> {
  const refs = unsealed?.refs.filter((ref) => refKind(ref) === 'tool_call') ?? []
  return new Map(refs.flatMap((ref) => parseCallArguments(held.get(ref) ?? '')))
}

/** As `GET …/run` tells it (D20). */
export function toRunResponse({ outcome, lost }: Standing): RunResponse {
  if (lost.length === 0) return outcome
  switch (outcome.status) {
    case 'awaiting_tool':
    case 'awaiting_approval':
    case 'awaiting_decrypt':
    case 'awaiting_encrypt':
      return { ...outcome, lost }
    default:
      return outcome
  }
}
