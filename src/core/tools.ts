import { type Failure, failure } from '../protocol/execution/errors.ts'
import type { Attachments, DeclaredTool, Skill } from '../protocol/execution/execute.ts'
import type { ModelDescriptor } from '../protocol/execution/models.ts'
import type { PermissionMode } from '../protocol/execution/policy.ts'
import { err, ok, type Result } from '../protocol/result.ts'
import { ASK_USER_TOOL, ASK_USER_TOOL_NAME } from './ask-user.ts'
import { MEMORY_TOOL, MEMORY_TOOL_NAME } from './memory.ts'
import { type PermissionMap, toolMode } from './permissions.ts'
import type { OfferedTool } from './prompt.ts'
import type { Driver } from './run/state.ts'

/** Who answers a call: the user's machine, the user in person, or the router itself. */
export type ToolExecutor = 'client' | 'user' | 'skill' | 'memory'

/** A tool of this turn with everything that mediation needs to know about it. */
export type TurnTool = OfferedTool & {
  executor: ToolExecutor
  mode: PermissionMode
  /** Barred while planning; its call leaves a diff row (EC 12.4). */
  changesFiles: boolean
  /** What a skill call is answered with. */
  skillBody?: string
  /** Only local models may be offered it: its words are those of a private file. */
  isPrivate?: boolean
}

const text = (description: string) => ({ type: 'string', description })
const object = (properties: Record<string, unknown>, required: string[]) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
})

type ContractTool = { description: string; parameters: Record<string, unknown>; changesFiles: boolean }

/** The four tools that every client of the contract can run (EC 12.1). */
const CONTRACT_TOOLS: Readonly<Record<string, ContractTool>> = {
  read_file: {
    description: 'Reads a text file of the workspace.',
    parameters: object({ path: text('Path relative to the workspace root.') }, ['path']),
    changesFiles: false,
  },
  write_file: {
    description: 'Creates a file or replaces its whole content.',
    parameters: object(
      { path: text('Path relative to the workspace root.'), content: text('The whole new content.') },
      ['path', 'content'],
    ),
    changesFiles: true,
  },
  edit_file: {
    description: 'Replaces one exact piece of text in a file.',
    parameters: object(
      {
        path: text('Path relative to the workspace root.'),
        old: text('The exact text to replace; it must occur once.'),
        new: text('The text to put in its place.'),
      },
      ['path', 'old', 'new'],
    ),
    changesFiles: true,
  },
  shell: {
    description: 'Runs a shell command in the workspace root.',
    parameters: object({ command: text('The command line.') }, ['command']),
    changesFiles: false,
  },
}

/** A tool whose arguments the router knows, and knows to be strings: one of the contract's, or memory. */
export const takesStrings = (name: string): boolean =>
  Object.hasOwn(CONTRACT_TOOLS, name) || name === MEMORY_TOOL_NAME

/** Names that a skill may not take beside those of the contract (D08). */
const RESERVED_NAMES: ReadonlySet<string> = new Set([MEMORY_TOOL_NAME, ASK_USER_TOOL_NAME])

export type ToolsInput = {
  attachments: Attachments
  permissions: PermissionMap
  planning: boolean
  /** `local_preferences.no_network`: tools that reach out are not offered (EC 9). */
  noNetwork: boolean
  isPrivateSkill(skill: Skill): boolean
  /** Who runs the tools; absent: the client that asks. */
  driver?: Driver
}

/**
 * The tools of a turn (EC 12.1): the contract's four, memory, `ask_user`, what the client declared, and one per skill.
 * Denied ones are left out; while planning, those that change files as well; where nobody drives the run, those that a
 * client would have to run (D07). A declaration that takes a name already used is refused.
 */
export function turnTools(input: ToolsInput): Result<TurnTool[], Failure> {
  const { attachments, permissions, planning, noNetwork, isPrivateSkill, driver = { kind: 'http' } } = input
  const tools: TurnTool[] = []
  for (const [name, { description, parameters, changesFiles }] of Object.entries(CONTRACT_TOOLS)) {
    const mode = toolMode(permissions, name, undefined, 'ask')
    tools.push({
      name,
      description,
      parameters,
      executor: 'client',
      mode,
      changesFiles,
    })
  }
  tools.push(memoryTool(permissions))
  if (isAskingWanted(input)) tools.push(askUserTool(input))
  const skills = skillTools(attachments, permissions, isPrivateSkill)
  const taken = new Set([...Object.keys(CONTRACT_TOOLS), MEMORY_TOOL_NAME, ...skills.map(({ name }) => name)])
  for (const declared of attachments.tools ?? []) {
    if (taken.has(declared.name)) {
      return err(
        failure('invalid_request', `attachments.tools: the name \`${declared.name}\` is already taken`, {
          tool: declared.name,
        }),
      )
    }
    taken.add(declared.name)
    // It only asks for the tool: what it looks like is the router's to say (D08).
    if (declared.name === ASK_USER_TOOL_NAME) continue
    tools.push({
      name: declared.name,
      description: declared.description,
      parameters: declared.parameters,
      executor: 'client',
      mode: declaredMode(declared, permissions, noNetwork),
      changesFiles: declared.changes_files,
    })
  }
  tools.push(...skills)
  return ok(
    tools.filter(
      ({ mode, changesFiles, executor }) =>
        mode !== 'deny' && !(planning && changesFiles) && !(driver.kind === 'none' && executor === 'client'),
    ),
  )
}

/** A client that knows the contract alone is never asked for a tool it lacks: somebody has to want this one (D08). */
const isAskingWanted = ({ attachments, permissions, driver }: ToolsInput): boolean =>
  (driver !== undefined && driver.kind !== 'http') ||
  Object.hasOwn(permissions, ASK_USER_TOOL_NAME) ||
  (attachments.tools ?? []).some(({ name }) => name === ASK_USER_TOOL_NAME)

/** A question is its own approval: nobody is asked whether it may be asked. */
function askUserTool({ attachments, permissions }: ToolsInput): TurnTool {
  const declared = attachments.tools?.find(({ name }) => name === ASK_USER_TOOL_NAME)
  const mode = toolMode(permissions, ASK_USER_TOOL_NAME, declared?.permission ?? undefined, 'allow')
  return {
    ...ASK_USER_TOOL,
    executor: 'user',
    mode: mode === 'deny' ? 'deny' : 'allow',
    changesFiles: false,
  }
}

/** What a client declares keeps to its own permission, to the policy, and to the group `network` if it reaches out (EC 12.2). */
function declaredMode(
  { name, permission, reaches_network: reachesNetwork }: DeclaredTool,
  permissions: PermissionMap,
  noNetwork: boolean,
): PermissionMode {
  const mode = toolMode(permissions, name, permission ?? undefined, 'ask')
  if (!reachesNetwork) return mode
  return noNetwork ? 'deny' : toolMode(permissions, 'network', mode, mode)
}

/**
 * One tool per skill, answered by the router with the skill's body (EC 12.5). The first of a name wins. `deny` under its
 * name takes it away; nobody has to be asked for a text that came with the request.
 */
function skillTools(
  attachments: Attachments,
  permissions: PermissionMap,
  isPrivateSkill: ToolsInput['isPrivateSkill'],
): TurnTool[] {
  const tools = new Map<string, TurnTool>()
  for (const skill of [...attachments.invoked_skills, ...attachments.available_skills]) {
    const name = skillToolName(skill.name)
    if (name === '' || Object.hasOwn(CONTRACT_TOOLS, name) || RESERVED_NAMES.has(name) || tools.has(name))
      continue
    const denied = [name, skill.name].some((key) => toolMode(permissions, key, undefined, 'allow') === 'deny')
    tools.set(name, {
      name,
      description: firstLine(skill.content) || `Loads the skill ${skill.name}.`,
      parameters: object({}, []),
      executor: 'skill',
      mode: denied ? 'deny' : 'allow',
      changesFiles: false,
      skillBody: skill.content,
      ...(isPrivateSkill(skill) ? { isPrivate: true } : {}),
    })
  }
  return [...tools.values()]
}

/** Memory is allowed unless its permission says otherwise. The router runs it, so there is nobody to ask: `ask` is `deny`. */
function memoryTool(permissions: PermissionMap): TurnTool {
  const mode = toolMode(permissions, MEMORY_TOOL_NAME, undefined, 'allow')
  return {
    ...MEMORY_TOOL,
    executor: 'memory',
    mode: mode === 'allow' ? 'allow' : 'deny',
    changesFiles: false,
  }
}

/** What this model may be offered of them: memory needs a capability of its own (EC 16), a private skill a local model. */
export const toolsFor = (
  tools: readonly TurnTool[],
  { local, capabilities: { tools: calls, memory } }: Pick<ModelDescriptor, 'local' | 'capabilities'>,
): TurnTool[] =>
  calls
    ? tools.filter(
        ({ executor, isPrivate }) => (executor !== 'memory' || memory) && !(isPrivate === true && !local),
      )
    : []

/** A skill's folder name in the alphabet that every provider accepts for tools. */
const skillToolName = (name: string): string => name.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, 64)

/** The first line with words in it, without heading marks. */
export const firstLine = (body: string): string =>
  (body.split('\n').find((line) => line.replace(/^#+/, '').trim() !== '') ?? '').replace(/^#+/, '').trim()
