import { describe, expect, test } from 'vitest'
import { runInteractive } from '../../../src/cli/interactive.ts'
import type { TypedLine } from '../../../src/cli/io.ts'
import { SwitchyardClient } from '../../../src/client/client.ts'
import { configHome } from '../../support/node/config-home.ts'
import { smallPolicy } from '../../support/node/run-request.ts'
import { ScriptedGateway } from '../../support/node/scripted-gateway.ts'
import { type ScriptedIo, scriptedIo } from '../../support/node/scripted-io.ts'
import {
  json,
  numbered,
  openStream,
  startScriptedRouter,
  stream,
} from '../../support/node/scripted-router.ts'
import {
  completed,
  idle,
  paths,
  SESSION,
  sessionSummary,
  text,
} from '../../support/node/scripted-router-turns.ts'

const typed = (...lines: string[]): TypedLine[] => lines.map((line) => ({ kind: 'line', text: line }))

async function conversation(lines: TypedLine[]) {
  const { cwd } = configHome()
  const router = await startScriptedRouter()
  const io = scriptedIo({ isTty: true })
  io.lines.push(...lines)
  const client = new SwitchyardClient({ baseUrl: router.url, token: 'tok' })
  router.always('POST', '/api/v1/sessions', json({ session: sessionSummary }, 201))
  return { router, io, talk: () => runInteractive({ client, cwd, policy: smallPolicy(), io }) }
}

describe('runInteractive', () => {
  test('every line goes to one session until /new', async () => {
    const { router, io, talk } = await conversation(typed('one', '', 'two', '/new', 'three'))
    router.always('POST', paths.execute, stream([{ event: completed('ok') }]))
    expect(await talk()).toBe(0)
    expect(router.requests.map(({ path }) => path)).toEqual([
      '/api/v1/sessions',
      paths.execute,
      paths.execute,
      '/api/v1/sessions',
      paths.execute,
    ])
    expect(io.stdout).toBe('ok\nok\nok\n')
    await router.close()
  })

  test('/model chooses a model for what follows, and auto gives the choice back', async () => {
    const { router, io, talk } = await conversation(
      typed('/model ollama/x', 'a', '/model nope', '/model auto', 'b'),
    )
    router.always('POST', paths.execute, stream([{ event: completed('ok') }]))
    await talk()
    const models = router.requests
      .filter(({ path }) => path === paths.execute)
      .map(({ body }) => (body as { input: { explicit_model?: string } }).input.explicit_model)
    expect(models).toEqual(['ollama/x', undefined])
    expect(io.stderr).toContain('not changed')
    await router.close()
  })

  test('/usage, /help and an unknown command are answered here', async () => {
    const { router, io, talk } = await conversation(typed('/usage', '/help', '/fly', 'a', '/usage'))
    router.always('POST', paths.execute, stream([{ event: completed('ok') }]))
    const used = { input_tokens: 5, output_tokens: 6, estimated_cost: '0.1', currency: 'USD' }
    const model = { ...used, provider: 'ollama', model: 'small', request_count: 2 }
    router.script('GET', paths.usage, json({ total: used, by_model: [model], by_task_type: [] }))
    await talk()
    expect(io.stderr).toContain('nothing used yet')
    expect(io.stderr).toContain('/model REF|auto')
    expect(io.stderr).toContain('unknown command /fly')
    expect(io.stderr).toContain(
      'ollama/small  2 × · in 5 · out 6 tokens · $0.1\ntotal  in 5 · out 6 tokens · $0.1\n',
    )
    await router.close()
  })

  test('a path that begins a prompt is no command', async () => {
    const { router, talk } = await conversation(typed('/etc/hosts: what is in it?'))
    router.always('POST', paths.execute, stream([{ event: completed('ok') }]))
    await talk()
    expect(router.count('POST', paths.execute)).toBe(1)
    await router.close()
  })

  test('Ctrl-C at the prompt leaves', async () => {
    const { router, talk } = await conversation([{ kind: 'interrupted' }, ...typed('never')])
    expect(await talk()).toBe(0)
    expect(router.requests).toEqual([])
    await router.close()
  })

  test('[U26] Ctrl-C during a run stops the run, and the conversation goes on', async () => {
    const { router, io, talk } = await conversation(typed('long', 'short'))
    const before = process.listenerCount('SIGINT')
    router.script(
      'POST',
      paths.execute,
      openStream(numbered(1, [text('Once')]), () => setImmediate(() => process.emit('SIGINT'))),
      stream([{ event: completed('ok') }]),
    )
    router.script('POST', paths.continue, stream(numbered(2, [idle])))
    expect(await talk()).toBe(0)
    expect(router.requests.map(({ path }) => path)).toEqual([
      '/api/v1/sessions',
      paths.execute,
      paths.continue,
      paths.execute,
    ])
    expect(io.stderr).toContain('stopped')
    expect(process.listenerCount('SIGINT')).toBe(before)
    await router.close()
  })

  /** An answer that is never finished; this is typed in its middle. */
  const typedInMidText = (io: ScriptedIo, ...lines: string[]) =>
    openStream(numbered(1, [text('Once upon')]), () => {
      setImmediate(() => {
        for (const line of lines) io.type(line)
      })
    })

  test('[EC 15] what is typed during a run goes to the run, and a dim note says so', async () => {
    const { router, io, talk } = await conversation(typed('a story'))
    router.script('POST', paths.execute, typedInMidText(io, 'make it short'))
    router.script('POST', paths.continue, stream(numbered(2, [text('The end.'), completed('The end.')])))
    expect(await talk()).toBe(0)
    expect(router.requests.at(-1)?.body).toEqual({
      type: 'inject',
      data: { messages: [{ text: 'make it short' }] },
    })
    expect(io.stdout).toMatch(/^(Once upon\n)?The end\.\n$/)
    expect(io.stderr).toMatch(/sent: make it short\n/)
    await router.close()
  })

  test('a command that is typed during a run waits for the prompt, as does what comes after the answer', async () => {
    const { router, io, talk } = await conversation(typed('a story'))
    const usage = { total: {}, by_model: [], by_task_type: [] }
    router.always('GET', paths.usage, json(usage))
    router.script(
      'POST',
      paths.execute,
      (response, request) => {
        io.type('/usage')
        return stream([{ event: completed('The end.') }])(response, request)
      },
      stream([{ event: completed('Again.') }]),
    )
    const { err } = io
    io.err = (written) => {
      // The answer is there, and the line with its usage is the last of the run.
      if (written.startsWith('in ') && router.count('POST', paths.execute) === 1) io.type('and again')
      err(written)
    }
    expect(await talk()).toBe(0)
    expect(io.stderr).toContain('/usage waits for the end of the run\n')
    expect(io.stderr).toMatch(/› and again\n[\s\S]*› \/usage\ntotal/)
    expect(
      router.requests
        .filter(({ path }) => path === paths.execute)
        .map(({ body }) => (body as { input: { text: string } }).input.text),
    ).toEqual(['a story', 'and again'])
    await router.close()
  })

  test('[U26] what was not sent before a stop is not sent after it', async () => {
    const { router, io, talk } = await conversation(typed('long'))
    router.script(
      'POST',
      paths.execute,
      openStream(numbered(1, [text('Once')]), () => setImmediate(() => process.emit('SIGINT'))),
    )
    router.script('POST', paths.continue, (response, request) => {
      io.type('shorter')
      return stream(numbered(2, [idle]))(response, request)
    })
    expect(await talk()).toBe(0)
    expect(router.count('POST', paths.execute)).toBe(1)
    expect(io.stderr).toContain('not sent, the run had ended: shorter\n')
    await router.close()
  })

  test('a session that is given is continued', async () => {
    const { cwd } = configHome()
    const router = await startScriptedRouter()
    const io = scriptedIo({ isTty: true })
    io.lines.push(...typed('hi'))
    io.lines.push(...typed('and again'))
    router.always('GET', '/api/v1/*', json({ sessions: [sessionSummary] }))
    router.always('POST', paths.execute, stream([{ event: completed('ok') }]))
    const client = new SwitchyardClient({ baseUrl: router.url, token: 'tok' })
    await runInteractive({ client, cwd, policy: smallPolicy(), sessionId: SESSION, io })
    // Once: whether it is encrypted does not change.
    expect(router.requests.map(({ path }) => path.replace(/\?.*/, ''))).toEqual([
      '/api/v1/sessions',
      paths.execute,
      paths.execute,
    ])
    await router.close()
  })
})

test('[U10] a run that a device starts while the prompt waits shows above it', async () => {
  const { cwd } = configHome()
  const router = await startScriptedRouter()
  const gateway = new ScriptedGateway(router)
  const io = scriptedIo({ isTty: true })
  io.readLine = async () => {
    await gateway.attached()
    const prompt = { text: 'tidy up', truncated: false, offset: 0, total_bytes: 7 }
    gateway.tell({ type: 'turn_started', turn_id: 'turn:1', prompt })
    gateway.tell({ type: 'turn_cancelled', turn_id: 'turn:1' })
    while (!io.stderr.includes('has ended')) await new Promise((resolve) => setImmediate(resolve))
    return { kind: 'end' }
  }
  const client = new SwitchyardClient({ baseUrl: router.url, token: 'tok' })
  const options = { client, cwd, policy: smallPolicy(), sessionId: SESSION, io, follows: true }
  expect(await runInteractive(options)).toBe(0)
  expect(io.stderr).toContain('a device started: tidy up\nwhat the device started has ended: cancelled\n')
  await router.close()
})
