import { env } from 'cloudflare:workers'
import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { ListSessionsResponse } from '../../src/protocol/execution/session.ts'
import type { RemoteSessionInfo } from '../../src/protocol/remote/session-info.ts'
import { failStatements } from '../support/workers/d1.ts'
import { HostRig, listedRow } from '../support/workers/host-operations.ts'
import { type Client, makeClient, parsed } from '../support/workers/router.ts'

let owner: Client
let rig: HostRig
beforeAll(async () => {
  owner = await makeClient()
})
beforeEach(async () => {
  vi.restoreAllMocks()
  rig = await HostRig.make(owner)
})

const run = (query: string, ...values: unknown[]) =>
  env.DB.prepare(query)
    .bind(...values)
    .run()
const savedOf = async (rig: HostRig, fields: { cursor?: string; limit?: number; query?: string } = {}) => {
  const { receipt, result } = await rig.ask({ type: 'list_saved_sessions', ...fields })
  expect(receipt).toBeNull()
  if (result.type !== 'saved_sessions') throw new Error(`refused: ${JSON.stringify(result)}`)
  return result
}

describe('list_saved_sessions', () => {
  /** An account of its own for each test: the list is of all there is. */
  const account = async (...titles: string[]) => {
    const client = await makeClient()
    const ids: string[] = []
    for (const [index, title] of titles.entries()) {
      const id = await client.newSession(title)
      ids.push(id)
      await run('UPDATE sessions SET created_at = ? WHERE id = ?', 1000 + index, id)
    }
    return { client, ids, rig: await HostRig.make(client) }
  }
  const titlesOf = ({ sessions }: { sessions: { title: string }[] }) => sessions.map(({ title }) => title)

  it('[RF 25] shows every session that is not archived, "newest first by the time each session was started"', async () => {
    const { client, ids, rig } = await account('first', 'second', 'third')
    await client.send('PUT', `/api/v1/sessions/${ids[1]}`, { archived: true })
    // Written to last, and started first.
    await run('UPDATE sessions SET updated_at = ? WHERE id = ?', Date.now() + 9_000, ids[0])
    const page = await savedOf(rig)
    expect(page.sessions.map(({ session_id }) => session_id)).toEqual([ids[2], ids[0]])
    expect(page).not.toHaveProperty('next_cursor')
  })

  it('[D03] says of a session that is in the live list that it is shared, and of any other that it is saved', async () => {
    const { ids, rig } = await account('one', 'two')
    rig.rows.set(String(ids[0]), listedRow(String(ids[0])))
    expect((await savedOf(rig)).sessions.map(({ state }) => state)).toEqual(['saved', 'shared'])
  })

  it('[RF 25] leads from page to page, also over sessions of one moment', async () => {
    const { ids, rig } = await account('a', 'b', 'c', 'd', 'e')
    await run('UPDATE sessions SET created_at = 1002 WHERE id IN (?, ?)', ids[1], ids[3])
    const seen: string[] = []
    for (let cursor: string | undefined, pages = 0; ; pages++) {
      const page = await savedOf(rig, { limit: 2, ...(cursor === undefined ? {} : { cursor }) })
      seen.push(...titlesOf(page))
      cursor = page.next_cursor
      if (cursor === undefined) {
        expect(pages).toBe(2)
        break
      }
    }
    expect(seen).toHaveLength(5)
    expect([...seen].sort()).toEqual(['a', 'b', 'c', 'd', 'e'])
    expect([seen[0], seen[4]]).toEqual(['e', 'a'])
  })

  it('[RF 25] refuses a cursor that no page gave out', async () => {
    expect(await rig.ask({ type: 'list_saved_sessions', cursor: 'here' })).toMatchObject({
      receipt: null,
      result: { type: 'error', code: 'invalid_request' },
    })
  })

  it('"keeps sessions whose title, workspace or ID contains it, ignoring case"', async () => {
    const { ids, rig } = await account('Fix the Parser', 'other', '  ')
    await run(`UPDATE sessions SET workspace = '/home/ada/Compiler' WHERE id = ?`, ids[1])
    await run(`UPDATE sessions SET derived_title = 'Say hello' WHERE id = ?`, ids[2])
    expect(titlesOf(await savedOf(rig, { query: 'PARSER' }))).toEqual(['Fix the Parser'])
    expect(titlesOf(await savedOf(rig, { query: 'compil' }))).toEqual(['other'])
    expect(titlesOf(await savedOf(rig, { query: 'HELLO' }))).toEqual(['Say hello'])
    expect(titlesOf(await savedOf(rig, { query: 'ÜNÏ' }))).toEqual([])
    expect(titlesOf(await savedOf(rig, { query: String(ids[0]).toUpperCase() }))).toEqual(['Fix the Parser'])
    expect(titlesOf(await savedOf(rig, { query: '%' }))).toEqual([])
    // Longer than a pattern may be here (D27).
    expect(titlesOf(await savedOf(rig, { query: 'x'.repeat(200) }))).toEqual([])
  })

  it('shows no session of another user', async () => {
    const { rig } = await account('mine')
    await owner.newSession('not yours')
    expect(titlesOf(await savedOf(rig))).toEqual(['mine'])
  })
})

describe('resume_session', () => {
  const resume = (session_id: string, requestId?: string) =>
    rig.ask({ type: 'resume_session', session_id }, requestId)
  /** A session whose object says these rows, one after the other. */
  const sharing = (...rows: (RemoteSessionInfo | null)[]) => {
    const share = vi.fn(async () => rows.shift() ?? null)
    const delisted = vi.fn(async () => {})
    rig.session = () => ({ share, delisted })
    return { share, delisted }
  }

  it('"A session that is already shared is answered at once"', async () => {
    rig.rows.set('s', listedRow('s'))
    expect(await resume('s')).toEqual({
      receipt: 'applied',
      result: { type: 'session_resumed', session: listedRow('s') },
    })
  })

  it('[D03] lists a saved one, and answers when it can be attached to', async () => {
    const id = await owner.newSession()
    const { share } = sharing(listedRow(id))
    expect(await resume(id)).toEqual({
      receipt: 'applied',
      result: { type: 'session_resumed', session: listedRow(id) },
    })
    expect(share).toHaveBeenCalledWith(owner.userId)
    expect(rig.rows.get(id)).toEqual(listedRow(id))
  })

  it('[D03] one that believes in a registration that ended here is told, and listed under another', async () => {
    const id = await owner.newSession()
    const { delisted } = sharing(listedRow(id, 7), listedRow(id, 8))
    rig.ended.add(`${id} 7`)
    expect(await resume(id)).toMatchObject({ result: { session: { registration_epoch: 8 } } })
    expect(delisted).toHaveBeenCalledWith(owner.userId, 7)
  })

  it('"an unknown ID with not_found; nothing is started": nor for one of another user', async () => {
    const other = await makeClient()
    const { share } = sharing()
    for (const id of ['nobody', '0198c0de-0000-7000-8000-000000000001', await other.newSession()]) {
      const refused = { receipt: 'rejected', result: { type: 'error', code: 'not_found' } }
      expect(await resume(id)).toMatchObject(refused)
    }
    expect(share).not.toHaveBeenCalled()
  })

  it('an archived one is refused with a sentence that says what to do', async () => {
    const id = await owner.newSession()
    await owner.send('PUT', `/api/v1/sessions/${id}`, { archived: true })
    expect(await resume(id)).toMatchObject({
      receipt: 'rejected',
      result: { code: 'invalid_request', message: expect.stringContaining('restore') },
    })
  })

  it('[RF 24] one whose object fails is owner_unavailable with receipt unknown, and the same id opens it later', async () => {
    vi.spyOn(console, 'warn').mockImplementation(() => {})
    const id = await owner.newSession()
    rig.session = () => ({ share: () => Promise.reject(new Error('away')), delisted: async () => {} })
    expect(await resume(id, 'again')).toMatchObject({
      receipt: 'unknown',
      result: { code: 'owner_unavailable' },
    })
    sharing(listedRow(id))
    expect(await resume(id, 'again')).toMatchObject({
      receipt: 'applied',
      result: { type: 'session_resumed' },
    })
  })
})

describe('settings', () => {
  const settings = { harness: 'codex', model: 'gpt-5.5', effort: 'high' }
  const set = (change: Record<string, string | null>, requestId?: string) =>
    rig.ask({ type: 'set_settings', settings: change }, requestId)
  const get = async () => (await rig.ask({ type: 'get_settings' })).result
  beforeEach(async () => {
    await set({ harness: null, model: null, effort: null })
  })

  it('that nobody made are absent', async () => {
    expect(await rig.ask({ type: 'get_settings' })).toEqual({ receipt: null, result: { type: 'settings' } })
  })

  it('"The answer is the complete settings result after the write, with a receipt"', async () => {
    const result = { type: 'settings', ...settings }
    expect(await set(settings)).toEqual({ receipt: 'applied', result })
    expect(await get()).toEqual(result)
  })

  it('"A field that is absent (rather than null) keeps its current value"', async () => {
    await set(settings)
    expect((await set({ effort: 'low' })).result).toEqual({ type: 'settings', ...settings, effort: 'low' })
    expect((await set({ harness: null })).result).toEqual({
      type: 'settings',
      model: 'gpt-5.5',
      effort: 'low',
    })
  })

  it('two devices that change different ones at once lose nothing of each other', async () => {
    await Promise.all([set({ model: 'a/b' }), set({ effort: 'low' })])
    expect(await get()).toEqual({ type: 'settings', model: 'a/b', effort: 'low' })
  })

  it.each(['', ' ', 'x'.repeat(257), '\ud800'])(
    'that are no name are refused and nothing is written: %j',
    async (odd) => {
      await set(settings)
      expect(await set({ model: odd, effort: 'low' })).toMatchObject({
        receipt: 'rejected',
        result: { code: 'invalid_request', message: expect.stringContaining('settings.model') },
      })
      expect(await get()).toEqual({ type: 'settings', ...settings })
    },
  )

  it('[U14] a change that is sent again is not made again', async () => {
    await set({ model: 'a/b' }, 'once')
    await set({ model: 'c/d' })
    expect((await set({ model: 'a/b' }, 'once')).result).toEqual({ type: 'settings', model: 'a/b' })
    expect(await get()).toEqual({ type: 'settings', model: 'c/d' })
  })

  it('[U15] that D1 did not take are `internal` with receipt unknown, and the same id makes the change', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => {})
    const broken = failStatements(/^update "users"/i)
    expect(await set({ model: 'a/b' }, 'faulty')).toMatchObject({
      receipt: 'unknown',
      result: { code: 'internal' },
    })
    broken.mockRestore()
    expect(await rig.within((host) => host.status('d1', 'faulty'))).toEqual({ receipt: 'received' })
    await vi.waitFor(async () => expect(await get()).toEqual({ type: 'settings', model: 'a/b' }))
  })
})

describe('pins and settled threads', () => {
  it('"They work for a saved thread as well as a shared one", in both directions and twice', async () => {
    const session_id = await owner.newSession()
    const marked = async (type: 'pin_thread' | 'unpin_thread' | 'settle_thread' | 'unsettle_thread') => {
      const { receipt, result } = await rig.ask({ type, session_id })
      expect(receipt).toBe('applied')
      return result
    }
    expect(await marked('pin_thread')).toEqual({ type: 'thread_pinned', session_id, pinned: true })
    expect(await marked('pin_thread')).toEqual({ type: 'thread_pinned', session_id, pinned: true })
    expect(await marked('settle_thread')).toEqual({ type: 'thread_settled', session_id, settled: true })
    const listed = async () => {
      const { sessions } = await parsed(await owner.send('GET', '/api/v1/sessions'), ListSessionsResponse)
      return sessions.find(({ id }) => id === session_id)
    }
    expect(await listed()).toMatchObject({ pinned: true, settled: true })
    expect(await marked('unpin_thread')).toEqual({ type: 'thread_pinned', session_id, pinned: false })
    expect(await marked('unsettle_thread')).toEqual({ type: 'thread_settled', session_id, settled: false })
    expect(await listed()).not.toHaveProperty('pinned')
    expect(await listed()).not.toHaveProperty('settled')
  })

  it('of an unknown session, or of another user, are refused and change nothing', async () => {
    const other = await makeClient()
    const foreign = await other.newSession()
    for (const session_id of ['nobody', foreign])
      expect(await rig.ask({ type: 'pin_thread', session_id })).toMatchObject({
        receipt: 'rejected',
        result: { code: 'invalid_request' },
      })
    const { sessions } = await parsed(await other.send('GET', '/api/v1/sessions'), ListSessionsResponse)
    expect(sessions[0]).not.toHaveProperty('pinned')
  })
})

describe('what is not served', () => {
  it('[D37] is unsupported_operation, with a receipt where it would have changed something, and none is kept', async () => {
    const refused = { type: 'error', code: 'unsupported_operation' }
    expect(await rig.ask({ type: 'create_session' }, 'create')).toMatchObject({
      receipt: 'rejected',
      result: refused,
    })
    expect(await rig.within((host) => host.status('d1', 'create'))).toBeNull()
    expect(await rig.ask({ type: 'list_directories' })).toMatchObject({ receipt: null, result: refused })
  })

  it('every capability that is listed is served', async () => {
    const capabilities = await rig.within((host) => host.capabilities())
    expect(capabilities).toEqual([
      'saved_sessions',
      'usage_summary',
      'settings_get',
      'settings_set',
      'thread_pin',
      'thread_unpin',
      'thread_settle',
      'thread_unsettle',
    ])
  })
})

describe('D1 out of order', () => {
  it('is `internal` for what only reads', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => {})
    failStatements(/^select/i)
    expect(await rig.ask({ type: 'get_settings' })).toMatchObject({
      receipt: null,
      result: { type: 'error', code: 'internal' },
    })
  })
})
