import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import {
  configFolder,
  credentialsPath,
  loadCredentials,
  routerKey,
  saveCredentials,
} from '../../../src/cli/credentials.ts'
import { signedInClient } from '../../../src/cli/sign-in.ts'
import { ok } from '../../../src/protocol/result.ts'
import { configHome } from '../../support/node/config-home.ts'
import { scriptedIo } from '../../support/node/scripted-io.ts'
import { json, refusal, startScriptedRouter } from '../../support/node/scripted-router.ts'

const account = { user_id: 'u1', api_key: 'sk-1' }
const mode = (file: string): string => (statSync(file).mode & 0o777).toString(8)

describe('credentials', () => {
  test('the folder is 0700 and the file 0600, also when they were there with other modes', () => {
    configHome()
    mkdirSync(configFolder(), { recursive: true, mode: 0o755 })
    writeFileSync(credentialsPath(), '{"v":1,"routers":{}}', { mode: 0o644 })
    writeFileSync(`${credentialsPath()}.${process.pid}.tmp`, 'leftover', { mode: 0o666 })
    expect(saveCredentials('http://r', account)).toEqual(ok(null))
    expect([mode(configFolder()), mode(credentialsPath())]).toEqual(['700', '600'])
    expect(readdirSync(configFolder())).toEqual(['credentials.json'])
  })

  test('a umask that is wide open changes nothing about that', () => {
    configHome()
    const before = process.umask(0)
    try {
      saveCredentials('http://r', account)
    } finally {
      process.umask(before)
    }
    expect([mode(configFolder()), mode(credentialsPath())]).toEqual(['700', '600'])
  })

  test('each router has its own entry, however its address is typed', () => {
    configHome()
    saveCredentials('http://r:80/', account)
    saveCredentials('https://other/base/', { ...account, user_id: 'u2' })
    expect(loadCredentials('http://R')).toEqual(ok(account))
    expect(loadCredentials('https://other/base')).toMatchObject({ value: { user_id: 'u2' } })
    expect(loadCredentials('https://other')).toEqual(ok(null))
    saveCredentials('http://r', null)
    expect(loadCredentials('http://r')).toEqual(ok(null))
    expect(loadCredentials('https://other/base')).toMatchObject({ value: { user_id: 'u2' } })
    expect(routerKey('no url/')).toBe('no url')
  })

  test('a damaged file is reported and not overwritten', () => {
    configHome()
    mkdirSync(configFolder(), { recursive: true })
    writeFileSync(credentialsPath(), '{"v":1,"rou')
    expect(loadCredentials('http://r')).toMatchObject({ error: { kind: 'unreadable' } })
    expect(saveCredentials('http://r', account)).toMatchObject({ ok: false })
    expect(readFileSync(credentialsPath(), 'utf8')).toBe('{"v":1,"rou')
  })

  test('a file that cannot be replaced is reported in words', () => {
    configHome()
    mkdirSync(path.join(credentialsPath(), 'in-the-way'), { recursive: true })
    expect(loadCredentials('http://r')).toMatchObject({ error: { kind: 'unreadable' } })
    const { home } = configHome()
    mkdirSync(configFolder(), { recursive: true })
    mkdirSync(path.join(`${credentialsPath()}.${process.pid}.tmp`, 'in-the-way'), { recursive: true })
    expect(saveCredentials('http://r', account)).toMatchObject({
      error: { kind: 'unwritable', message: expect.stringContaining(home) },
    })
    expect(readdirSync(configFolder())).toEqual([])
  })

  test('XDG_CONFIG_HOME counts only when absolute; else it is ~/.config', () => {
    expect(configFolder({ XDG_CONFIG_HOME: '/x', HOME: '/h' })).toBe('/x/switchyard')
    expect(configFolder({ XDG_CONFIG_HOME: 'x', HOME: '/h' })).toBe('/h/.config/switchyard')
    expect(configFolder({ HOME: '/h' })).toBe('/h/.config/switchyard')
  })
})

describe('signedInClient', () => {
  const SIGN_IN = '/api/v1/auth/sign-in'
  const ME = '/api/v1/auth/me'
  const later = new Date(Date.now() + 86_400_000).toISOString()
  const issued = (token: string) => json({ token, expires_at: later })

  test('signs in with the stored key and keeps the token for the next time', async () => {
    configHome()
    const router = await startScriptedRouter()
    saveCredentials(router.url, account)
    router.script('POST', SIGN_IN, issued('t1'))
    router.always('GET', ME, json({ user_id: 'u1' }))
    const io = scriptedIo()
    expect(await signedInClient({ url: router.url, io, providerKeys: {} })).toMatchObject({ ok: true })
    expect(loadCredentials(router.url)).toEqual(ok({ ...account, token: { value: 't1', expires_at: later } }))
    expect(await signedInClient({ url: router.url, io, providerKeys: {} })).toMatchObject({ ok: true })
    expect(router.count('POST', SIGN_IN)).toBe(1)
    expect(router.requests.at(-1)?.headers.authorization).toBe('Bearer t1')
    await router.close()
  })

  test('a kept token that the router does not know any more is replaced', async () => {
    configHome()
    const router = await startScriptedRouter()
    saveCredentials(router.url, { ...account, token: { value: 'old', expires_at: later } })
    router.script('GET', ME, refusal(401, 'invalid_token'))
    router.script('POST', SIGN_IN, issued('t2'))
    expect(await signedInClient({ url: router.url, io: scriptedIo(), providerKeys: {} })).toMatchObject({
      ok: true,
    })
    expect(loadCredentials(router.url)).toMatchObject({ value: { token: { value: 't2' } } })
    await router.close()
  })

  test('[EC 29.11] a token that expires later is renewed with the key, and the new one is kept', async () => {
    configHome()
    const router = await startScriptedRouter()
    saveCredentials(router.url, { ...account, token: { value: 'old', expires_at: later } })
    router.script('GET', ME, json({ user_id: 'u1' }), refusal(401, 'token_expired'), json({ user_id: 'u1' }))
    router.script('POST', SIGN_IN, issued('t3'))
    const client = await signedInClient({ url: router.url, io: scriptedIo(), providerKeys: {} })
    expect(client.ok && (await client.value.me())).toEqual(ok({ user_id: 'u1' }))
    expect(loadCredentials(router.url)).toMatchObject({ value: { token: { value: 't3' } } })
    await router.close()
  })

  test('SWITCHYARD_API_KEY beats what is stored and leaves no trace on the disk', async () => {
    configHome()
    const router = await startScriptedRouter()
    saveCredentials(router.url, { ...account, token: { value: 'stored', expires_at: later } })
    vi.stubEnv('SWITCHYARD_API_KEY', 'sk-env')
    router.script('POST', SIGN_IN, issued('t4'))
    expect(await signedInClient({ url: router.url, io: scriptedIo(), providerKeys: {} })).toMatchObject({
      ok: true,
    })
    expect(router.requests[0]?.headers['x-smista-api-key']).toBe('sk-env')
    expect(readFileSync(credentialsPath(), 'utf8')).not.toMatch(/sk-env|t4/)
    await router.close()
  })

  test('without a key, with a refused one, and without a router the sentence says what to do', async () => {
    configHome()
    const router = await startScriptedRouter()
    const signIn = () => signedInClient({ url: router.url, io: scriptedIo(), providerKeys: {} })
    expect(await signIn()).toMatchObject({
      error: { kind: 'not_signed_in', message: expect.stringContaining('switchyard login') },
    })
    saveCredentials(router.url, account)
    router.script('POST', SIGN_IN, refusal(401, 'invalid_api_key'))
    expect(await signIn()).toMatchObject({ error: { kind: 'not_signed_in' } })
    await router.close()
    expect(await signIn()).toMatchObject({
      error: { kind: 'not_reachable', message: expect.stringContaining('npm start') },
    })
  })
})
