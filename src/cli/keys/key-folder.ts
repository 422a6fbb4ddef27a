import path from 'node:path'
import { KeyStore } from '../../client/crypto/key-files.ts'
import { configFolder } from '../credentials.ts'

/** The keys of the command: `<configuration folder>/keys/`. */
export const openKeyStore = (): KeyStore => new KeyStore(path.join(configFolder(), 'keys'))
