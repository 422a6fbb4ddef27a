import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { saveCredentials } from '../../../src/cli/credentials.ts'
import { runCli } from '../../../src/cli/program.ts'
import { PutPolicyRequest } from '../../../src/protocol/execution/settings.ts'
import { configHome } from '../../support/node/config-home.ts'
import { type ScriptedIo, scriptedIo } from '../../support/node/scripted-io.ts'
import { json, type ScriptedRouter, startScriptedRouter } from '../../support/node/scripted-router.ts'

const PATH = '/api/v1/settings/policy'

let router: ScriptedRouter
let io: ScriptedIo

beforeEach(async () => {
  router = await startScriptedRouter()
  io = scriptedIo()
})
afterEach(async () => {
  expect(router.unexpected).toEqual([])
  await router.close()
})

/** A user who is signed in, in a folder with these files. */
function at(files: { global?: string; project?: string }): void {
  const { cwd } = configHome(files)
  vi.spyOn(process, 'cwd').mockReturnValue(cwd)
  vi.stubEnv('SWITCHYARD_URL', router.url)
  saveCredentials(router.url, {
    user_id: 'u1',
    api_key: 'sk-stored',
    token: { value: 't0', expires_at: '2099-01-01T00:00:00.000Z' },
  })
  router.always('GET', '/api/v1/auth/me', json({ user_id: 'u1' }))
}

const publish = () => runCli(['config', 'publish'], { makeIo: () => io })
const sent = () => router.requests.filter(({ path }) => path === PATH)

test('[D07] config publish sends what the files of the folder come to, with the preferences', async () => {
  at({
    global: '[routing.default]\nmodel = "ollama/qwen3:8b"\n[local_preferences]\nlocal_only = true\n',
    project: '[privacy]\nrestricted_paths = ["secret/**"]\n',
  })
  router.script('PUT', PATH, json({}))
  expect(await publish()).toBe(0)
  const body = PutPolicyRequest.parse(sent()[0]?.body)
  expect(body.policy.routing.default?.model).toBe('ollama/qwen3:8b')
  expect(body.policy.privacy.restricted_paths).toContain('secret/**')
  expect(body.local_preferences).toEqual({ auto_apply: false, local_only: true, no_network: false })
  expect(io.stderr).toContain('published')
})

test.each([
  ['no model', {}, 'no model is set'],
  ['a mistake', { global: '[routing.default]\nmodel = "nothing"\n' }, 'not a model reference'],
])('a configuration with %s is told, and nothing is sent', async (_what, files, told) => {
  at(files)
  expect(await publish()).toBe(2)
  expect(sent()).toEqual([])
  expect(io.stderr).toContain(told)
})

test('what the router refuses is told, and the command fails', async () => {
  at({ global: '[routing.default]\nmodel = "ollama/qwen3:8b"\n' })
  const error = { code: 'invalid_request', message: 'a published policy takes at most 524288 bytes as JSON' }
  router.script('PUT', PATH, json({ error }, 422))
  expect(await publish()).not.toBe(0)
  expect(io.stderr).toContain('at most 524288 bytes')
})
