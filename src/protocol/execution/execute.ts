import { z } from 'zod'
import { ModelReference } from './ids.ts'
import { ExecutePolicy, PermissionMode, TaskIntent } from './policy.ts'
import { nullAsAbsent, withDefault } from './request-fields.ts'

export const TaskInput = z
  .object({ text: z.string(), command: TaskIntent.nullish(), explicit_model: ModelReference.nullish() })
  .meta({ id: 'TaskInput' })
export type TaskInput = z.infer<typeof TaskInput>

export const Workspace = z
  .object({
    root: z.string(),
    git_branch: z.string().nullish(),
    git_diff: z.string().nullish(),
    referenced_paths: z.array(z.string()),
    active_file: z.string().nullish(),
  })
  .meta({ id: 'Workspace' })
export type Workspace = z.infer<typeof Workspace>

/** Unknown keys are refused here and nowhere else (EC 1). */
export const LocalPreferences = z
  .strictObject({ auto_apply: z.boolean(), local_only: z.boolean(), no_network: z.boolean() })
  .meta({ id: 'LocalPreferences' })
export type LocalPreferences = z.infer<typeof LocalPreferences>

export const ContextFile = z
  .object({ path: z.string(), content: z.string(), content_hash: z.string(), required: z.boolean() })
  .meta({ id: 'ContextFile' })
export type ContextFile = z.infer<typeof ContextFile>

export const ContextInstruction = z
  .object({ source: z.string(), content: z.string() })
  .meta({ id: 'ContextInstruction' })
export type ContextInstruction = z.infer<typeof ContextInstruction>

/** `content` is the body of SKILL.md without its front matter (EC 4). `path` is our addition. */
export const Skill = z
  .object({
    name: z.string(),
    content: z.string(),
    path: nullAsAbsent(z.string()).describe('Where its SKILL.md lies, for the policy of private paths.'),
  })
  .meta({ id: 'Skill' })
export type Skill = z.infer<typeof Skill>

/**
 * A tool that the client can run besides the contract's four (our addition). `parameters` is a JSON Schema of an
 * object; `permission` is the mode unless the policy is stricter; `changes_files` bars it while planning;
 * `reaches_network` puts it under the permission `network` as well, and bars it under `no_network`.
 */
export const DeclaredTool = z
  .object({
    name: z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/),
    description: withDefault(z.string().max(4096), ''),
    parameters: z.record(z.string(), z.unknown()),
    permission: nullAsAbsent(PermissionMode),
    changes_files: withDefault(z.boolean(), false),
    reaches_network: withDefault(z.boolean(), false),
  })
  .meta({ id: 'DeclaredTool' })
export type DeclaredTool = z.infer<typeof DeclaredTool>

export const Attachments = z
  .object({
    files: z.array(ContextFile),
    instructions: z.array(ContextInstruction),
    invoked_skills: z.array(Skill).default([]),
    available_skills: z.array(Skill).default([]),
    tools: nullAsAbsent(z.array(DeclaredTool).max(128)).describe(
      'Tools that this client can run besides the four of the contract.',
    ),
  })
  .meta({ id: 'Attachments' })
export type Attachments = z.infer<typeof Attachments>

/** `POST /sessions/{id}/execute` and `/preview` ("Starting a run", EC 2.11). */
export const ExecuteRequest = z
  .object({
    input: TaskInput,
    workspace: Workspace,
    policy: ExecutePolicy,
    local_preferences: LocalPreferences,
    attachments: Attachments,
  })
  .meta({ id: 'ExecuteRequest' })
export type ExecuteRequest = z.infer<typeof ExecuteRequest>
