// The few arguments of `wrangler dev` that `npm run dev` must know itself; all are passed on as they came.
import path from 'node:path'
import { parsePort } from './port.mjs'

/**
 * @typedef {{ ip: string, port: number, persistTo: string, help: boolean, forDev: string[], forMigrations: string[] }} DevArguments
 *   `persistTo` is absolute; `forDev` is the whole command line of `wrangler dev`, `forMigrations` the part of it that
 *   `wrangler d1 migrations apply` must share
 */

/** Names that choose the configuration, which the migrations must read too. */
const SHARED = ['--config', '-c', '--env', '-e', '--env-file', '--cwd']

/** Each of these would put a router with open sign-up (LOCAL_DEV) before strangers. */
const PUBLIC = ['--remote', '-r', '--tunnel', '--tunnel-name']

/** `--ip` may only be this machine: whoever reaches a development router may sign up at it, whatever `Host` it names. */
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|::1|\[::1\])$/

/**
 * @param {readonly string[]} given what follows `npm run dev --`
 * @param {{ folder: string, defaultState: string }} place `folder` is what a relative `--persist-to` is relative to
 * @returns {{ ok: true, value: DevArguments } | { ok: false, error: string }} the error is a sentence for the user
 */
export function parseDevArguments(given, { folder, defaultState }) {
  const open = given.find((arg) => PUBLIC.includes(nameOf(arg)))
  if (open !== undefined) {
    return {
      ok: false,
      error: `${nameOf(open)} is refused: anybody who reaches a development router may sign up at it.`,
    }
  }
  const port = split(given, ['--port'])
  const ip = split(port.rest, ['--ip'])
  const persist = split(ip.rest, ['--persist-to', '--persistTo'])
  const shared = split(persist.rest, SHARED)
  const missing = [...port.empty, ...ip.empty, ...persist.empty][0]
  if (missing !== undefined) return { ok: false, error: `${missing} needs a value.` }

  const portText = port.values.at(-1) ?? '8787'
  const portNumber = parsePort(portText)
  if (portNumber === undefined) {
    return { ok: false, error: `--port ${portText} is no port number (0 to 65535).` }
  }
  const address = ip.values.at(-1) ?? '127.0.0.1'
  if (!LOOPBACK.test(address)) {
    return {
      ok: false,
      error: `--ip ${address} is refused: anybody who reaches a development router may sign up at it. For devices on your network there is \`npm start -- --lan\`.`,
    }
  }
  const persistTo = path.resolve(folder, persist.values.at(-1) ?? defaultState)
  // Two routers that start at once must not meet on the inspector's fixed port.
  const inspector = persist.rest.some((arg) => nameOf(arg) === '--inspector-port')
    ? []
    : ['--inspector-port', '0']
  const ours = [...inspector, '--ip', address, '--port', String(portNumber), '--persist-to', persistTo]
  return {
    ok: true,
    value: {
      ip: address,
      port: portNumber,
      persistTo,
      help: given.includes('--help') || given.includes('-h'),
      forDev: [...persist.rest, ...ours],
      forMigrations: [...shared.taken, '--persist-to', persistTo],
    },
  }
}

/** @param {string} arg */
function nameOf(arg) {
  return arg.split('=', 1)[0] ?? arg
}

/**
 * Takes options with one value each out of a command line, in both spellings (`--name value`, `--name=value`).
 * @param {readonly string[]} args
 * @param {readonly string[]} names
 * @returns {{ values: string[], taken: string[], rest: string[], empty: string[] }} `empty`: names without a value
 */
function split(args, names) {
  /** @type {{ values: string[], taken: string[], rest: string[], empty: string[] }} */
  const result = { values: [], taken: [], rest: [], empty: [] }
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? ''
    const name = nameOf(arg)
    if (!names.includes(name)) {
      result.rest.push(arg)
      continue
    }
    const value = arg === name ? args[++at] : arg.slice(name.length + 1)
    if (value === undefined || value === '') result.empty.push(name)
    else {
      result.values.push(value)
      result.taken.push(name, value)
    }
  }
  return result
}
