import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import { parsePort, portMessage, probePort } from '../../../scripts/lib-node/port.mjs'
import { findRouter, untilAnswers } from '../../../src/cli/start/running-router.ts'
import { freePort } from '../../support/node/free-port.ts'
import { tempFolder } from '../../support/node/temp-folder.ts'

/** Something on a port of its own that answers every request with this JSON. */
async function listener(body: object, port = 0): Promise<{ port: number; close(): void }> {
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(body))
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return { port: (server.address() as AddressInfo).port, close: () => server.close() }
}

describe('a port', () => {
  test('in use is busy, and free again afterwards', async () => {
    const other = await listener({})
    expect(await probePort('127.0.0.1', other.port)).toBe('busy')
    other.close()
    expect(await probePort('127.0.0.1', other.port)).toBe('free')
  })

  test('of an address that is not of this machine is told apart', async () => {
    // Reserved for documentation: nobody has it.
    expect(await probePort('192.0.2.1', 8787)).toBe('no_such_address')
  })

  test('in use is told with its number and with how to choose another', () => {
    expect(portMessage('busy', '127.0.0.1', 8787, 'Choose another: X')).toBe(
      'Port 8787 on 127.0.0.1 is in use by another program. Choose another: X',
    )
  })

  test.each([
    ['8787', 8787],
    ['0', 0],
    ['65535', 65_535],
    ['65536', undefined],
    ['-1', undefined],
    ['8e3', undefined],
    ['', undefined],
  ])('%j is read as %j', (text, port) => expect(parsePort(text)).toBe(port))
})

describe('the router that `npm start` uses', () => {
  const options = (port: number) => ({ port, portGiven: true, persistTo: tempFolder() })

  test('on a free port it is to be started', async () => {
    const port = await freePort()
    expect(await findRouter(options(port))).toEqual({
      ok: true,
      value: { url: `http://127.0.0.1:${port}`, port, running: false },
    })
  })

  test('a router that listens there already is used', async () => {
    const router = await listener({ status: 'ok', version: '0.1.0' })
    expect(await findRouter(options(router.port))).toMatchObject({ ok: true, value: { running: true } })
    router.close()
  })

  test('any other program there is an error that says how to choose another port', async () => {
    const other = await listener({ hello: 'world' })
    expect(await findRouter(options(other.port))).toEqual({
      ok: false,
      error: `Port ${other.port} on 127.0.0.1 is in use by another program. Choose another: PORT=${other.port + 1} npm start`,
    })
    other.close()
  })

  test('one that holds the state folder is used where it listens', async () => {
    const persistTo = tempFolder({ 'router.lock': JSON.stringify({ pid: process.pid, port: 4711 }) })
    expect(await findRouter({ port: 8787, portGiven: false, persistTo })).toEqual({
      ok: true,
      value: { url: 'http://127.0.0.1:4711', port: 4711, running: true },
    })
  })

  test('one that holds the state folder on another port than was asked for is an error that names both ways out', async () => {
    const persistTo = tempFolder({ 'router.lock': JSON.stringify({ pid: process.pid, port: 4711 }) })
    expect(await findRouter({ port: 8788, portGiven: true, persistTo })).toEqual({
      ok: false,
      error: expect.stringMatching(/port 4711[\s\S]*PORT=4711 npm start[\s\S]*--persist-to/),
    })
  })

  test('one that is just being brought up is waited for, as long as somebody holds its state', async () => {
    const port = await freePort()
    const place = { url: `http://127.0.0.1:${port}`, port, running: true }
    const { signal } = new AbortController()
    await untilAnswers(place, { persistTo: tempFolder(), signal })

    const order: string[] = []
    const persistTo = tempFolder({ 'router.lock': JSON.stringify({ pid: process.pid, port }) })
    const waiting = untilAnswers(place, { persistTo, signal }).then(() => order.push('waited'))
    const router = await listener({ status: 'ok', version: '0.1.0' }, port)
    order.push('listening')
    await waiting
    expect(order).toEqual(['listening', 'waited'])
    router.close()
  })
})
