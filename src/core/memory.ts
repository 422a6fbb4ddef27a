import { type Failure, failure } from '../protocol/execution/errors.ts'
import {
  MAX_MEMORY_CONTENT_CHARS,
  MAX_MEMORY_KEY_CHARS,
  type MemoryScope,
} from '../protocol/execution/memory.ts'
import type { OfferedTool } from './prompt.ts'

/** The tool that the router itself runs (EC 16); no client may declare one of this name (D08). */
export const MEMORY_TOOL_NAME = 'memory'
/** Facts that one user, and one session, may have: they are read with each request, so there is an end to them. */
export const MAX_FACTS_PER_SCOPE = 200
/** Facts of one scope that a model is shown (EC 16). */
export const MAX_RECALLED_PER_SCOPE = 40
/** What a model is shown of one fact (EC 16). In code points. */
export const MAX_RECALLED_CHARS = 500
/** What has to be read of a fact to show it, and to see whether there is more. In code points. */
export const FACT_HEAD_CHARS = MAX_RECALLED_CHARS + 1

/** A remembered fact as a turn sees it; of a long one the beginning is enough. */
export type MemoryFact = {
  scope: MemoryScope
  id: string
  key?: string
  content: string
  /** Recorded by a turn that was bound to local models: no other may see it (U37). */
  localOnly?: true
  updatedAtMs: number
}

/** What a model asks to have remembered or forgotten. */
export type MemoryOp =
  | {
      op: 'record'
      scope: MemoryScope
      key: string
      content: string
      localOnly: boolean
      /** Of a sealed session: key and content are empty here, and stand in the envelope. */
      sealed?: true
      /** The fact of the same key that goes once this one is sealed. */
      replaces?: string
    }
  | {
      op: 'forget'
      scope: MemoryScope
      key: string
      sealed?: true
      /** In a sealed session a fact is found by its id: its key is nowhere in clear. */
      factId?: string
    }

/**
 * A change of a fact that D1 has not got yet. The facts of a user are known there by their key, those of a session by
 * their id, which the session's object gave them. `atMs` grows from change to change, so that none comes twice or late.
 */
export type MemoryChange =
  | {
      op: 'record'
      scope: MemoryScope
      id: string
      key: string | null
      content: string
      localOnly: boolean
      createdAtMs: number
      atMs: number
    }
  | { op: 'forget'; scope: 'user'; key: string; atMs: number }
  | { op: 'forget'; scope: 'session'; id: string; atMs: number }

/** Why a fact that a client brought is not kept. */
export type FactRefusal = { kind: 'key_taken'; memoryId: string } | { kind: 'full' }

/** The same words at every door to memory (D50). */
export const refuseFact = (refusal: FactRefusal): Failure =>
  refusal.kind === 'key_taken'
    ? failure('invalid_request', 'another fact has this key; change or forget that one', {
        memory_id: refusal.memoryId,
      })
    : failure('invalid_request', `there are ${MAX_FACTS_PER_SCOPE} facts already; forget one first`, {
        max_facts: MAX_FACTS_PER_SCOPE,
      })

export const MEMORY_TOOL: OfferedTool = {
  name: MEMORY_TOOL_NAME,
  description:
    'Remembers one short fact under a key for later, or forgets it. Scope `user`: known in all sessions of the user; ' +
    '`session`: in this one only. Never record secrets such as passwords or keys.',
  parameters: {
    type: 'object',
    properties: {
      op: { type: 'string', enum: ['record', 'update', 'forget'] },
      scope: { type: 'string', enum: ['user', 'session'] },
      key: { type: 'string', description: 'A short name of the fact.' },
      value: {
        type: 'string',
        description: 'The fact, in a sentence or two. Needed to record and to update.',
      },
    },
    required: ['op', 'scope', 'key'],
    additionalProperties: false,
  },
}

/** Who holds a key; a fact without one counts as well. */
type Held = { scope: MemoryScope; key?: string }

/** The answer to one call, and what is to be stored if anything is. */
export type MemoryAnswer = { result: string; isError: boolean; op?: MemoryOp }

/**
 * Answers calls of the tool one after the other: each sees what those before it did. `localOnly`: what the turn records
 * is for local models alone (U37).
 */
export function answerMemoryCalls(
  facts: readonly MemoryFact[],
  localOnly: boolean,
): (args: Readonly<Record<string, unknown>>) => MemoryAnswer {
  let held: readonly Held[] = facts
  return (args) => {
    const answer = answerCall(args, held, localOnly)
    if (answer.op) {
      const { op, scope, key } = answer.op
      const others = held.filter((fact) => fact.scope !== scope || fact.key !== key)
      held = op === 'record' ? [...others, { scope, key }] : others
    }
    return answer
  }
}

function answerCall(
  { op, scope, key, value }: Readonly<Record<string, unknown>>,
  held: readonly Held[],
  localOnly: boolean,
): MemoryAnswer {
  const refuse = (result: string): MemoryAnswer => ({ result, isError: true })
  if (op !== 'record' && op !== 'update' && op !== 'forget')
    return refuse('`op` must be `record`, `update` or `forget`.')
  if (scope !== 'user' && scope !== 'session') return refuse('`scope` must be `user` or `session`.')
  if (
    typeof key !== 'string' ||
    key.trim() === '' ||
    !key.isWellFormed() ||
    key.length > MAX_MEMORY_KEY_CHARS
  )
    return refuse(`\`key\` must be a text of 1 to ${MAX_MEMORY_KEY_CHARS} characters.`)
  const known = held.some((fact) => fact.scope === scope && fact.key === key)
  if (op === 'forget') {
    if (!known) return { result: `Nothing is remembered under \`${key}\`.`, isError: false }
    return { result: `Forgotten: \`${key}\`.`, isError: false, op: { op, scope, key } }
  }
  if (typeof value !== 'string' || value.trim() === '' || !value.isWellFormed())
    return refuse('`value` must be a text.')
  if (value.length > MAX_MEMORY_CONTENT_CHARS)
    return refuse(
      `The fact is too long: at most ${MAX_MEMORY_CONTENT_CHARS} characters. What is longer belongs in a file.`,
    )
  if (!known && held.filter((fact) => fact.scope === scope).length >= MAX_FACTS_PER_SCOPE)
    return refuse(
      `There are ${MAX_FACTS_PER_SCOPE} facts already, and no room for another: update or forget one.`,
    )
  return {
    result: `Remembered under \`${key}\`.`,
    isError: false,
    op: { op: 'record', scope, key, content: value, localOnly },
  }
}

/** The newest first; of two of the same moment the one that was made later. */
const newestFirst = (a: MemoryFact, b: MemoryFact): number =>
  b.updatedAtMs - a.updatedAtMs || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0)

/**
 * The facts that a turn may show, those about the user first, each cut to what is shown, and how many older ones there
 * are besides (EC 16).
 */
export function recall(facts: readonly MemoryFact[]): { recalled: MemoryFact[]; older: number } {
  const recalled = (['user', 'session'] as const).flatMap((scope) =>
    facts
      .filter((fact) => fact.scope === scope)
      .sort(newestFirst)
      .slice(0, MAX_RECALLED_PER_SCOPE)
      .map((fact) => ({ ...fact, content: shortened(fact.content) })),
  )
  return { recalled, older: facts.length - recalled.length }
}

function shortened(content: string): string {
  const chars = [...content]
  return chars.length <= MAX_RECALLED_CHARS ? content : `${chars.slice(0, MAX_RECALLED_CHARS).join('')}…`
}

/**
 * The facts about a user as D1 told them, with the changes that it had not got yet. A change that is older than what D1
 * knows of its key is no news.
 */
export function withChanges(facts: readonly MemoryFact[], changes: readonly MemoryChange[]): MemoryFact[] {
  let current = [...facts]
  for (const change of changes) {
    if (change.scope !== 'user' || change.key === null) continue
    const { key } = change
    const known = current.find((fact) => fact.key === key)
    if (known && known.updatedAtMs > change.atMs) continue
    current = current.filter((fact) => fact !== known)
    if (change.op === 'forget') continue
    current.push({
      scope: 'user',
      id: known?.id ?? change.id,
      key,
      content: change.content,
      ...(change.localOnly ? { localOnly: true } : {}),
      updatedAtMs: change.atMs,
    })
  }
  return current
}
