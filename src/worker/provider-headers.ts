import { INSTANCE_NAME, isBuiltInProvider } from '../protocol/execution/ids.ts'

const PREFIX = 'x-smista-provider-'
const SUFFIX = '-api-key'

/** The upstream keys of one request by provider (EC 1.1). They live as long as the request and its turn. */
export function providerCredentials(headers: Headers): Record<string, string> {
  const credentials: Record<string, string> = {}
  headers.forEach((value, rawName) => {
    const name = rawName.toLowerCase()
    if (!name.startsWith(PREFIX) || !name.endsWith(SUFFIX)) return
    const segment = name.slice(PREFIX.length, -SUFFIX.length)
    if (!INSTANCE_NAME.test(segment) || !/^[\x20-\x7e]+$/.test(value)) return
    credentials[isBuiltInProvider(segment) ? segment : `openai-compat:${segment}`] = value
  })
  return credentials
}
