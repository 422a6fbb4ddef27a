import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import os from 'node:os'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { type Door, openDoor } from '../../src/cli/start/lan/door.ts'
import { routesOf } from '../../src/cli/start/lan/routes.ts'
import { freePort } from '../support/node/free-port.ts'
import { makeAccount, must, type RouterAccount } from '../support/node/router-account.ts'
import { RouterProcess } from '../support/node/router-process.ts'
import { type StatefulFolder, statefulFolder } from '../support/node/stateful-folder.ts'

/** The door of `npm start -- --lan` in front of a real router, told its routes as a start tells them. */

const ROUTES = routesOf(
  [
    { host: '192.168.1.20', kind: 'lan' },
    { host: '100.92.13.44', kind: 'overlay', provider: 'tailscale' },
    { host: 'fd7a:115c:a1e0::5', kind: 'overlay' },
  ],
  8787,
)
/** An address of the internet, as seen by the router. */
const PUBLIC_PEER = { 'CF-Connecting-IP': '8.8.8.8' }

let state: StatefulFolder
let router: RouterProcess
let account: RouterAccount
let door: Door
let doorUrl: string

beforeAll(async () => {
  state = statefulFolder()
  router = await RouterProcess.start({
    persistTo: state.path,
    vars: { LAN_ROUTES: JSON.stringify(ROUTES) },
  })
  account = await makeAccount(router.url)
  const port = await freePort()
  doorUrl = `ws://127.0.0.1:${port}`
  door = await openDoor({
    hosts: ['127.0.0.1'],
    names: [],
    port,
    routerPort: Number(new URL(router.url).port),
  })
})

afterAll(async () => {
  await door?.close()
  await router?.stop()
  state?.remove()
})

/** The status that an upgrade is answered with. */
async function statusOf(url: string, headers: Record<string, string>): Promise<number> {
  const socket = new WebSocket(url, { headers })
  const refused = once(socket, 'unexpected-response').then(([, response]) => {
    response.destroy()
    return response.statusCode as number
  })
  const open = once(socket, 'open').then(() => {
    socket.terminate()
    return 101
  })
  open.catch(() => {})
  return Promise.race([refused, open])
}

test('[D42] a device pairs through the door and learns the routes; the router ends and the device sees it', async () => {
  const { credential, gateway_id, qr } = must(await account.client.pairing.open())
  expect(qr).toMatchObject({
    address: '192.168.1.20:8787',
    alternates: ['100.92.13.44:8787', '[fd7a:115c:a1e0::5]:8787'],
  })
  const socket = new WebSocket(`${doorUrl}/g/${gateway_id}`, { origin: 'rustcode-mobile://app' })
  await once(socket, 'open')
  const pair = {
    type: 'pair',
    protocol_version: 1,
    method: 'credential',
    secret: credential,
    device_name: 'a phone',
  }
  socket.send(JSON.stringify(pair))
  const [frame] = await once(socket, 'message')
  expect(JSON.parse(String(frame))).toMatchObject({
    type: 'paired',
    gateway_id,
    host_name: os.hostname().replace(/\.local$/i, ''),
    routes: ROUTES,
  })
  const closed = once(socket, 'close')
  await router.stop()
  await closed
  await router.restart()
})

test('[D42] whom a device says it is does not count: the door names the peer', async () => {
  expect(await statusOf(`${doorUrl}/`, PUBLIC_PEER)).toBe(101)
  // The same without the door: the router believes the header, and refuses.
  expect(await statusOf(`${router.url.replace('http', 'ws')}/`, PUBLIC_PEER)).toBe(403)
})

test('[D43] no other part of the router is reached through the door', async () => {
  const url = doorUrl.replace('ws', 'http')
  for (const path of ['/', '/status', '/api/v1/auth/bootstrap']) {
    const answer = await fetch(url + path, { method: path.startsWith('/api') ? 'POST' : 'GET' })
    expect({ path, status: answer.status }).toEqual({ path, status: 403 })
  }
  expect(await statusOf(`${doorUrl}/api/v1/sessions`, account.headers)).toBe(403)
})

/** An upgraded connection whose frames are written and read by hand, and what came on it. */
async function strangerIn(): Promise<{ stranger: Socket; received: () => string; ended: Promise<unknown> }> {
  const { host, port } = new URL(doorUrl)
  const stranger = connect({ host: '127.0.0.1', port: Number(port) })
  let text = ''
  stranger.setEncoding('latin1').on('error', () => {})
  stranger.on('data', (piece: string) => {
    text += piece
  })
  const ended = once(stranger, 'close')
  stranger.write(
    [
      ...['GET / HTTP/1.1', `Host: ${host}`, 'Upgrade: websocket', 'Connection: Upgrade'],
      ...['Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='],
      ...['Sec-WebSocket-Extensions: permessage-deflate', '', ''],
    ].join('\r\n'),
  )
  while (!text.includes('\r\n\r\n')) await once(stranger, 'data')
  return { stranger, received: () => text, ended }
}

/** A text frame of a client, with a mask that changes nothing. */
const clientFrame = (text: string): Buffer =>
  Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), Buffer.from(text)])

test('[D42] a stranger that never answers the Close of the router does not keep its place', async () => {
  const { stranger, received, ended } = await strangerIn()
  expect(received()).toMatch(/^HTTP\/1\.1 101 /)
  expect(received().toLowerCase()).not.toContain('sec-websocket-extensions')
  stranger.write(clientFrame('{'))
  await ended
  expect(received()).toMatch(/"type":"error".*\x88[\s\S]{1,126}$/)
})
