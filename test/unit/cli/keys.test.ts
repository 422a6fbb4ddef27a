import { chmodSync, readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { encode } from 'uqr'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { configFolder, saveCredentials } from '../../../src/cli/credentials.ts'
import { openKeyStore } from '../../../src/cli/keys/key-folder.ts'
import { runCli } from '../../../src/cli/program.ts'
import { keyLine } from '../../../src/client/crypto/key-line.ts'
import { generateKey, keyText, type SessionKey } from '../../../src/client/crypto/session-key.ts'
import { ok } from '../../../src/protocol/result.ts'
import { configHome } from '../../support/node/config-home.ts'
import { drawnModules } from '../../support/node/drawn-qr.ts'
import { type ScriptedIo, scriptedIo } from '../../support/node/scripted-io.ts'
import { json, startScriptedRouter } from '../../support/node/scripted-router.ts'

let io: ScriptedIo

beforeEach(() => {
  io = scriptedIo()
  configHome()
})

const cli = (...argv: string[]) => runCli(argv, { makeIo: () => io })
const fileOf = ({ keyId }: SessionKey) => path.join(configFolder(), 'keys', `${keyId}.json`)
const keptKey = async (version: 1 | 2): Promise<SessionKey> => {
  const key = await generateKey(version)
  expect(await openKeyStore().save(key)).toEqual(ok({ created: true }))
  return key
}

describe('keys list', () => {
  test('shows each key, since when it is here, and whether it can be used', async () => {
    const sound = await keptKey(2)
    const exposed = await keptKey(1)
    chmodSync(fileOf(exposed), 0o644)
    expect(await cli('keys', 'list')).toBe(0)
    expect(io.stdout).toMatch(
      new RegExp(`^${sound.keyId}  since \\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d  sound\n`, 'm'),
    )
    expect(io.stdout).toContain(`${exposed.keyId}  cannot be used: others on this machine can read`)
    expect(io.stdout).toContain(`chmod 600 '${fileOf(exposed)}'`)
  })

  test('as JSON, and never with a key in it', async () => {
    const [sound, damaged] = [await keptKey(2), await keptKey(1)]
    writeFileSync(fileOf(damaged), '{')
    expect(await cli('keys', 'list', '--json')).toBe(0)
    const listed = JSON.parse(io.stdout)
    expect(listed).toHaveLength(2)
    expect(listed).toEqual(
      expect.arrayContaining([
        { key_id: sound.keyId, created_at: expect.stringMatching(/Z$/), sound: true },
        { key_id: damaged.keyId, sound: false, problem: expect.stringContaining('move it away') },
      ]),
    )
    expect(io.stdout + io.stderr).not.toContain(keyText(sound))
  })

  test('says so when there are none, and asks no router', async () => {
    vi.stubEnv('SWITCHYARD_URL', 'http://127.0.0.1:1')
    expect(await cli('keys', 'list')).toBe(0)
    expect([io.stdout, io.stderr]).toEqual(['', 'no keys\n'])
  })

  test('a folder that others may change is a failure', async () => {
    await keptKey(2)
    chmodSync(path.join(configFolder(), 'keys'), 0o777)
    expect(await cli('keys', 'list')).toBe(1)
    expect(io.stderr).toContain('chmod 700')
    expect(io.stdout).toBe('')
  })

  test('[U35] with its sessions, those whose key is elsewhere among them', async () => {
    const router = await startScriptedRouter()
    vi.stubEnv('SWITCHYARD_URL', router.url)
    saveCredentials(router.url, {
      user_id: 'u1',
      api_key: 'sk-stored',
      token: { value: 't0', expires_at: '2099-01-01T00:00:00.000Z' },
    })
    router.always('GET', '/api/v1/auth/me', json({ user_id: 'u1' }))
    const [key, unused, elsewhere] = [await keptKey(2), await keptKey(2), await generateKey(1)]
    const session = (last: number, fields: object) => ({
      id: `0197d0a2-6c1e-7c52-9a55-00000000000${last}`,
      title: `title ${last}`,
      encrypted: true,
      archived: false,
      created_at: '2026-01-02T03:04:05.000Z',
      updated_at: '2026-01-02T03:04:05.000Z',
      ...fields,
    })
    const sessions = [
      session(1, { key_id: key.keyId, title: 'mine \u001b[2J' }),
      session(2, { encrypted: false, title: 'plain' }),
      session(3, { key_id: elsewhere.keyId, title: null }),
      session(4, { key_id: key.keyId }),
    ]
    router.always('GET', '/api/v1/sessions', json({ sessions }))
    expect(await cli('keys', 'list', '--sessions')).toBe(0)
    const since = '  since \\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d  sound\n'
    const id = (last: number) => `  0197d0a2-6c1e-7c52-9a55-00000000000${last}  `
    expect(io.stdout).toMatch(new RegExp(`${key.keyId}${since}${id(1)}mine .*\n${id(4)}title 4\n`))
    expect(io.stdout).not.toContain('\u001b')
    // One whose session the router did not make, for example.
    expect(io.stdout).toMatch(new RegExp(`${unused.keyId}${since} {2}\\(no session of this account\\)\n`))
    expect(
      io.stdout.endsWith(`${elsewhere.keyId}  cannot be used: not on this machine\n${id(3)}(untitled)\n`),
    ).toBe(true)
    expect(io.stdout).not.toContain('plain')

    io.stdout = ''
    expect(await cli('keys', 'list', '--sessions', '--json')).toBe(0)
    expect(JSON.parse(io.stdout)).toContainEqual({
      key_id: elsewhere.keyId,
      sound: false,
      problem: 'not on this machine',
      sessions: [{ id: id(3).trim(), title: '' }],
    })
    expect(router.unexpected).toEqual([])
    await router.close()
  })
})

describe('keys export', () => {
  test('prints the line alone, by the id or by the beginning of it', async () => {
    const [one, other] = [await keptKey(1), await keptKey(2)]
    expect(await cli('keys', 'export', one.keyId)).toBe(0)
    expect(await cli('keys', 'export', other.keyId.slice(0, 6))).toBe(0)
    expect(io.stdout).toBe(`${keyLine(one)}\n${keyLine(other)}\n`)
    expect(io.stderr).toBe('')
  })

  test('on a terminal it warns of who may see the line', async () => {
    io = scriptedIo({ isTty: true, outIsTty: true })
    const key = await keptKey(2)
    expect(await cli('keys', 'export', key.keyId)).toBe(0)
    expect(io.stdout).toBe(`${keyLine(key)}\n`)
    expect(io.stderr).toContain('whoever has this line can read every session under the key')
  })

  test('as a QR code that holds the line', async () => {
    const key = await keptKey(2)
    expect(await cli('keys', 'export', key.keyId, '--qr')).toBe(0)
    const code = encode(keyLine(key), { border: 2, ecc: 'M' })
    const rows = drawnModules(io.stdout.trimEnd())
    expect(rows.slice(0, code.size)).toEqual(code.data)
    expect(io.stdout).not.toContain(keyText(key))
  })

  test('in colours that do not depend on the terminal’s, unless they are off', async () => {
    const key = await keptKey(2)
    io = scriptedIo({ isTty: true, outIsTty: true })
    expect(await cli('keys', 'export', key.keyId, '--qr')).toBe(0)
    expect(
      io.stdout
        .split('\n')
        .slice(0, -1)
        .every((line) => line.startsWith('\u001b[97;40m')),
    ).toBe(true)
    expect(io.stderr).toContain('whoever has this code')
    io.stdout = ''
    expect(await cli('keys', 'export', key.keyId, '--qr', '--no-color')).toBe(0)
    expect(io.stdout).not.toContain('\u001b')
  })

  test('of a beginning that several keys have is refused, and they are named', async () => {
    const keys = [await keptKey(2), await keptKey(2)]
    expect(await cli('keys', 'export', 'kf2_')).toBe(2)
    for (const { keyId } of keys) expect(io.stderr).toContain(keyId)
    expect(io.stdout).toBe('')
  })

  test('of what is not here, or cannot be used, is a failure', async () => {
    expect(await cli('keys', 'export', 'kf_nobody')).toBe(1)
    expect(io.stderr).toContain('there is no key "kf_nobody" on this machine')
    const key = await keptKey(2)
    chmodSync(fileOf(key), 0o640)
    expect(await cli('keys', 'export', key.keyId)).toBe(1)
    expect(io.stderr).toContain('chmod 600')
    expect(io.stdout).toBe('')
  })
})

describe('keys import', () => {
  test('keeps the key of a line from stdin, and doing so twice is fine', async () => {
    const key = await generateKey(2)
    io.secrets = [keyLine(key), ` ${keyLine(key)} `]
    expect(await cli('keys', 'import')).toBe(0)
    expect(await cli('keys', 'import')).toBe(0)
    expect(io.stderr).toBe(`imported ${key.keyId}\n${key.keyId} was here already\n`)
    expect(await openKeyStore().load(key.keyId)).toEqual(ok(key))
  })

  test('skips blank lines before it', async () => {
    const key = await generateKey(2)
    io.secrets = ['', '  ', keyLine(key)]
    expect(await cli('keys', 'import')).toBe(0)
    expect(await openKeyStore().load(key.keyId)).toEqual(ok(key))
  })

  test('or of its argument, and asks nothing then', async () => {
    const key = await generateKey(1)
    expect(await cli('keys', 'import', keyLine(key))).toBe(0)
    expect(io.questions).toEqual([])
    expect(await openKeyStore().load(key.keyId)).toEqual(ok(key))
  })

  test('a line that does not hold together is refused, and nothing of it is repeated or kept', async () => {
    const [key, other] = [await generateKey(2), await generateKey(2)]
    const swapped = keyLine(key).replace(key.keyId, other.keyId)
    for (const wrong of [swapped, keyLine(key).slice(0, -2), keyText(key)])
      expect(await cli('keys', 'import', wrong)).toBe(2)
    expect(io.stderr).toContain(`the key in this line is not ${other.keyId}`)
    expect(io.stderr).not.toContain(keyText(key).slice(0, 20))
    expect(await openKeyStore().list()).toEqual([])
  })

  test('without a line, and when Ctrl-C is pressed, nothing happens', async () => {
    expect(await cli('keys', 'import')).toBe(2)
    expect(io.stderr).toContain('there is no key on stdin')
    io = scriptedIo({ isTty: true })
    expect(await cli('keys', 'import')).toBe(130)
  })

  test('where it cannot be kept is a failure', async () => {
    const key = await generateKey(2)
    await keptKey(1)
    chmodSync(path.join(configFolder(), 'keys'), 0o777)
    expect(await cli('keys', 'import', keyLine(key))).toBe(1)
    expect(io.stderr).toContain('chmod 700')
    expect(readdirSync(path.join(configFolder(), 'keys'))).toHaveLength(1)
  })
})

test('a key that one machine exports is one that another imports', async () => {
  const key = await keptKey(2)
  await cli('keys', 'export', key.keyId)
  const line = io.stdout
  configHome()
  expect(await openKeyStore().list()).toEqual([])
  io.secrets = [line]
  expect(await cli('keys', 'import')).toBe(0)
  expect(await openKeyStore().load(key.keyId)).toEqual(ok(key))
})
