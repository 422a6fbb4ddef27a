import path from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type CommandProcess, startCommand } from '../support/node/command-line.ts'
import { configHome } from '../support/node/config-home.ts'
import { makeAccount, type RouterAccount } from '../support/node/router-account.ts'
import { RouterProcess } from '../support/node/router-process.ts'
import { type StatefulFolder, statefulFolder } from '../support/node/stateful-folder.ts'
import { tempFolder } from '../support/node/temp-folder.ts'
import { type DialOptions, RemoteDevice, verifyDevices } from '../support/remote-device/device.ts'
import { authenticateFrame, pairFrame, ROTATING } from '../support/remote-device/gateway-home.ts'
import type { Fields } from '../support/remote-device/shapes.ts'

/** Devices are paired, listed, renamed, revoked and answered by the command line, against a router of its own. */

let folder: StatefulFolder
let router: RouterProcess
let account: RouterAccount
let gatewayId: string

beforeAll(async () => {
  folder = statefulFolder()
  router = await RouterProcess.start({
    persistTo: folder.path,
    // As `--lan` tells it: devices of the network can reach it, so that there is something to scan.
    vars: {
      LAN_ROUTES: JSON.stringify([{ address: '192.168.1.20:8787', kind: 'lan' }]),
      HOST_NAME: 'studio',
    },
  })
  account = await makeAccount(router.url)
  gatewayId = payloadOf(await done('pair')).gateway_id as string
})

afterEach(verifyDevices)

afterAll(async () => {
  await router?.stop()
  folder?.remove()
})

/** The command on a machine on which nothing is stored. */
function run(...args: string[]): CommandProcess {
  const { home, cwd } = configHome()
  const env = {
    HOME: home,
    XDG_CONFIG_HOME: path.join(home, 'cfg'),
    SWITCHYARD_URL: router.url,
    SWITCHYARD_API_KEY: account.apiKey,
  }
  return startCommand(args, { cwd, env })
}

const found = (text: string, pattern: RegExp): string => pattern.exec(text)?.[1] ?? `none in: ${text}`
const payloadOf = ({ stdout }: CommandProcess): Fields => JSON.parse(found(stdout, /^payload {2}(.*)$/m))
const codeOf = ({ stdout }: CommandProcess) => found(stdout, /^code {5}(\d{4}-\d{4})$/m)

/** A command that has ended well. */
async function done(...args: string[]): Promise<CommandProcess> {
  const command = run(...args)
  expect([await command.ended, command.stderr]).toEqual([0, expect.any(String)])
  return command
}

const dial = (options: DialOptions = {}) =>
  RemoteDevice.dial(`${router.url.replace('http', 'ws')}/g/${gatewayId}`, options)

/** What a device is told that shows this as its first frame; the connection is over then. */
async function refusal(frame: Fields): Promise<unknown> {
  const device = await dial()
  await device.send(frame)
  return (await device.lastWords()).code
}

async function listed(): Promise<Fields[]> {
  return JSON.parse((await done('devices', '--json')).stdout)
}

/** A device that was paired with the credential of the payload. */
async function pairedDevice(
  name: string,
  fields: Fields = {},
): Promise<{ device: RemoteDevice; paired: Fields }> {
  const { credential } = payloadOf(await done('pair', '--no-qr'))
  const device = await dial()
  const paired = await device.handshake(pairFrame({ secret: credential, device_name: name, ...fields }))
  expect(paired).toMatchObject({ type: 'paired', device_name: name, host_name: 'studio' })
  return { device, paired }
}

test('[U31] a device pairs with the digits while `pair` waits, and they work once', async () => {
  const command = run('pair', '--wait')
  await command.says('until')
  const code = codeOf(command)
  expect(command.stdout).toContain('▀')
  expect(payloadOf(command)).toMatchObject({ address: '192.168.1.20:8787', host_name: 'studio' })
  const digits = pairFrame({ method: 'code', secret: code, device_name: 'the digits', platform: 'ios' })
  const device = await dial()
  const paired = await device.handshake(digits)
  expect(await command.ended).toBe(0)
  expect(command.stderr).toContain(`✓ paired “the digits” (phone, ios), ${paired.device_id}\n`)
  expect(await refusal(digits)).toBe('pairing_failed')
  expect(await refusal(pairFrame({ secret: payloadOf(command).credential }))).toBe('pairing_failed')
})

test('[U32] a device that was scanned is listed, renamed, revoked and cut off, and can pair again', async () => {
  const install = { install_id: 'install-0123456789abcdef' }
  const { device, paired } = await pairedDevice('scanned', install)
  const id = String(paired.device_id)
  const lineOf = async () =>
    (await done('devices')).stdout.split('\n').find((line) => line.startsWith(id)) ?? 'not listed'
  expect(await lineOf()).toMatch(/ {2}phone {2}scanned {2}paired [-\d]{10} [:\d]{5} {2}online {2}expires /)
  await done('devices', 'rename', id.slice(0, 8), 'in', 'the', 'kitchen')
  expect(await lineOf()).toContain('  in the kitchen  ')

  await done('devices', 'revoke', id, '--yes')
  expect((await device.lastWords()).code).toBe('revoked')
  expect(await lineOf()).toBe('not listed')
  expect(await refusal(authenticateFrame({ device_id: id, token: paired.token }))).toBe('unauthorized')
  const again = await pairedDevice('scanned again', install)
  expect(again.paired.device_id).not.toBe(id)
  expect(await listed()).toContainEqual(
    expect.objectContaining({ device_name: 'scanned again', online: true }),
  )
})

test('[U33] a device whose old token was shown again is listed with a warning until it is taken off', async () => {
  const { device, paired } = await pairedDevice('copied', ROTATING)
  device.hangUp()
  const id = String(paired.device_id)
  const first = authenticateFrame({ device_id: id, refresh_token: paired.refresh_token })
  const owner = await dial()
  const rotated = await owner.handshake(first)
  await owner.send({ type: 'token_ack', rotation_id: rotated.rotation_id })
  await owner.pinged()
  expect(await refusal(first)).toBe('token_replayed')
  expect((await owner.lastWords()).code).toBe('revoked')

  expect((await done('devices')).stdout).toMatch(
    new RegExp(`^${id} .*\n {2}warning: .*copied.*switchyard pair`, 'm'),
  )
  await done('devices', 'revoke', id, '--yes')
  expect(await listed()).not.toContainEqual(expect.objectContaining({ device_id: id }))
})

test('[D41] devices can ask while `requests --listen` runs; one is accepted by its code, another denied', async () => {
  const ask = (name: string): Fields => ({ type: 'connect_request', protocol_version: 1, device_name: name })
  const listening = run('requests', '--listen', '--json')
  await expect.poll(() => listening.stderr, { timeout: 10_000 }).toContain('devices can ask until')
  const wanted = await dial({ address: '10.0.0.1' })
  expect((await wanted.handshake(ask('wanted'))).type).toBe('connect_pending')
  const stranger = await dial({ address: '10.0.0.2' })
  expect((await stranger.handshake(ask('stranger'))).type).toBe('connect_pending')
  await listening.says('"stranger"')
  const asked: Fields[] = listening.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(asked.map(({ device_name: name }) => name)).toEqual(['wanted', 'stranger'])
  const [wantedId = '', strangerId = ''] = asked.map(({ request_id: id }) => String(id))

  await done('requests', 'deny', strangerId)
  expect((await stranger.next()).type).toBe('connect_denied')
  await stranger.ended()
  const accepted = await done('requests', 'accept', wantedId.slice(0, 8))
  expect((await wanted.next()).type).toBe('connect_approved')
  const code = accepted.stdout.trimEnd()
  const paired = await wanted.handshake(pairFrame({ method: 'code', secret: code, device_name: 'wanted' }))
  expect(paired.type).toBe('paired')
  expect((await done('requests', 'list')).stderr).toContain('no request waits')
  listening.interrupt()
  expect(await listening.ended).toBe(130)
})

test('[D42] of a router on loopback no code is drawn, and a client on this machine can use the digits', async () => {
  const other = statefulFolder()
  const local = await RouterProcess.start({ persistTo: other.path })
  try {
    const { apiKey } = await makeAccount(local.url)
    const command = startCommand(['pair'], {
      cwd: tempFolder(),
      env: { SWITCHYARD_URL: local.url, SWITCHYARD_API_KEY: apiKey, HOME: tempFolder() },
    })
    expect([await command.ended, command.stdout.includes('▀')]).toEqual([0, false])
    expect(command.stderr).toContain('no phone can reach 127.0.0.1')
    const device = await RemoteDevice.dial(local.url.replace('http', 'ws'))
    const paired = await device.handshake(pairFrame({ method: 'code', secret: codeOf(command) }))
    expect(paired.type).toBe('paired')
    device.hangUp()
  } finally {
    await local.stop()
    other.remove()
  }
})

test('what was paired is still paired after the router was killed', async () => {
  const { device, paired } = await pairedDevice('lasting', ROTATING)
  device.expectCut()
  await router.kill9()
  await router.restart()
  const back = await dial()
  const answer = await back.handshake(
    authenticateFrame({ device_id: paired.device_id, refresh_token: paired.refresh_token }),
  )
  expect(answer).toMatchObject({ type: 'authenticated', gateway_id: gatewayId })
  expect(await listed()).toContainEqual(expect.objectContaining({ device_name: 'lasting', online: true }))
})
