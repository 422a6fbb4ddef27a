import type { KeyStore } from '../../client/crypto/key-files.ts'
import type { SessionKey } from '../../client/crypto/session-key.ts'
import { CommandStop } from '../command-context.ts'
import { EXIT } from '../exit-code.ts'

/** The key that a typed id, or the beginning of one, means; else the end of the command. */
export async function requireKey(store: KeyStore, typed: string): Promise<SessionKey> {
  const keyIds = (await requireKeys(store)).map(({ keyId }) => keyId)
  const meant = keyIds.includes(typed) ? [typed] : keyIds.filter((keyId) => keyId.startsWith(typed))
  const [keyId, ...others] = meant
  if (keyId === undefined) {
    const message = `there is no key "${typed}" on this machine; \`switchyard keys list\` shows what there is`
    throw new CommandStop(EXIT.failed, message)
  }
  if (others.length > 0) {
    const message = `"${typed}" is the beginning of ${meant.length} keys: type more of it\n  ${meant.join('\n  ')}`
    throw new CommandStop(EXIT.usage, message)
  }
  const key = await store.load(keyId)
  if (!key.ok) throw new CommandStop(EXIT.failed, key.error.message)
  return key.value
}

/** All keys of this machine, or the end of the command when their folder cannot be used. */
export async function requireKeys(store: KeyStore) {
  const problem = await store.folderProblem()
  if (problem) throw new CommandStop(EXIT.failed, problem.message)
  return store.list()
}
