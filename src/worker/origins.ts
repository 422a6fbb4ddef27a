/** Origins of the deployment's own choice (`ALLOWED_ORIGINS`, comma-separated). `null` names no web site, so it never is one. */
export const allowedOrigins = (configured: string | undefined): string[] =>
  (configured ?? '')
    .split(',')
    .map((origin) => origin.trim())
    .filter((origin) => origin !== '' && origin !== 'null')

/** What apps of the remote protocol send: no web page can. */
const APP_ORIGIN = 'rustcode-mobile://app'

/**
 * Whether a socket may be opened from there (remote protocol, "Connection"; docs/decisions.md): no origin at all, the
 * app's, the router's own, or one that is configured. An empty `Origin`, and `null`, are others'.
 * @param ownOrigin scheme and host of the request
 */
export const mayOpenSocket = (
  origin: string | undefined,
  { ownOrigin, allowed }: { ownOrigin: string; allowed: readonly string[] },
): boolean =>
  origin === undefined || origin === APP_ORIGIN || origin === ownOrigin || allowed.includes(origin)
