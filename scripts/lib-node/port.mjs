// Whether a port can be had, asked before a slow start instead of read out of its failure.
import { createServer } from 'node:net'

/**
 * @param {string} host
 * @param {number} port
 * @returns {Promise<'free' | 'busy' | 'forbidden' | 'no_such_address'>}
 */
export function probePort(host, port) {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', (error) => {
      const code = /** @type {NodeJS.ErrnoException} */ (error).code
      if (code === 'EADDRINUSE') resolve('busy')
      else if (code === 'EACCES') resolve('forbidden')
      else if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') resolve('no_such_address')
      else reject(error)
    })
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve('free')))
  })
}

/**
 * The sentence for a person who cannot have the port.
 * @param {'busy' | 'forbidden' | 'no_such_address'} problem
 * @param {string} host
 * @param {number} port
 * @param {string} remedy how to choose another port with the command at hand
 */
export function portMessage(problem, host, port, remedy) {
  switch (problem) {
    case 'busy':
      return `Port ${port} on ${host} is in use by another program. ${remedy}`
    case 'forbidden':
      return `Port ${port} needs special rights on this system. ${remedy}`
    case 'no_such_address':
      return `${host} is not an address of this machine.`
  }
}

/**
 * @param {string} text
 * @returns {number | undefined} undefined for what is no port
 */
export function parsePort(text) {
  if (!/^\d{1,5}$/.test(text)) return undefined
  const port = Number(text)
  return port <= 65_535 ? port : undefined
}
