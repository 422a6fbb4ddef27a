import { readFileSync } from 'node:fs'
import path from 'node:path'
import { parse, TomlError } from 'smol-toml'
import { z } from 'zod'
import { LocalPreferences } from '../protocol/execution/execute.ts'
import { ModelCapabilities } from '../protocol/execution/models.ts'
import {
  ClassificationRule,
  DefaultRoute,
  PermissionMode,
  RoutingRule,
  TaskIntent,
} from '../protocol/execution/policy.ts'
import { err, ok, type Result } from '../protocol/result.ts'
import { sayIssues } from './config-issues.ts'
import { configFolder } from './credentials.ts'
import { type KeyPath, lineOf } from './toml-position.ts'

/** One thing that is wrong with a configuration file. */
export type Finding = { file: string; line?: number; message: string }

/** Where a layer stands in the order of EC 24.1: the project is laid over the global file. */
export type LayerName = 'global' | 'project'

const Rule = z.strictObject({
  ...RoutingRule.shape,
  requires_capabilities: z.strictObject(ModelCapabilities.shape).optional(),
  required_permissions: z.strictObject({ permissions: z.record(z.string(), PermissionMode) }).optional(),
})

/** The vocabulary of EC 24.1. Unknown keys are refused, so that a misspelt restriction is not silently missing. */
export const ConfigFile = z.strictObject({
  classification: z
    .strictObject({
      default_intent: TaskIntent.optional(),
      rules: z.array(z.strictObject(ClassificationRule.shape)).optional(),
    })
    .optional(),
  routing: z
    .strictObject({
      default: z.strictObject(DefaultRoute.shape).optional(),
      rules: z.array(Rule).optional(),
    })
    .optional(),
  privacy: z
    .strictObject({
      restricted_paths: z.array(z.string()).optional(),
      remote: z
        .strictObject({ mode: PermissionMode.optional(), blocked_paths: z.array(z.string()).optional() })
        .optional(),
      local: z.strictObject({ mode: PermissionMode.optional() }).optional(),
    })
    .optional(),
  tools: z.strictObject({ permissions: z.record(z.string(), PermissionMode).optional() }).optional(),
  // `encrypt_sessions` stays here: it decides how a session is made, and is no part of a request.
  local_preferences: z
    .strictObject({ ...LocalPreferences.shape, encrypt_sessions: z.boolean() })
    .partial()
    .optional(),
})
export type ConfigFile = z.infer<typeof ConfigFile>

/** A file as it was read; `config` is empty when there is none. */
export type Layer = { name: LayerName; file: string; exists: boolean; source: string; config: ConfigFile }

export const globalConfigPath = (): string => path.join(configFolder(), 'config.toml')
export const projectConfigPath = (cwd: string): string => path.join(cwd, '.switchyard', 'config.toml')

/** Reads and checks one layer; a missing file is an empty layer. */
export function loadLayer(name: LayerName, file: string): Result<Layer, Finding[]> {
  let source: string
  try {
    source = readFileSync(file, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown reason'
    if (code === 'ENOENT' || code === 'ENOTDIR')
      return ok({ name, file, exists: false, source: '', config: {} })
    return err([{ file, message: `cannot be read (${code})` }])
  }
  const config = parseConfig(file, source)
  return config.ok ? ok({ name, file, exists: true, source, config: config.value }) : config
}

/** Parses the text of a configuration file. All findings are collected (EC 24.2), by line. */
export function parseConfig(file: string, source: string): Result<ConfigFile, Finding[]> {
  let document: Record<string, unknown>
  try {
    document = parse(source)
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    // The first line of the message is the reason; the rest repeats the source.
    const reason = error.message.split('\n')[0] ?? error.message
    return err([{ file, line: error.line, message: `${reason} (column ${error.column})` }])
  }
  const findings: Finding[] = []
  for (const [key, advice] of Object.entries(KEPT_ELSEWHERE)) {
    if (!Object.hasOwn(document, key)) continue
    findings.push(finding(file, source, [key], `\`${key}\` is not set here: ${advice}`))
    delete document[key]
  }
  const parsed = ConfigFile.safeParse(document, { reportInput: true })
  if (parsed.success && findings.length === 0) return ok(parsed.data)
  for (const { at, message } of sayIssues(parsed.error?.issues ?? [], ConfigFile))
    findings.push(finding(file, source, at, `${dotted(at)}: ${message}`))
  return err(inOrder(findings))
}

/** Tables of the contract's vocabulary that this program reads from the environment. */
const KEPT_ELSEWHERE: Readonly<Record<string, string>> = {
  providers:
    'keys of model providers come from the environment (ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, SWITCHYARD_PROVIDER_<NAME>_API_KEY)',
  router: 'use --url or SWITCHYARD_URL',
}

const finding = (file: string, source: string, at: KeyPath, message: string): Finding => {
  const line = lineOf(source, at)
  return line === undefined ? { file, message } : { file, line, message }
}

/** A finding about a value of a layer. */
export const layerFinding = (layer: Layer, at: KeyPath, message: string): Finding =>
  finding(layer.file, layer.source, at, `${dotted(at)}: ${message}`)

function dotted(at: KeyPath): string {
  let text = ''
  for (const part of at)
    text += typeof part === 'number' ? `[${part}]` : `${text === '' ? '' : '.'}${String(part)}`
  return text
}

/** The findings of each file by line; files in the order in which they first come. */
export function inOrder(findings: readonly Finding[]): Finding[] {
  const files = [...new Set(findings.map(({ file }) => file))]
  return [...findings].sort(
    (a, b) => files.indexOf(a.file) - files.indexOf(b.file) || (a.line ?? 0) - (b.line ?? 0),
  )
}

/** One line per finding, as compilers print them. */
export const renderFindings = (findings: readonly Finding[]): string =>
  findings
    .map(({ file, line, message }) => `${file}${line === undefined ? '' : `:${line}`}: ${message}`)
    .join('\n')
