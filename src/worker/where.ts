import type { Context } from 'hono'

/** Under which address this router was asked. */
export type RouterAddress = {
  scheme: 'http:' | 'https:'
  /** With the port, unless it is the scheme's own. */
  host: string
  /** `host:port`, always with a port; IPv6 in brackets. */
  dial: string
  /** As browsers send it. */
  origin: string
}

export function addressOfRouter(c: Context): RouterAddress {
  const asked = new URL(c.req.url)
  const scheme = asked.protocol === 'https:' ? 'https:' : 'http:'
  const { host, hostname, port } = URL.parse(`${scheme}//${c.req.header('Host') ?? asked.host}`) ?? asked
  const ownPort = scheme === 'https:' ? '443' : '80'
  return { scheme, host, dial: `${hostname}:${port === '' ? ownPort : port}`, origin: `${scheme}//${host}` }
}
