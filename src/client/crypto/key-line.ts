import { err, ok, type Result } from '../../protocol/result.ts'
import { keyText, parseKeyText, type SessionKey, versionOfKeyId } from './session-key.ts'

/** How a line begins that carries a key, so that nobody takes it for something else. */
const MARK = 'switchyard-key'

/** A key on its way to another machine. Whoever has the line reads what was sealed with the key. */
export const keyLine = (key: SessionKey): string => `${MARK}:${key.keyId}:${keyText(key)}`

/**
 * Reads such a line; blanks around it do not matter. A letter that was lost or changed on the way shows, because the id
 * is the key's fingerprint. The refusal is a sentence that repeats nothing of the line.
 */
export async function parseKeyLine(line: string): Promise<Result<SessionKey, string>> {
  const [mark, keyId = '', text = '', ...rest] = line.trim().split(':')
  if (mark !== MARK || rest.length > 0)
    return err(
      `this is no key: the line looks like ${MARK}:KEY_ID:KEY, as \`switchyard keys export\` prints it`,
    )
  if (versionOfKeyId(keyId) === null) return err('the id in this line is not that of a key: it may be cut')
  const key = await parseKeyText(keyId, text)
  return key === null ? err(`the key in this line is not ${keyId}: it is cut or mistyped`) : ok(key)
}
