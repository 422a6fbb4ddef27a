import { readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { driveRun, type RunOutcome } from '../../src/client/drive.ts'
import type { ToolRequest } from '../../src/protocol/execution/turn.ts'
import { startCommand } from '../support/node/command-line.ts'
import { configHome } from '../support/node/config-home.ts'
import { makeHoldPoint } from '../support/node/hold-point.ts'
import { type ScriptedModel, startScriptedModel } from '../support/node/model-scripts.ts'
import { makeAccount, must, type RouterAccount } from '../support/node/router-account.ts'
import { RouterProcess } from '../support/node/router-process.ts'
import { executeRequest, smallPolicy } from '../support/node/run-request.ts'
import { type ChatRequest, lastOf } from '../support/node/scripted-ollama.ts'
import { type StatefulFolder, statefulFolder } from '../support/node/stateful-folder.ts'
import { tempFolder } from '../support/node/temp-folder.ts'

/** Our own clients against a real router: the TypeScript client, many at once, and the command line. */

let folder: StatefulFolder
let model: ScriptedModel
let router: RouterProcess
let account: RouterAccount

beforeAll(async () => {
  folder = statefulFolder()
  model = await startScriptedModel(['scripted', 'planner', 'coder', 'reviewer'])
  router = await RouterProcess.start({ persistTo: folder.path, vars: { OLLAMA_BASE_URL: model.url } })
  account = await makeAccount(router.url)
})

afterAll(async () => {
  await router?.stop()
  await model?.close()
  folder?.remove()
})

test('[U12, EC 1.5] 100 runs on 100 sessions at once all complete, none mixed up, at the default rate limit', async () => {
  const numberIn = (said: string) => /<crowd (\d+)>/.exec(said)?.[1] ?? 'none'
  model.script('<crowd', (request: ChatRequest) => {
    const number = numberIn(lastOf(request, 'user'))
    if (request.messages.at(-1)?.role !== 'tool')
      return { calls: [{ name: 'read_file', arguments: { path: `${number}.txt` } }] }
    return { pieces: [`${number} holds `, lastOf(request, 'tool')] }
  })
  const { client } = account
  const runOne = async (number: number) => {
    const { id: sessionId } = must(await client.sessions.create({ title: `crowd ${number}` }))
    const asked: ToolRequest[] = []
    let outcome: RunOutcome | undefined
    let streamed = ''
    const request = {
      ...executeRequest(`<crowd ${number}>`),
      policy: smallPolicy({
        routing: { default: { model: 'ollama/scripted' } },
        tools: { permissions: { read_file: 'allow' } },
      }),
    }
    const events = driveRun({
      client,
      sessionId,
      request,
      tools: {
        run: async (call) => {
          asked.push(call)
          return { content: `secret-${number}`, isError: false }
        },
      },
      approver: {
        approveTool: async () => ({ decision: 'rejected' }),
        decideGate: async () => ({ decision: 'rejected' }),
      },
    })
    for await (const event of events) {
      if (event.type === 'text_delta') streamed += event.delta
      if (event.type === 'run_ended') outcome = event.outcome
    }
    return {
      number,
      calls: asked.map(({ name, arguments: args }) => [name, args]),
      streamed,
      status: outcome?.status,
      answer: outcome?.status === 'completed' ? outcome.turn.message.content : outcome,
    }
  }
  const numbers = Array.from({ length: 100 }, (_, index) => index + 1)
  // More at once than the bucket holds, so that the runs meet the limit, too.
  const noise = numbers.flatMap(() => [client.status(), client.status()])
  const runs = await Promise.all(numbers.map(runOne))
  await Promise.all(noise)
  expect(runs).toEqual(
    numbers.map((number) => ({
      number,
      calls: [['read_file', { path: `${number}.txt` }]],
      streamed: `${number} holds secret-${number}`,
      status: 'completed',
      answer: `${number} holds secret-${number}`,
    })),
  )
})

describe('switchyard run', () => {
  /** The command as a person starts it who is signed in and has set a default model. */
  const switchyard = (args: string[], cwd: string) => {
    configHome({ global: '[routing.default]\nmodel = "ollama/scripted"\n' })
    return startCommand(args, {
      cwd,
      env: { SWITCHYARD_URL: router.url, SWITCHYARD_API_KEY: account.apiKey },
    })
  }

  test('[EC 25.3] reads and changes the files of its folder as the model asks, and prints the answer', async () => {
    const cwd = tempFolder({ 'greeting.txt': 'Hello, world.\n' })
    model.script(
      '<greet>',
      { calls: [{ name: 'read_file', arguments: { path: 'greeting.txt' } }] },
      (request) =>
        lastOf(request, 'tool').includes('Hello, world.')
          ? {
              pieces: ['I will change it.'],
              calls: [
                { name: 'edit_file', arguments: { path: 'greeting.txt', old: 'world', new: 'switchyard' } },
              ],
            }
          : { pieces: ['I was not shown the file.'] },
      { pieces: ['The greeting ', 'is changed.'] },
    )
    const command = switchyard(['run', '--yes', 'change the greeting <greet>'], cwd)
    expect([await command.ended, command.stderr]).toEqual([
      0,
      expect.stringContaining('edit_file greeting.txt'),
    ])
    expect(command.stdout).toBe('I will change it.\nThe greeting is changed.\n')
    expect(readFileSync(path.join(cwd, 'greeting.txt'), 'utf8')).toBe('Hello, switchyard.\n')
  })

  test('[EC 19][D11] a run over three models is explained, and decided alike again from the trace', async () => {
    const cwd = tempFolder({ 'parse.ts': 'let a = 1\n' })
    model.script('<tidy>', { pieces: ['1. Rename a.'] })
    model.script(
      'The plan is approved.',
      { calls: [{ name: 'edit_file', arguments: { path: 'parse.ts', old: 'a', new: 'count' } }] },
      { pieces: ['It reads well now.'] },
    )
    configHome({
      global: `
        [routing.default]
        model = "ollama/scripted"
        [[classification.rules]]
        intent = "review"
        priority = 1
        requires_any_context = ["file_changed"]
        [[classification.rules]]
        intent = "edit"
        priority = 2
        requires_any_context = ["plan_approved"]
        [[routing.rules]]
        name = "planning"
        intent = "plan"
        model = "ollama/planner"
        [[routing.rules]]
        name = "editing"
        intent = "edit"
        model = "ollama/coder"
        [[routing.rules]]
        name = "reviewing"
        intent = "review"
        model = "ollama/reviewer"
      `,
    })
    const start = (...args: string[]) =>
      startCommand(args, { cwd, env: { SWITCHYARD_URL: router.url, SWITCHYARD_API_KEY: account.apiKey } })
    const command = start('run', '--yes', '--command', 'plan', 'tidy up the parser <tidy>')
    expect([await command.ended, command.stdout]).toEqual([0, expect.stringContaining('It reads well now.')])
    const session = /^session ([0-9a-f-]{36})/m.exec(command.stderr)?.[1] ?? ''
    const explained = start('explain', session)
    expect([await explained.ended, explained.stderr]).toEqual([0, ''])
    expect(explained.stdout).toContain('plan ollama/planner → edit ollama/coder → review ollama/reviewer\n')
    expect(explained.stdout).toContain('  route     rule `planning` matched on intent `plan`')
    expect(explained.stdout).toContain('  tools     edit_file: completed\n')
    expect(explained.stdout.match(/decided again from the trace: the same/g)).toHaveLength(3)
  })

  test('[EC 25.3, U26] stopped with Ctrl-C breaks the run, cuts the model and ends with 130', async () => {
    const never = makeHoldPoint()
    model.script('<forever>', { pieces: ['once upon a time'], hold: never.hold })
    const session = await account.newSession()
    const cut = new Promise<void>((resolve) => model.onAbort(resolve))
    const command = switchyard(['run', '--session', session, 'tell a story <forever>'], tempFolder())
    await command.says('once upon a time')
    command.interrupt()
    expect(await command.ended).toBe(130)
    await cut
    expect(must(await account.client.currentRun(session))).toMatchObject({ status: 'idle' })
    const { messages } = must(await account.client.sessions.get(session))
    expect(messages.at(-1)).toMatchObject({
      role: 'assistant',
      content: { plaintext: 'once upon a time' },
      interrupted: true,
    })
  })
})
