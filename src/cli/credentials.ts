import { readFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { z } from 'zod'
import { fileErrorCode, writePrivateFile } from '../client/crypto/private-file.ts'
import { err, ok, type Result } from '../protocol/result.ts'

/** What is kept of one router: the account's key and, while it lasts, a session token. */
export const Credentials = z.object({
  user_id: z.string(),
  api_key: z.string(),
  token: z.object({ value: z.string(), expires_at: z.string() }).optional(),
})
export type Credentials = z.infer<typeof Credentials>

const CredentialsFile = z.object({ v: z.literal(1), routers: z.record(z.string(), Credentials) })
type CredentialsFile = z.infer<typeof CredentialsFile>

export type CredentialsFailure = { kind: 'unreadable' | 'unwritable'; message: string }

/** `$XDG_CONFIG_HOME/switchyard`, or `~/.config/switchyard`. It is created by whoever writes first. */
export function configFolder(env: NodeJS.ProcessEnv = process.env): string {
  const base = env.XDG_CONFIG_HOME
  // The XDG rules say that a relative value is to be ignored.
  const root = base && path.isAbsolute(base) ? base : path.join(env.HOME || os.homedir(), '.config')
  return path.join(root, 'switchyard')
}

export const credentialsPath = (): string => path.join(configFolder(), 'credentials.json')

/** One router is one entry, however its address was typed. */
export function routerKey(url: string): string {
  try {
    const parsed = new URL(url)
    return `${parsed.origin}${parsed.pathname.replace(/\/+$/, '')}`
  } catch {
    return url.replace(/\/+$/, '')
  }
}

/** What is stored for the router at `url`; null when there is nothing. */
export function loadCredentials(url: string): Result<Credentials | null, CredentialsFailure> {
  const file = readAll()
  if (!file.ok) return file
  const key = routerKey(url)
  return ok(Object.hasOwn(file.value.routers, key) ? (file.value.routers[key] ?? null) : null)
}

/** Stores (or, with null, forgets) the credentials of the router at `url`; the folder is 0700 and the file 0600. */
export function saveCredentials(
  url: string,
  credentials: Credentials | null,
): Result<null, CredentialsFailure> {
  // Read, changed and replaced in one go, so that another process has no time to slip in between.
  const file = readAll()
  if (!file.ok) return file
  const routers = { ...file.value.routers }
  if (credentials) routers[routerKey(url)] = credentials
  else delete routers[routerKey(url)]
  return writeAll({ v: 1, routers })
}

function readAll(): Result<CredentialsFile, CredentialsFailure> {
  const file = credentialsPath()
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if (fileErrorCode(error) === 'ENOENT') return ok({ v: 1, routers: {} })
    return err({ kind: 'unreadable', message: `${file} cannot be read (${fileErrorCode(error)})` })
  }
  const parsed = CredentialsFile.safeParse(parseJson(text))
  if (parsed.success) return ok(parsed.data)
  const message = `${file} is damaged; move it away and sign in again with \`switchyard login\``
  return err({ kind: 'unreadable', message })
}

function writeAll(content: CredentialsFile): Result<null, CredentialsFailure> {
  const file = credentialsPath()
  try {
    writePrivateFile(file, `${JSON.stringify(content, null, 2)}\n`)
    return ok(null)
  } catch (error) {
    return err({ kind: 'unwritable', message: `${file} cannot be written (${fileErrorCode(error)})` })
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
