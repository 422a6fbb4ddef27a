import { z } from 'zod'
import { Count, Decimal, ModelReference } from './ids.ts'
import { ModelCapabilities } from './models.ts'
import { nullAsAbsent, withDefault } from './request-fields.ts'

export const TaskIntent = z
  .enum(['chat', 'plan', 'edit', 'review', 'summarize', 'prompt', 'skill'])
  .meta({ id: 'TaskIntent' })
export type TaskIntent = z.infer<typeof TaskIntent>

export const Effort = z.enum(['low', 'medium', 'high', 'xhigh']).meta({ id: 'Effort' })
export type Effort = z.infer<typeof Effort>

/** Strictness order: allow < ask < deny. */
export const PermissionMode = z.enum(['allow', 'ask', 'deny']).meta({ id: 'PermissionMode' })
export type PermissionMode = z.infer<typeof PermissionMode>

/** Lower comes first; a rule that names none is late (EC 7, 8). */
export const DEFAULT_PRIORITY = 1000

export const ClassificationRule = z
  .object({
    intent: TaskIntent,
    priority: withDefault(Count, DEFAULT_PRIORITY),
    keywords: z.array(z.string()).default([]),
    requires_any_context: z.array(z.string()).default([]),
  })
  .meta({ id: 'ClassificationRule' })
export type ClassificationRule = z.infer<typeof ClassificationRule>

export const ClassificationConfig = z
  .object({ default_intent: withDefault(TaskIntent, 'chat'), rules: z.array(ClassificationRule).default([]) })
  .meta({ id: 'ClassificationConfig' })
export type ClassificationConfig = z.infer<typeof ClassificationConfig>

/** Permissions by tool name or by the documented group keys (EC 12.2). */
export const ToolsConfig = z
  .object({ permissions: withDefault(z.record(z.string(), PermissionMode), {}) })
  .meta({ id: 'ToolsConfig' })
export type ToolsConfig = z.infer<typeof ToolsConfig>

export const RoutingRule = z
  .object({
    name: z.string(),
    priority: withDefault(Count, DEFAULT_PRIORITY),
    effort: withDefault(Effort, 'medium'),
    intent: TaskIntent.nullish(),
    paths: z.array(z.string()).default([]),
    local_only: withDefault(z.boolean(), false),
    requires_capabilities: ModelCapabilities.nullish(),
    model: ModelReference,
    fallbacks: z.array(ModelReference).default([]),
    required_permissions: nullAsAbsent(ToolsConfig),
    cost_limit: Decimal.nullish(),
  })
  .meta({ id: 'RoutingRule' })
export type RoutingRule = z.infer<typeof RoutingRule>

export const DefaultRoute = z
  .object({ model: ModelReference, fallbacks: z.array(ModelReference).default([]) })
  .meta({ id: 'DefaultRoute' })
export type DefaultRoute = z.infer<typeof DefaultRoute>

export const RoutingPolicy = z
  .object({ rules: z.array(RoutingRule).default([]), default: DefaultRoute.nullish() })
  .meta({ id: 'RoutingPolicy' })
export type RoutingPolicy = z.infer<typeof RoutingPolicy>

export const RemotePrivacy = z
  .object({ mode: PermissionMode.nullish(), blocked_paths: z.array(z.string()).default([]) })
  .meta({ id: 'RemotePrivacy' })
export type RemotePrivacy = z.infer<typeof RemotePrivacy>

export const LocalPrivacy = z.object({ mode: PermissionMode.nullish() }).meta({ id: 'LocalPrivacy' })
export type LocalPrivacy = z.infer<typeof LocalPrivacy>

export const PrivacyPolicy = z
  .object({
    restricted_paths: z.array(z.string()).default([]),
    remote: nullAsAbsent(RemotePrivacy),
    local: nullAsAbsent(LocalPrivacy),
  })
  .meta({ id: 'PrivacyPolicy' })
export type PrivacyPolicy = z.infer<typeof PrivacyPolicy>

/** The canonical routing, permission and privacy vocabulary, sent with each run (EC 4). */
export const ExecutePolicy = z
  .object({
    version: Count,
    source: z.string(),
    classification: ClassificationConfig,
    routing: RoutingPolicy,
    tools: ToolsConfig,
    privacy: PrivacyPolicy,
  })
  .meta({ id: 'ExecutePolicy' })
export type ExecutePolicy = z.infer<typeof ExecutePolicy>
