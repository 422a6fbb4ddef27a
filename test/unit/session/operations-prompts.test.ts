import { describe, expect, test, vi } from 'vitest'
import { NO_ACCESS } from '../../../src/providers/access.ts'
import { MAX_QUEUED_PROMPTS } from '../../../src/session/operations/prompts.ts'
import { loadRunInput } from '../../../src/storage/session/run-input.ts'
import { makeFile, makeRequest, makeRule } from '../../support/core/builders.ts'
import { clientCall } from '../../support/core/run-machine.ts'
import { OperatedSession } from '../../support/node/operated-session.ts'

const submit = (prompt: string) => ({ type: 'submit_prompt', prompt }) as const
const queue = (prompt: string) => ({ type: 'queue', prompt }) as const
const steer = (prompt: string) => ({ type: 'steer', prompt }) as const

const body = makeRequest({
  text: 'first',
  rules: [makeRule({ name: 'r', paths: ['a.ts'], model: 'anthropic/big' })],
  attachments: { files: [makeFile('a.ts', 'secret')] },
  preferences: { local_only: true },
})

function running(): OperatedSession {
  const session = new OperatedSession()
  session.execute(body)
  return session
}

function idle(): OperatedSession {
  const session = running()
  session.answer('done')
  return session
}

const accepted = (disposition: string) => ({
  receipt: 'applied',
  result: { type: 'prompt_accepted', disposition },
})

const rejected = (code: string) => ({ receipt: 'rejected', result: { type: 'error', code } })

describe('submit_prompt', () => {
  test('[D07] starts a run that nobody drives, with the policy of the last one and without its content', async () => {
    const session = idle()
    expect(await session.ask(submit('  now '))).toEqual(accepted('started'))
    expect(session.state).toMatchObject({ driver: { kind: 'none' }, turn: 1 })
    expect(session.said().at(-1)).toBe('user: now')
    expect(loadRunInput(session.sql)).toMatchObject({
      input: { text: 'now' },
      policy: body.policy,
      local_preferences: body.local_preferences,
      attachments: { files: [] },
    })
    expect(session.served).toHaveLength(2)
  })

  test('[U37] its words stay with local models where the run before kept to them', async () => {
    const session = idle()
    await session.ask(submit('now'))
    expect(session.sql.rows(`SELECT local_only FROM messages ORDER BY seq DESC LIMIT 1`)[0]).toEqual({
      local_only: 1,
    })
  })

  test('[D09] asks the model of the profile that was chosen', async () => {
    const session = idle()
    await session.ask({ type: 'set_session_settings', model: 'anthropic/big', reasoning_effort: 'default' })
    await session.ask(submit('now'))
    expect(loadRunInput(session.sql).input).toEqual({ text: 'now', explicit_model: 'anthropic/big' })
  })

  test('[D07] without a run before it needs the default policy, or says what to do', async () => {
    const session = new OperatedSession()
    const refused = await session.ask(submit('now'))
    expect(refused).toMatchObject(rejected('invalid_request'))
    expect(refused.result).toMatchObject({ message: expect.stringContaining('policy') })
    session.published = { policy: body.policy, localPreferences: body.local_preferences }
    expect(await session.ask(submit('now'))).toEqual(accepted('started'))
    expect(loadRunInput(session.sql)).toMatchObject({ workspace: { root: '' }, policy: body.policy })
  })

  test.each([
    ['served', () => running()],
    [
      'paused',
      () => {
        const session = running()
        session.answer('', [clientCall('read_file')])
        return session
      },
    ],
  ])('[RF 16] is busy while a turn is %s', async (_, make) => {
    const session = make()
    expect(await session.ask(submit('now'))).toMatchObject(rejected('busy'))
    expect(session.said().filter((said) => said.includes('now'))).toEqual([])
  })

  test('[RF 16] what is no prompt is refused before the session is looked at', async () => {
    const session = running()
    expect(await session.ask(submit('  '))).toMatchObject(rejected('invalid_request'))
    expect(await session.ask(submit('/status'))).toMatchObject(rejected('unsupported_operation'))
    session.images = {
      ...session.images,
      check: () => ({ ok: false, error: { code: 'invalid_request', message: 'no such image' } }),
    }
    expect(await session.ask(submit('![](x)'))).toMatchObject(rejected('invalid_request'))
  })

  test('[RF 16] of two at once one starts and the other one finds the session busy', async () => {
    const session = idle()
    const answers = await Promise.all([session.ask(submit('one')), session.ask(submit('two'))])
    // Whichever was prepared first.
    const first = answers.findIndex(({ receipt }) => receipt === 'applied')
    expect(answers[first]).toEqual(accepted('started'))
    expect(answers[1 - first]).toMatchObject(rejected('busy'))
    const started = first === 0 ? 'one' : 'two'
    expect(session.said().filter((text) => /^user: (one|two)$/.test(text))).toEqual([`user: ${started}`])
  })

  test('a run that came and went while it was prepared is not run over', async () => {
    const session = idle()
    let release = () => {}
    session.facts = () =>
      new Promise((resolve) => {
        release = () => resolve([])
      })
    const asked = session.ask(submit('now'))
    session.execute(makeRequest({ text: 'other' }))
    session.answer('other done')
    release()
    expect(await asked).toMatchObject(rejected('busy'))
    expect(session.said()).not.toContain('user: now')
  })
})

describe('steer', () => {
  test('[D02] gives new words to the turn, which goes on as the same turn', async () => {
    const session = running()
    const { turnId } = session
    expect(await session.ask(steer('rather this'))).toEqual(accepted('steered'))
    expect(session.turnId).toBe(turnId)
    expect(session.said()).toEqual(['user: first', 'user: rather this'])
    expect(session.events.at(-1)).toMatchObject({ type: 'input_injected', prompt: 'rather this' })
  })

  test('[D06] the turn goes on with what it was served with', async () => {
    const session = running()
    const keys = { ...NO_ACCESS, credentialFor: () => 'key' }
    const live = session.live
    if (live === null) throw new Error('no turn')
    live.access = keys
    await session.ask(steer('rather this'))
    expect(session.served.at(-1)?.access).toBe(keys)
  })

  test('[RF 16] never becomes a prompt in the queue', async () => {
    const session = running()
    session.answer('', [clientCall('read_file')])
    expect(await session.ask(steer('x'))).toMatchObject(rejected('unsupported_operation'))
    expect(await idle().ask(steer('x'))).toMatchObject(rejected('not_running'))
    expect(session.said()).toEqual(['user: first', 'assistant: '])
  })
})

describe('queue', () => {
  test('[RF 17] prompts run one after the other, in their order, each when the run before it is over', async () => {
    const session = running()
    expect(await session.ask(queue('one'))).toEqual(accepted('queued'))
    expect(await session.ask(queue('two'))).toEqual(accepted('queued'))
    expect(session.cuts).toBe(2)
    await session.settled()
    expect(session.said()).toEqual(['user: first'])
    session.answer('a')
    await session.settled()
    expect(session.said()).toEqual(['user: first', 'assistant: a', 'user: one'])
    session.answer('b')
    await session.settled()
    expect(session.said().slice(3)).toEqual(['assistant: b', 'user: two'])
    expect(session.sql.rows('SELECT * FROM prompt_queue')).toEqual([])
  })

  test('[RF 17] a queued prompt behind a turn that is cancelled still runs', async () => {
    const session = running()
    await session.ask(queue('one'))
    expect((await session.ask({ type: 'cancel_turn', turn_id: session.turnId })).receipt).toBe('applied')
    await session.settled()
    expect(session.said()).toEqual(['user: first', 'user: one'])
    expect(session.state?.active).not.toBeNull()
  })

  test('[U14] a prompt that was queued runs once, however often the object dies', async () => {
    const session = running()
    await session.ask(queue('one'))
    session.answer('a')
    session.crash()
    session.crash()
    await session.settled()
    expect(session.said()).toEqual(['user: first', 'assistant: a', 'user: one'])
    session.operations.runNext()
    session.operations.runNext()
    await session.settled()
    expect(session.said().filter((said) => said === 'user: one')).toHaveLength(1)
  })

  test('[RF 16] what waits makes the session busy', async () => {
    const session = running()
    await session.ask(queue('one'))
    session.answer('a')
    expect(await session.ask(submit('now'))).toMatchObject(rejected('busy'))
  })

  test('[RF 16] needs something that goes on', async () => {
    expect(await idle().ask(queue('x'))).toMatchObject(rejected('not_running'))
  })

  test('a full queue takes nothing, and the same request may be sent again', async () => {
    const session = running()
    for (let n = 0; n < MAX_QUEUED_PROMPTS; n++) await session.ask(queue(`p${n}`))
    const refused = await session.ask(queue('more'), { requestId: 'r' })
    expect(refused).toMatchObject(rejected('rate_limited'))
    session.sql.rows('DELETE FROM prompt_queue WHERE text = ?', 'p0')
    expect(await session.ask(queue('more'), { requestId: 'r' })).toEqual(accepted('queued'))
  })

  test('a fault of D1 does not keep back what was queued', async () => {
    const warned = vi.spyOn(console, 'warn').mockImplementation(() => {})
    const session = running()
    await session.ask(queue('one'))
    session.facts = () => Promise.reject(new Error('D1 is gone'))
    session.answer('a')
    await session.settled()
    expect(session.said().at(-1)).toBe('user: one')
    warned.mockRestore()
  })

  test('[D14] a queued prompt may use what its device may', async () => {
    const session = running()
    await session.ask(queue('one'))
    const asked: boolean[] = []
    session.access = async (deploymentProviders) => {
      asked.push(deploymentProviders)
      return NO_ACCESS
    }
    session.answer('a')
    await session.settled()
    expect(asked).toEqual([true])
  })

  test('an archived session runs nothing; what was queued runs when it is restored', async () => {
    const session = running()
    await session.ask(queue('one'))
    session.sql.rows('UPDATE session SET archived_at = 1')
    session.answer('a')
    await session.settled()
    expect(session.said()).not.toContain('user: one')
    session.sql.rows('UPDATE session SET archived_at = NULL')
    session.operations.runNext()
    await session.settled()
    expect(session.said()).toContain('user: one')
  })
})

describe('a turn that a device started and a crash cut off', () => {
  test('[U06] is served again by itself, and its words are stored once', async () => {
    const session = idle()
    await session.ask(submit('now'))
    session.crash()
    await session.settled()
    expect(session.state?.active).not.toBeNull()
    expect(session.said().filter((said) => said === 'user: now')).toHaveLength(1)
    session.answer('answered')
    expect(session.said().at(-1)).toBe('assistant: answered')
  })

  test('[U06] so is one that was steered', async () => {
    const session = running()
    await session.ask(steer('rather this'))
    session.crash()
    await session.settled()
    expect(session.state?.active).not.toBeNull()
    expect(session.said()).toEqual(['user: first', 'user: rather this'])
  })

  test('[EC 5.8] what a client started waits for the client', async () => {
    const session = running()
    session.crash()
    await session.settled()
    expect(session.state?.active).toBeNull()
  })

  test('[U06] is given up when the object dies of it again and again, and what is queued behind it runs', async () => {
    const warned = vi.spyOn(console, 'warn').mockImplementation(() => {})
    const session = idle()
    await session.ask(submit('deadly'))
    await session.ask(queue('after'))
    for (let n = 0; n < 3; n++) {
      session.crash()
      await session.settled()
    }
    expect(session.events).toContainEqual(expect.objectContaining({ type: 'turn_cancelled' }))
    expect(session.said().at(-1)).toBe('user: after')
    warned.mockRestore()
  })
})

describe('an encrypted session', () => {
  test.each([submit('x'), queue('x'), steer('x')])(
    '[D47] takes no prompt without its computer, and keeps no receipt: %j',
    async (operation) => {
      const session = new OperatedSession({ keyId: 'kf2_key' })
      expect(await session.ask(operation)).toMatchObject(rejected('owner_unavailable'))
      expect(session.receipts()).toEqual([])
    },
  )

  test('[D47] a command in place of a prompt is refused as such', async () => {
    const session = new OperatedSession({ keyId: 'kf2_key' })
    expect(await session.ask(submit('/help'))).toMatchObject(rejected('unsupported_operation'))
  })
})
