import type { ToolApproval } from '../protocol/execution/turn.ts'
import { NOT_QUESTIONS, parseQuestions } from './ask-user.ts'
import { answerMemoryCalls, type MemoryFact, type MemoryOp } from './memory.ts'
import { callMode, type PermissionMap } from './permissions.ts'
import { type TurnTool, takesStrings } from './tools.ts'

/** A call as the model made it. */
export type ModelCall = {
  providerCallId?: string
  name: string
  arguments: Record<string, unknown>
  /** What came instead of a JSON object. */
  malformedArguments?: string
  opaque?: Record<string, unknown>
}

/** What becomes of a call: the client runs it, or the model gets its answer at once (EC 12.3). */
export type MediatedCall = { call: ModelCall } /** `questions`: how many the call asks the user. */ & (
  | { to: 'client'; requiresApproval: ToolApproval; recordsDiff: boolean; questions?: number }
  /** `memory`: what the call has the router remember or forget. */
  | { to: 'model'; result: string; isError: boolean; refused: boolean; memory?: MemoryOp }
)

/** What is remembered now, and whether only local models may see what this turn adds to it (U37). */
export type MemoryAtHand = { facts: readonly MemoryFact[]; localOnly: boolean }

/** Whoever knows of no facts knows of no reason to show a new one to everybody. */
const NO_MEMORY: MemoryAtHand = { facts: [], localOnly: true }

/** Checks each call against what was offered and permitted, in the model's order. A refusal never reaches the client. */
export function mediate(
  calls: readonly ModelCall[],
  tools: readonly TurnTool[],
  permissions: PermissionMap,
  { facts, localOnly }: MemoryAtHand = NO_MEMORY,
): MediatedCall[] {
  const remember = answerMemoryCalls(facts, localOnly)
  const offered = new Map(tools.map((tool) => [tool.name, tool]))
  return calls.map((call): MediatedCall => {
    const refuse = (result: string): MediatedCall => ({
      call,
      to: 'model',
      result,
      isError: true,
      refused: true,
    })
    const tool = offered.get(call.name)
    if (!tool) {
      const names = [...offered.keys()].join(', ')
      return refuse(`The tool \`${call.name}\` is not available. Available: ${names || 'none'}.`)
    }
    if (call.malformedArguments !== undefined) return refuse(notAnObject(call.malformedArguments))
    const missing = missingArguments(tool, call.arguments)
    if (missing.length > 0) return refuse(`Missing arguments: ${missing.join(', ')}.`)
    const wrong = wrongTypes(tool, call.arguments)
    if (wrong.length > 0) return refuse(`These arguments must be strings: ${wrong.join(', ')}.`)
    const mode = callMode(permissions, call.name, call.arguments, tool.mode)
    if (mode === 'deny') return refuse('The policy denies this call.')
    if (tool.executor === 'skill') {
      return { call, to: 'model', result: tool.skillBody ?? '', isError: false, refused: false }
    }
    if (tool.executor === 'memory') {
      const { op, ...answer } = remember(call.arguments)
      return { call, to: 'model', ...answer, refused: false, ...(op === undefined ? {} : { memory: op }) }
    }
    if (tool.executor === 'user') {
      const questions = parseQuestions(call.arguments)?.length
      if (questions === undefined)
        return { call, to: 'model', result: NOT_QUESTIONS, isError: true, refused: false }
      return { call, to: 'client', requiresApproval: 'allow', recordsDiff: false, questions }
    }
    return { call, to: 'client', requiresApproval: mode, recordsDiff: tool.changesFiles }
  })
}

/** What is shown of arguments that are none: a model that sees where its JSON broke repairs it; a whole file tells no more. */
const MAX_SHOWN_ARGUMENT_CHARS = 2_000

/** The call itself is kept without arguments, since no provider takes a text for them: what came stands here instead. */
function notAnObject(came: string): string {
  const shown = came.slice(0, MAX_SHOWN_ARGUMENT_CHARS)
  const rest = came.length - shown.length
  return `The arguments are not a JSON object. They came as: ${shown}${rest > 0 ? `… (and ${rest} more characters)` : ''}`
}

/** The tools that take strings take nothing else (EC 12.1); what a client declared, its client checks. */
function wrongTypes({ name, parameters }: TurnTool, args: Record<string, unknown>): string[] {
  if (!takesStrings(name)) return []
  const known = Object.keys(Object(parameters.properties))
  return known.filter((key) => Object.hasOwn(args, key) && typeof args[key] !== 'string')
}

function missingArguments(tool: TurnTool, args: Record<string, unknown>): string[] {
  const required = tool.parameters.required
  if (!Array.isArray(required)) return []
  return required.filter((name): name is string => typeof name === 'string' && !Object.hasOwn(args, name))
}
