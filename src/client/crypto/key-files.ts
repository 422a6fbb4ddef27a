/** The keys of this machine: one file each, in a folder that only their owner can enter. Only for Node. */

import { readdirSync } from 'node:fs'
import path from 'node:path'
import { z } from 'zod'
import { Timestamp } from '../../protocol/execution/ids.ts'
import type { EnvelopeVersion } from '../../protocol/execution/sealed.ts'
import { err, ok, type Result } from '../../protocol/result.ts'
import { fileErrorCode, isOpenFolder, readPrivateFile, writePrivateFile } from './private-file.ts'
import { keyText, parseKeyText, type SessionKey, versionOfKeyId } from './session-key.ts'

/** Why a key cannot be had or kept; the message is a sentence to show, with what to do about it. */
export type KeyProblem = {
  /** `exposed`: others on this machine can read or replace it. */
  kind: 'missing' | 'exposed' | 'damaged' | 'unreadable' | 'unwritable'
  message: string
}

/** A key file, sound or not. */
export type StoredKey = {
  keyId: string
  version: EnvelopeVersion
  file: string
  /** When the key came to this machine, RFC 3339; null when the file cannot be used. */
  createdAt: string | null
  /** Why the key cannot be used; null for a sound file. */
  problem: KeyProblem | null
}

const KeyFile = z.object({
  version: z.literal(1),
  key_id: z.string(),
  key: z.string(),
  created_at: Timestamp,
})

const ENDING = '.json'

/**
 * A folder of keys. It is read anew each time: other processes add keys, too. As ssh does with its keys, a file that
 * others can read is refused until its owner has seen to it.
 */
export class KeyStore {
  readonly folder: string

  constructor(folder: string) {
    this.folder = folder
  }

  /** What is wrong with the folder itself; null also while there is none. */
  async folderProblem(): Promise<KeyProblem | null> {
    try {
      readdirSync(this.folder)
      return isOpenFolder(this.folder)
        ? problem(
            'exposed',
            `others can change what is in ${this.folder}`,
            `chmod 700 ${quoted(this.folder)}`,
          )
        : null
    } catch (error) {
      const code = fileErrorCode(error)
      return code === 'ENOENT' ? null : problem('unreadable', `${this.folder} cannot be read (${code})`)
    }
  }

  /** Every key file, the oldest key first. Empty when the folder cannot be read: `folderProblem` says why. */
  async list(): Promise<StoredKey[]> {
    const keys = await Promise.all(
      keyIdsIn(this.folder).map(async ({ keyId, version }) => {
        const file = this.#fileOf(keyId)
        const read = await readKey(file, keyId)
        return read.ok
          ? { keyId, version, file, createdAt: read.value?.createdAt ?? null, problem: null }
          : { keyId, version, file, createdAt: null, problem: read.error }
      }),
    )
    return keys.sort((a, b) => compare(a.createdAt ?? '', b.createdAt ?? '') || compare(a.keyId, b.keyId))
  }

  /** The key with this id, as the `key_id` of a session names it; null when it is not on this machine. */
  async findFor(keyId: string): Promise<Result<SessionKey | null, KeyProblem>> {
    // Ids come from outside, and become names of files: only what a key id looks like may.
    if (versionOfKeyId(keyId) === null) return ok(null)
    const folder = await this.folderProblem()
    if (folder) return err(folder)
    const read = await readKey(this.#fileOf(keyId), keyId)
    return read.ok ? ok(read.value?.key ?? null) : read
  }

  /** As `findFor`, for callers that cannot go on without it. */
  async load(keyId: string): Promise<Result<SessionKey, KeyProblem>> {
    const found = await this.findFor(keyId)
    if (!found.ok) return found
    if (found.value) return ok(found.value)
    return err(problem('missing', `key ${keyId} is not on this machine`))
  }

  /**
   * Keeps a key; when this returns, it is on the disk. What lies under its id is never overwritten: the same key stays
   * as it is (`created` is false), anything else is a problem.
   */
  async save(key: SessionKey): Promise<Result<{ created: boolean }, KeyProblem>> {
    const known = await this.findFor(key.keyId)
    if (!known.ok) return known
    if (known.value) return ok({ created: false })
    const file = this.#fileOf(key.keyId)
    const content: z.infer<typeof KeyFile> = {
      version: 1,
      key_id: key.keyId,
      key: keyText(key),
      created_at: new Date().toISOString(),
    }
    try {
      writePrivateFile(file, `${JSON.stringify(content, null, 2)}\n`)
      return ok({ created: true })
    } catch (error) {
      return err(problem('unwritable', `${file} cannot be written (${fileErrorCode(error)})`))
    }
  }

  #fileOf(keyId: string): string {
    return path.join(this.folder, `${keyId}${ENDING}`)
  }
}

type ReadKey = { key: SessionKey; createdAt: string }

/** What a key file holds; null when there is no file. */
async function readKey(file: string, keyId: string): Promise<Result<ReadKey | null, KeyProblem>> {
  let read: ReturnType<typeof readPrivateFile>
  try {
    read = readPrivateFile(file)
  } catch (error) {
    const code = fileErrorCode(error)
    return code === 'ENOENT' ? ok(null) : err(problem('unreadable', `${file} cannot be read (${code})`))
  }
  if (read.exposed)
    return err(
      problem('exposed', `others on this machine can read the key in ${file}`, `chmod 600 ${quoted(file)}`),
    )
  const content = KeyFile.safeParse(parseJson(read.text))
  if (!content.success || content.data.key_id !== keyId)
    return err(problem('damaged', `${file} is no file of key ${keyId}; ${GET_AGAIN}`))
  const key = await parseKeyText(keyId, content.data.key)
  if (key === null) return err(problem('damaged', `the key in ${file} is not ${keyId}; ${GET_AGAIN}`))
  return ok({ key, createdAt: content.data.created_at })
}

const GET_AGAIN = 'move it away, and import the key from another machine or a copy'

const problem = (kind: KeyProblem['kind'], what: string, remedy?: string): KeyProblem => ({
  kind,
  message: remedy === undefined ? what : `${what}: run \`${remedy}\``,
})

/** The names of files that are keys, by their form. */
function keyIdsIn(folder: string): { keyId: string; version: EnvelopeVersion }[] {
  return namesIn(folder).flatMap((name) => {
    const keyId = name.endsWith(ENDING) ? name.slice(0, -ENDING.length) : ''
    const version = versionOfKeyId(keyId)
    return version === null ? [] : [{ keyId, version }]
  })
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A path as a shell takes it. */
const quoted = (file: string): string => `'${file.replaceAll("'", "'\\''")}'`

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
