/** What a session has read of a private file on a local model, asked about on a remote one. */

import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { PreviewResponse } from '../../src/protocol/execution/preview.ts'
import type { CompletedTurn } from '../../src/protocol/execution/turn.ts'
import { type BodyChanges, makeExecute, routeTo } from '../support/workers/bodies.ts'
import { OLLAMA_BASE_URL } from '../support/workers/deployment.ts'
import { type Client, makeClient, parsed, turnAs } from '../support/workers/router.ts'
import { type Reply, scriptModels } from '../support/workers/scripted-models.ts'
import { crash } from '../support/workers/session-object.ts'

const models = scriptModels()

let client: Client
let id: string
beforeAll(async () => {
  client = await makeClient()
})
beforeEach(async () => {
  id = await client.newSession()
})

const KEY = { 'X-Smista-Provider-Cloud-Api-Key': 'k' }
const SECRET = 'hunter2-of-the-env-file'
const REASON = 'only local models may see it: `.env` matches `**/.env` of restricted_paths'

type Policy = NonNullable<BodyChanges['policy']>
type Privacy = NonNullable<Policy['privacy']>
const PRIVATE: Privacy = { restricted_paths: ['**/.env'], remote: { mode: 'allow' } }
const OPEN: Privacy = { restricted_paths: [], remote: { mode: 'allow' } }
const onLocal = (privacy: Privacy): Policy => ({ ...routeTo('ollama/small'), privacy })
const onRemote = (privacy: Privacy): Policy => ({
  ...routeTo('openai-compat:cloud/big'),
  privacy,
})

const READS: Reply = { calls: [{ name: 'read_file', arguments: { path: '.env' } }] }
const TELLS: Reply = { text: [`The password is ${SECRET}.`] }

/** A run in which the local model reads the file, says what it holds, and makes the calls given on the way. */
async function readOnLocal(privacy: Privacy, then: Reply[] = [TELLS], session = id): Promise<void> {
  models.script(READS, ...then)
  const body = makeExecute('which password is set?', { policy: onLocal(privacy) })
  const paused = await turnAs(await client.execute(session, body), 'awaiting_tool')
  const results = paused.data.tool_requests.map(({ call_id }) => ({ call_id, content: `PASSWORD=${SECRET}` }))
  await turnAs(await client.proceed(session, { type: 'tool_results', data: { results } }), 'completed')
  expect(JSON.stringify(models.chats.at(-1)), 'the local model was shown it').toContain(SECRET)
}

/** A run on the remote model afterwards: what it came to, and everything that reached the remote provider. */
async function askRemote(
  privacy: Privacy,
  changes: BodyChanges = {},
  session = id,
): Promise<{ turn: CompletedTurn; sent: string }> {
  models.script({ text: ['I do not know.'] })
  const before = models.chats.length
  const body = makeExecute('and what did you find?', { policy: onRemote(privacy), ...changes })
  const previewed = await client.send('POST', `/api/v1/sessions/${session}/preview`, body, KEY)
  const preview = await parsed(previewed, PreviewResponse)
  const { data: turn } = await turnAs(await client.execute(session, body, KEY), 'completed')
  expect(turn.routing).toMatchObject({ provider: 'openai-compat:cloud', fallback_used: false })
  // Whoever looked before knew what would stay out, and why.
  expect(preview.excluded_context).toEqual(turn.context.excluded)
  expect(preview.exclusions).toEqual(turn.context.exclusions)
  const chats = models.chats.slice(before).filter(({ origin }) => origin !== OLLAMA_BASE_URL)
  expect(chats).toHaveLength(1)
  return { turn, sent: JSON.stringify(chats) }
}

const withheld = (count: number) =>
  count === 1
    ? '1 earlier message (only local models may see it)'
    : `${count} earlier messages (only local models may see them)`

describe('[U37][EC 9] what a local model read of a private file does not reach a remote one', () => {
  it('in a later run of the session, which says what it leaves out and why', async () => {
    await readOnLocal(PRIVATE)
    const { turn, sent } = await askRemote(PRIVATE)
    expect(sent).not.toContain(SECRET)
    expect(sent).not.toContain('PASSWORD')
    expect(sent, 'what the user said is ordinary history').toContain('which password is set?')
    expect(turn.context).toEqual({
      included: ['1 earlier message'],
      excluded: [withheld(2)],
      exclusions: [{ item: withheld(2), reason: REASON }],
    })
  })

  it('after the session’s object was lost in between', async () => {
    await readOnLocal(PRIVATE)
    await crash(id)
    const { turn, sent } = await askRemote(PRIVATE)
    expect(sent).not.toContain(SECRET)
    expect(turn.context.excluded).toEqual([withheld(2)])
  })

  it('when it is the remote model’s turn twice: what it was not told it cannot pass on', async () => {
    await readOnLocal(PRIVATE)
    await askRemote(PRIVATE)
    const { turn, sent } = await askRemote(PRIVATE)
    expect(sent).not.toContain(SECRET)
    expect(sent, 'its own answer is ordinary history').toContain('I do not know.')
    expect(turn.context.excluded).toEqual([withheld(2)])
  })

  it('when the policy became stricter after it was read', async () => {
    await readOnLocal(OPEN)
    const { turn, sent } = await askRemote(PRIVATE)
    expect(sent).not.toContain(SECRET)
    expect(turn.context.exclusions).toEqual([{ item: withheld(2), reason: REASON }])
  })

  it('when the policy became stricter after a model had seen it attached, and had told another', async () => {
    const attachments = {
      files: [{ path: '.env', content: `PASSWORD=${SECRET}`, content_hash: 'sha256:0', required: false }],
    }
    models.script({ text: ['I see.'] })
    const first = makeExecute('look at this', { policy: onLocal(OPEN), attachments })
    await turnAs(await client.execute(id, first), 'completed')
    // The second run holds the file no more, but the first answer; it knows what that one knew.
    models.script(TELLS)
    await turnAs(await client.execute(id, makeExecute('repeat it', { policy: onLocal(OPEN) })), 'completed')
    const { turn, sent } = await askRemote(PRIVATE)
    expect(sent).not.toContain(SECRET)
    expect(turn.context.exclusions).toEqual([{ item: withheld(2), reason: REASON }])
  })

  it('when a command read it, another run repeated it, and the policy became stricter only then', async () => {
    models.script({ calls: [{ name: 'shell', arguments: { command: 'cat .env' } }] }, { text: ['I see.'] })
    const policy = onLocal(OPEN)
    const paused = await turnAs(await client.execute(id, makeExecute('look', { policy })), 'awaiting_tool')
    const results = paused.data.tool_requests.map(({ call_id }) => ({
      call_id,
      content: `PASSWORD=${SECRET}`,
    }))
    await turnAs(await client.proceed(id, { type: 'tool_results', data: { results } }), 'completed')
    models.script(TELLS)
    await turnAs(await client.execute(id, makeExecute('repeat it', { policy })), 'completed')
    const { turn, sent } = await askRemote(PRIVATE)
    expect(sent).not.toContain(SECRET)
    expect(turn.context.exclusions).toEqual([{ item: withheld(3), reason: REASON }])
  })

  it('when it stood in a diff that names no file, under a policy that knew of no private one', async () => {
    models.script(TELLS)
    const workspace = { git_diff: `@@ -1 +1 @@\n-old\n+PASSWORD=${SECRET}\n` }
    await turnAs(
      await client.execute(id, makeExecute('review it', { policy: onLocal(OPEN), workspace })),
      'completed',
    )
    const { turn, sent } = await askRemote(PRIVATE)
    expect(sent).not.toContain(SECRET)
    expect(turn.context.excluded).toEqual([withheld(1)])
  })

  it('and does where nothing says that the file is private', async () => {
    await readOnLocal(OPEN)
    const { turn, sent } = await askRemote(OPEN)
    expect(sent).toContain(SECRET)
    expect(turn.context).toEqual({ included: ['3 earlier messages'], excluded: [] })
  })
})

describe('[U37][EC 16] a fact that a local model remembered of it', () => {
  const remembers = (scope: 'user' | 'session'): Reply => ({
    calls: [{ name: 'memory', arguments: { op: 'record', scope, key: 'password', value: SECRET } }],
  })
  const MEMORY = {
    item: 'memory password',
    reason: 'only local models may see it: it was recorded for local models',
  }

  it.each(['user', 'session'] as const)('for the %s is told to local models alone', async (scope) => {
    const own = await makeClient()
    const session = await own.newSession()
    const previous = client
    client = own
    try {
      await readOnLocal(PRIVATE, [remembers(scope), TELLS], session)
      const { turn, sent } = await askRemote(PRIVATE, {}, session)
      expect(sent).not.toContain(SECRET)
      expect(turn.context.exclusions).toContainEqual(MEMORY)

      const other = await own.newSession()
      const elsewhere = await askRemote(OPEN, {}, other)
      expect(elsewhere.sent).not.toContain(SECRET)
      expect(elsewhere.turn.context.exclusions ?? []).toEqual(scope === 'user' ? [MEMORY] : [])

      models.script({ text: ['yes'] })
      await turnAs(
        await own.execute(session, makeExecute('still there?', { policy: onLocal(PRIVATE) })),
        'completed',
      )
      expect(models.chats.at(-1)?.messages[0]?.content).toContain(`password: ${SECRET}`)
    } finally {
      client = previous
    }
  })
})

describe('[U37][EC 12.5] a private skill', () => {
  const skill = {
    name: 'deploy',
    content: `# How to deploy\nUse the password ${SECRET}.`,
    path: '.agents/skills/deploy/SKILL.md',
  }
  const privacy: Privacy = { restricted_paths: ['.agents/skills/deploy/**'], remote: { mode: 'allow' } }
  const reason =
    'only local models may see it: `.agents/skills/deploy/SKILL.md` matches `.agents/skills/deploy/**` of restricted_paths'

  it('is neither shown nor offered to a remote model', async () => {
    const { turn, sent } = await askRemote(privacy, { attachments: { available_skills: [skill] } })
    expect(sent).not.toContain(SECRET)
    expect(sent).not.toContain('How to deploy')
    expect(models.chats.at(-1)?.tools).not.toContain('deploy')
    expect(turn.context.exclusions).toEqual([{ item: 'skill deploy', reason }])
    expect(models.chats.at(-1)?.tools, 'others are').toContain('read_file')
  })

  it('is private without a path as well, by where skills are kept', async () => {
    const { path: _, ...unplaced } = skill
    const { sent } = await askRemote(privacy, { attachments: { available_skills: [unplaced] } })
    expect(sent).not.toContain(SECRET)
    expect(models.chats.at(-1)?.tools).not.toContain('deploy')
  })

  it('is of use to a local model, and what that one was told stays there', async () => {
    models.script({ calls: [{ name: 'deploy', arguments: {} }] }, TELLS)
    const body = makeExecute('deploy it', {
      policy: onLocal(privacy),
      attachments: { available_skills: [skill] },
    })
    await turnAs(await client.execute(id, body), 'completed')
    expect(models.chats[0]?.tools).toContain('deploy')
    expect(JSON.stringify(models.chats[1])).toContain(SECRET)
    const { turn, sent } = await askRemote(privacy)
    expect(sent).not.toContain(SECRET)
    expect(turn.context.excluded).toEqual([withheld(2)])
  })

  it('that the user invoked keeps the turn from remote models', async () => {
    models.script({ text: ['done'] })
    const body = makeExecute('deploy it', {
      policy: { ...routeTo('openai-compat:cloud/big', 'ollama/small'), privacy },
      attachments: { invoked_skills: [skill] },
    })
    const { data } = await turnAs(await client.execute(id, body, KEY), 'completed')
    expect(data.routing).toMatchObject({ provider: 'ollama', fallback_used: true })
    expect(models.chats.map(({ origin }) => origin)).toEqual([OLLAMA_BASE_URL])
  })
})

describe('[U37][EC 9] a diff of a private file and another', () => {
  const part = (path: string, text: string) =>
    [
      `diff --git a/${path} b/${path}`,
      'index 1111111..2222222 100644',
      `--- a/${path}`,
      `+++ b/${path}`,
      '@@ -1 +1 @@',
      '-old',
      `+${text}`,
    ].join('\n')
  const PORT = 'export const port = 8080'
  const workspace = { git_diff: `${part('.env', SECRET)}\n${part('src/port.ts', PORT)}\n` }

  it('is sent without the private file’s part, and says so', async () => {
    const { turn, sent } = await askRemote(PRIVATE, { workspace })
    expect(sent).not.toContain(SECRET)
    expect(sent).not.toContain('.env')
    expect(sent).toContain(PORT)
    expect(turn.context.included).toEqual(['current git diff'])
    expect(turn.context.exclusions).toHaveLength(1)
    expect(turn.context.exclusions?.[0]).toMatchObject({ reason: REASON })
    expect(turn.context.exclusions?.[0]?.item).toMatch(/git diff/)
  })

  it('is shown whole to a local model', async () => {
    models.script({ text: ['ok'] })
    const body = makeExecute('review it', { policy: onLocal(PRIVATE), workspace })
    await turnAs(await client.execute(id, body), 'completed')
    expect(JSON.stringify(models.chats)).toContain(SECRET)
    expect(JSON.stringify(models.chats)).toContain(PORT)
    const { sent } = await askRemote(PRIVATE)
    expect(sent).not.toContain(SECRET)
  })
})
