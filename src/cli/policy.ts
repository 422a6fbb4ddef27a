import { realpathSync } from 'node:fs'
import type { LocalPreferences } from '../protocol/execution/execute.ts'
import { ModelReference } from '../protocol/execution/ids.ts'
import { ExecutePolicy, type PermissionMode } from '../protocol/execution/policy.ts'
import { err, ok, type Result } from '../protocol/result.ts'
import { checkPolicy } from './config-check.ts'
import {
  type ConfigFile,
  type Finding,
  globalConfigPath,
  type Layer,
  loadLayer,
  projectConfigPath,
  renderFindings,
} from './config-file.ts'
import { mergeLayers, type RuleOrigin, stricter } from './config-merge.ts'
import { notAModel } from './model-reference.ts'

/** Why there is no policy. `message` is complete: one line per finding, or what to set. */
export type ConfigFailure = {
  kind: 'invalid_config' | 'no_default_route'
  message: string
  findings: Finding[]
}

/** The version of the policy vocabulary, and the word for a policy merged from several files (EC 24.1). */
const POLICY_VERSION = 1
const POLICY_SOURCE = 'merged'

/** Secrets that no remote model sees unless the user takes them apart himself; added to by every layer. */
export const DEFAULT_RESTRICTED_PATHS: readonly string[] = [
  '**/.env',
  '**/.env.*',
  '**/*.pem',
  // Not `*.key`: in code that is a field more often than a file.
  '**/{server,client,private,priv,tls,ssl,host,domain,ca,root}*.key',
  '**/*.p12',
  '**/*.pfx',
  '**/*.jks',
  '**/*.keystore',
  '**/id_rsa*',
  '**/id_dsa*',
  '**/id_ecdsa*',
  '**/id_ed25519*',
  '**/.ssh/**',
  '**/.gnupg/**',
  '**/.aws/**',
  '**/.netrc',
  '**/.npmrc',
  '**/.pypirc',
  '**/.git-credentials',
  '**/credentials.json',
]

/** Reading is free inside the workspace; what changes something or runs something is asked for. */
const DEFAULT_PERMISSIONS: Readonly<Record<string, PermissionMode>> = {
  read_file: 'allow',
  read_lines: 'allow',
  list_files: 'allow',
  search_files: 'allow',
  show_changes: 'allow',
  write_file: 'ask',
  edit_file: 'ask',
  shell: 'ask',
}

/** The documented group keys (EC 12.2): a set group is the user's word on all of its tools. */
const GROUPS: Readonly<Record<string, string>> = {
  read_file: 'file_read',
  read_lines: 'file_read',
  list_files: 'file_read',
  search_files: 'file_read',
  show_changes: 'file_read',
  write_file: 'file_write',
  edit_file: 'file_write',
}

const DEFAULT_REMOTE_MODE: PermissionMode = 'ask'

export type LoadedConfig = {
  config: ConfigFile
  preferences: LocalPreferences
  /** New sessions are encrypted. The router is not told (EC 24.1). */
  encryptSessions: boolean
  layers: readonly Layer[]
  origin: RuleOrigin
  /** What a project's file asked for and may not have: worth a line before anything runs. */
  notices: string[]
}

/** Reads and merges the files that apply in `cwd`. */
export function loadConfig(options: { cwd: string }): Result<LoadedConfig, ConfigFailure> {
  const global = loadLayer('global', globalConfigPath())
  const project = loadLayer('project', projectConfigPath(realFolder(options.cwd)))
  if (!global.ok || !project.ok)
    return invalid([...(global.ok ? [] : global.error), ...(project.ok ? [] : project.error)])
  const { config: merged, findings, origin } = mergeLayers(global.value, project.value)
  if (findings.length > 0) return invalid(findings)
  const { config, notices } = holdProject(merged, global.value, project.value)
  return ok({
    config,
    origin,
    layers: [global.value, project.value],
    preferences: {
      auto_apply: config.local_preferences?.auto_apply ?? false,
      local_only: config.local_preferences?.local_only ?? false,
      no_network: config.local_preferences?.no_network ?? false,
    },
    encryptSessions: config.local_preferences?.encrypt_sessions ?? false,
    notices,
  })
}

/**
 * The policy that is sent with each run (EC 24.1): built-in defaults, then the global file, then the project's.
 * `defaultModel` is the default route when no file names one.
 */
export function policyOf(
  loaded: LoadedConfig,
  defaultModel: string | undefined,
): Result<ExecutePolicy, ConfigFailure> {
  const { config } = loaded
  const route = config.routing?.default ?? (defaultModel === undefined ? undefined : { model: defaultModel })
  if (!route) return err({ kind: 'no_default_route', message: NO_DEFAULT_ROUTE, findings: [] })
  if (!ModelReference.safeParse(route.model).success)
    return err({ kind: 'invalid_config', message: notAModel(route.model), findings: [] })
  const policy = ExecutePolicy.parse({
    version: POLICY_VERSION,
    source: POLICY_SOURCE,
    classification: config.classification ?? {},
    routing: { rules: config.routing?.rules ?? [], default: route },
    tools: { permissions: permissionsOf(config.tools?.permissions ?? {}) },
    privacy: {
      ...config.privacy,
      restricted_paths: [
        ...new Set([...DEFAULT_RESTRICTED_PATHS, ...(config.privacy?.restricted_paths ?? [])]),
      ],
      remote: { ...config.privacy?.remote, mode: config.privacy?.remote?.mode ?? DEFAULT_REMOTE_MODE },
    },
  })
  const findings = checkPolicy(policy, loaded.layers, loaded.origin)
  return findings.length > 0 ? invalid(findings) : ok(policy)
}

const NO_DEFAULT_ROUTE = [
  'no model is set: name one with --model provider/model, or set a default route in the configuration:',
  '',
  '  [routing.default]',
  '  model = "ollama/qwen3:8b"',
  '',
  '`switchyard config init` writes a file to start from, `switchyard config path` says where it lies.',
].join('\n')

/** A default stands only where neither the tool nor its group is set; of several settings the strictest holds. */
function permissionsOf(set: Readonly<Record<string, PermissionMode>>): Record<string, PermissionMode> {
  const permissions: Record<string, PermissionMode> = { ...DEFAULT_PERMISSIONS, ...set }
  for (const [tool, fallback] of Object.entries(DEFAULT_PERMISSIONS)) {
    const group = GROUPS[tool]
    const given = [tool, group]
      .filter((key) => key !== undefined && Object.hasOwn(set, key))
      .map((key) => set[key ?? ''])
      .filter((mode) => mode !== undefined)
    permissions[tool] = given.length > 0 ? given.reduce(stricter) : fallback
  }
  return permissions
}

/**
 * A project comes from elsewhere and may only tighten: what it would free beyond the built-in defaults has no effect
 * unless the global file says so. Each such wish is a notice.
 */
function holdProject(
  config: ConfigFile,
  global: Layer,
  project: Layer,
): { config: ConfigFile; notices: string[] } {
  const { tools, privacy, local_preferences: wanted } = project.config
  const permissions = { ...config.tools?.permissions }
  const ignored: string[] = []
  for (const [key, mode] of Object.entries(tools?.permissions ?? {})) {
    const isDefaultAsk = DEFAULT_PERMISSIONS[key] === 'ask' || key === 'file_write' || key === 'git'
    if (mode !== 'allow' || !isDefaultAsk || global.config.tools?.permissions?.[key] !== undefined) continue
    delete permissions[key]
    ignored.push(`${key} = "allow"`)
  }
  const remote = { ...config.privacy?.remote }
  if (privacy?.remote?.mode === 'allow' && global.config.privacy?.remote?.mode === undefined) {
    remote.mode = DEFAULT_REMOTE_MODE
    ignored.push('privacy.remote mode = "allow"')
  }
  const preferences = { ...config.local_preferences }
  if (wanted?.auto_apply === true && global.config.local_preferences?.auto_apply === undefined) {
    preferences.auto_apply = false
    ignored.push('auto_apply = true')
  }
  if (ignored.length === 0) return { config, notices: [] }
  const notice = `${project.file}: ${ignored.join(', ')} has no effect; a project may only tighten. To allow it, say so in ${globalConfigPath()}`
  return {
    config: {
      ...config,
      tools: { permissions },
      privacy: { ...config.privacy, remote },
      local_preferences: preferences,
    },
    notices: [notice],
  }
}

function realFolder(folder: string): string {
  try {
    return realpathSync(folder)
  } catch {
    return folder
  }
}

const invalid = (findings: Finding[]): Result<never, ConfigFailure> =>
  err({ kind: 'invalid_config', message: renderFindings(findings), findings })
