import type { ExecutePolicy } from '../../protocol/execution/policy.ts'
import { misspelt } from '../suggest.ts'
import { brief, type PolicyFinding, type PolicyPlace } from './finding.ts'

/** The tools of the contract and of our own clients, and the keys that stand for groups of them (EC 12.1, 12.2). */
const KNOWN_PERMISSIONS: readonly string[] = [
  'read_file',
  'write_file',
  'edit_file',
  'shell',
  'memory',
  'ask_user',
  'read_lines',
  'list_files',
  'search_files',
  'show_changes',
  'file_read',
  'file_write',
  'git',
  'network',
]

/**
 * Permissions whose key looks like a known one with a slip of the pen: they hold for nothing that it was meant for. Other
 * keys are left alone, since clients declare tools of their own.
 */
export const permissionFindings = ({ tools, routing }: ExecutePolicy): PolicyFinding[] => [
  ...keyFindings(tools.permissions, ['tools', 'permissions']),
  ...routing.rules.flatMap(({ required_permissions }, index) =>
    keyFindings(required_permissions?.permissions ?? {}, [
      'routing',
      'rules',
      index,
      'required_permissions',
      'permissions',
    ]),
  ),
]

const keyFindings = (permissions: Readonly<Record<string, unknown>>, at: PolicyPlace): PolicyFinding[] =>
  Object.keys(permissions).flatMap((key): PolicyFinding[] => {
    if (KNOWN_PERMISSIONS.includes(key)) return []
    const suggestion = misspelt(key, KNOWN_PERMISSIONS)
    if (suggestion === undefined) return []
    const message = `no tool or group is called "${brief(key)}", so it holds for nothing unless a client has a tool of that name; did you mean \`${suggestion}\`?`
    return [{ code: 'unknown_permission', at: [...at, key], message, suggestion }]
  })
