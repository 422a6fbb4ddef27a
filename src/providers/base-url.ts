import { err, ok, type Result } from '../protocol/result.ts'

/** `/v1` and its like, at the end; Google puts its compatible door one step below. A pasted `/v1/chat/completions` fails. */
const VERSION_PATH = /\/v\d+[a-z0-9]*(\/openai)?$/

/**
 * Checks a base URL from the configuration and gives it back without a slash at its end. The error is a sentence for the
 * owner; it does not repeat the URL, which may hold a key.
 * @param path `none`: an origin only; `version`: a path whose last segment is a version such as `v1` (D15)
 */
export function parseBaseUrl(text: string, path: 'none' | 'version'): Result<string, string> {
  const url = URL.parse(text.trim())
  if (url === null) return err('is not a URL')
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return err('must start with http:// or https://')
  if (url.username !== '' || url.password !== '') return err('must not contain a user name or a password')
  if (url.search !== '' || url.hash !== '') return err('must not have a query or a fragment')
  const trimmed = url.pathname.replace(/\/+$/, '')
  if (path === 'none' && trimmed !== '') return err('must be an origin without a path')
  if (path === 'version' && !VERSION_PATH.test(trimmed)) {
    return err('must end in its version path, such as /v1')
  }
  return ok(url.origin + trimmed)
}

/** Host names that no public DNS serves. */
const PRIVATE_SUFFIX = /\.(localhost|local|internal|lan|home\.arpa)$/
/** Loopback, private, link-local and the range of carrier and overlay networks. */
const PRIVATE_IPV4 =
  /^(127|10)\.|^192\.168\.|^169\.254\.|^172\.(1[6-9]|2\d|3[01])\.|^100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\./
/** Loopback, unique local, link-local. */
const PRIVATE_IPV6 = /^\[(::1|f[cd][0-9a-f]{2}:.*|fe[89ab][0-9a-f]:.*)\]$/

/** Whether a base URL names a machine that only the owner's own network reaches. */
export function isPrivateAddress(baseUrl: string): boolean {
  const { hostname } = new URL(baseUrl)
  if (/^[\d.]+$/.test(hostname)) return PRIVATE_IPV4.test(hostname)
  if (hostname.startsWith('[')) return PRIVATE_IPV6.test(hostname)
  return !hostname.includes('.') || PRIVATE_SUFFIX.test(hostname)
}
