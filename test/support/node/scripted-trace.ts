/** A trace as a router tells it, turn by turn; a test names only what it is about. */

import { createHash } from 'node:crypto'
import type { z } from 'zod'
import { ExecutePolicy } from '../../../src/protocol/execution/policy.ts'
import type {
  ConsideredModel,
  Payload,
  RoutingInputs,
  TraceEvent,
} from '../../../src/protocol/execution/trace.ts'

type PolicyParts = Partial<z.input<typeof ExecutePolicy>>

/** A policy and the key under which a trace keeps it. */
export function keptPolicy(parts: PolicyParts): { key: string; policy: ExecutePolicy } {
  const policy = ExecutePolicy.parse({
    version: 1,
    source: 'merged',
    classification: {},
    routing: {},
    tools: {},
    privacy: {},
    ...parts,
  })
  return { key: digestKey(policy), policy }
}

export const digestKey = (policy: unknown): string =>
  `sha256:${createHash('sha256').update(JSON.stringify(policy)).digest('hex')}`

type Scene = { intent: TraceEvent['task_type']; model: string; rule?: string }

const uuid = (kind: string, number: number): string =>
  `${kind.padEnd(8, '0')}-0000-7000-8000-${String(number).padStart(12, '0')}`

/** The events of one turn: its payloads under the route that the scene names, one second after the turn before. */
export function turnEvents(
  { turn, run = 1, intent, model, rule }: Scene & { turn: number; run?: number },
  payloads: readonly Payload[],
): TraceEvent[] {
  return payloads.map((payload) => ({
    event_type: payload.type,
    task_type: intent,
    ...split(model),
    ...(rule === undefined ? {} : { matched_rule: rule }),
    created_at: `2026-01-02T03:04:${String(turn).padStart(2, '0')}.000Z`,
    run_id: uuid('a', run),
    turn_id: uuid('b', turn),
    payload: { plaintext: payload },
  }))
}

export function split(reference: string): { provider: string; model: string } {
  const slash = reference.indexOf('/')
  return { provider: reference.slice(0, slash), model: reference.slice(slash + 1) }
}

/** A model of a route with the facts of a capable one: local for Ollama, else with a key. */
export const considered = (
  model: string,
  verdict: ConsideredModel['verdict'],
  facts: Partial<ConsideredModel> = {},
): ConsideredModel => {
  const local = model.startsWith('ollama/')
  return {
    model,
    verdict,
    local,
    auth: local ? 'none' : 'api_key',
    has_credential: true,
    capabilities: { tools: true },
    max_context_tokens: 32_000,
    max_output_tokens: 2_000,
    ...facts,
  }
}

export const routingInputs = (
  policy: string,
  models: ConsideredModel[],
  fields: Partial<RoutingInputs> = {},
): RoutingInputs => ({
  policy,
  paths: [],
  effort: 'medium',
  rule_capabilities: {},
  needed_capabilities: {},
  may_call_tools: true,
  required_tokens: 900,
  models,
  ...fields,
})

export const routed = (
  model: string,
  reason: string,
  inputs: RoutingInputs | undefined,
  fields: Partial<Extract<Payload, { type: 'routing_decision' }>> = {},
): Payload => ({
  type: 'routing_decision',
  ...split(model),
  fallback_used: false,
  override_used: false,
  reason,
  ...(inputs === undefined ? {} : { inputs }),
  ...fields,
})

export const says = (model: string): Payload => ({ type: 'message', role: 'assistant', ...split(model) })

export const cost = (model: string, input: number, output: number, price?: string): Payload => ({
  type: 'cost',
  ...split(model),
  input_tokens: input,
  output_tokens: output,
  ...(price === undefined ? {} : { cost: price }),
})

export const selected = (kind: string, included: boolean, reason: string, path?: string): Payload => ({
  type: 'context_selection',
  kind,
  included,
  reason,
  ...(path === undefined ? {} : { path }),
})
