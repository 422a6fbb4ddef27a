import { changedFiles, gitBranch } from '../host/git.ts'
import { DECLARED_TOOLS } from '../host/tools/declarations.ts'
import { readWholeFile } from '../host/tools/text-file.ts'
import { resolveExisting } from '../host/tools/workspace-path.ts'
import type {
  ContextInstruction,
  ExecuteRequest,
  LocalPreferences,
  Workspace,
} from '../protocol/execution/execute.ts'
import type { ExecutePolicy, TaskIntent } from '../protocol/execution/policy.ts'
import { ok, type Result } from '../protocol/result.ts'
import { ASK_USER_DECLARATION } from './ask-user.ts'
import { attachFiles } from './attached-files.ts'
import { loadSkills } from './skills.ts'

/** The project's own words to a model (EC 25.3). */
const INSTRUCTIONS_FILE = 'AGENTS.md'
/** Tools of the contract, whose names a skill may not take. */
const CONTRACT_TOOLS = ['read_file', 'write_file', 'edit_file', 'shell', 'memory']
/** Enough to route by; a checkout with more changes is not described better by all of them. */
const MAX_DIFF_LINES = 2_000

export type RunInput = {
  /** Absolute, without symbolic links. */
  root: string
  prompt: string
  policy: ExecutePolicy
  preferences: LocalPreferences
  files: readonly string[]
  explicitModel?: string
  command?: TaskIntent
  /** Somebody sits here whom a model may ask (D08). */
  canAsk?: boolean
}

/** Collects what the router cannot obtain for itself (execution protocol, "What the client sends"). */
export async function buildRunRequest(input: RunInput): Promise<Result<ExecuteRequest, string>> {
  const { root, policy, preferences, explicitModel, command, canAsk = false } = input
  const attached = await attachFiles(root, input.prompt, input.files)
  if (!attached.ok) return attached
  const { prompt, files } = attached.value
  const declared = [...DECLARED_TOOLS, ...(canAsk ? [ASK_USER_DECLARATION] : [])]
  const reserved = [...CONTRACT_TOOLS, ASK_USER_DECLARATION.name]
  const taken = new Set([...reserved, ...declared.map(({ name }) => name)])
  const [workspace, instructions, skills] = await Promise.all([
    describeWorkspace(
      root,
      files.map(({ path }) => path),
    ),
    loadInstructions(root),
    loadSkills(root, taken),
  ])
  return ok({
    input: {
      text: prompt,
      ...(command === undefined ? {} : { command }),
      ...(explicitModel === undefined ? {} : { explicit_model: explicitModel }),
    },
    workspace,
    policy,
    local_preferences: preferences,
    attachments: {
      files,
      instructions,
      invoked_skills: [],
      available_skills: skills,
      tools: declared,
    },
  })
}

async function describeWorkspace(root: string, referenced: string[]): Promise<Workspace> {
  const [branch, changed] = await Promise.all([gitBranch(root), changedFiles(root)])
  const diff = changed
    .filter((name) => !name.includes('\n'))
    .slice(0, MAX_DIFF_LINES)
    .map((name) => `diff --git a/${name} b/${name}`)
    .join('\n')
  return {
    root,
    ...(branch === undefined ? {} : { git_branch: branch }),
    // Presence counts, even of an empty text (EC 7): no change, no diff.
    ...(diff === '' ? {} : { git_diff: diff }),
    referenced_paths: referenced,
  }
}

async function loadInstructions(root: string): Promise<ContextInstruction[]> {
  const at = await resolveExisting(root, INSTRUCTIONS_FILE)
  const file = at.ok ? await readWholeFile(root, at.value) : at
  return file.ok && file.value.text.trim() !== ''
    ? [{ source: INSTRUCTIONS_FILE, content: file.value.text }]
    : []
}
