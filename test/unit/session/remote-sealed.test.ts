import { describe, expect, it } from 'vitest'
import { callsRef, planRef } from '../../../src/protocol/execution/content-refs.ts'
import { call } from '../storage/contract/builders.ts'
import { RemoteSession } from './remote-session.ts'

const LOCKED = 'This is encrypted: it can be read where the key kf2_abc is.'

/** As a sealed session stores its rows: without texts, and without what calls were given. */
function makeSealed(): RemoteSession {
  const session = new RemoteSession()
  session.keyId = 'kf2_abc'
  return session
    .begins('r', '')
    .answers('', [
      call('c1', { name: 'shell', arguments: {} }),
      call('c2', { name: '', arguments: {}, answer: { result: '', isError: false, refused: false } }),
      call('c3', { name: 'read_file', arguments: {} }),
      call('c4', { name: 'read_file', arguments: {} }),
    ])
    .settles('c3', '')
    .settles('c4', 'Cancelled by the user.', true)
}

describe('a sealed session', () => {
  it('[D47] shows one sentence in place of each text, and the key that it needs', () => {
    const { transcript } = makeSealed().snapshot()
    const sealed = { key_id: 'kf2_abc' }
    expect(transcript.map(({ role, content, sealed: by }) => [role, content.text, by])).toEqual([
      ['user', LOCKED, sealed],
      ['assistant', LOCKED, sealed],
      // It waits, so there is nothing to lock.
      ['tool', '', undefined],
      ['tool', LOCKED, sealed],
      ['tool', LOCKED, sealed],
      // The router's own note.
      ['tool', 'Cancelled by the user.', undefined],
    ])
    expect(transcript[0]?.content).toEqual({
      text: LOCKED,
      truncated: false,
      offset: 0,
      total_bytes: LOCKED.length,
      content_id: 'message:h0:m1',
    })
  })

  it('[U35] shows no blank for the name of a tool that is sealed, and no detail of one', () => {
    const { transcript, turn } = makeSealed().snapshot()
    expect(transcript.flatMap(({ tool }) => (tool === undefined ? [] : [[tool.name, tool.detail]]))).toEqual([
      ['shell', undefined],
      ['sealed', undefined],
      ['read_file', undefined],
      ['read_file', undefined],
    ])
    expect(turn?.tools.map(({ name, detail }) => [name, detail])).toContainEqual(['sealed', undefined])
  })

  it('[D47] gives the same sentence for what is asked for whole', () => {
    const session = makeSealed()
    expect(session.whole('message:h0:m1')).toBe(LOCKED)
    expect(session.whole('message:h0:m2.1')).toBe(LOCKED)
    expect(session.whole('message:h0:m2.3')).toBe('Cancelled by the user.')
    expect(session.whole('arguments:h0:m2.0')).toBe(LOCKED)
    expect(session.view.content('message:h0:m9', 0, 100)).toMatchObject({ code: 'not_found' })
  })

  const waiting = () =>
    makeSealed().pauses({
      phase: {
        k: 'AwaitingTool',
        calls: [
          { callId: 'c1', toolName: 'shell', requiresApproval: 'ask', recordsDiff: false, settled: false },
          {
            callId: 'c3',
            toolName: 'ask_user',
            requiresApproval: 'allow',
            recordsDiff: false,
            settled: false,
            questions: [{ id: 'q', answer: null }],
          },
        ],
        batchId: 'b',
        resume: 'NextTurn',
      },
    })

  it('[D47] shows what waits from memory, and when that is gone that it is locked', () => {
    const session = waiting()
    expect(session.view.batch()?.actions[0]).toMatchObject({ tool_name: 'shell', details: { text: LOCKED } })
    expect(session.view.question()).toMatchObject({ question_id: 'q', text: LOCKED, options: [] })
    session.held.set(
      callsRef('a2'),
      JSON.stringify({
        version: 1,
        calls: [
          { id: 'c1', arguments: { command: 'ls' } },
          {
            id: 'c3',
            arguments: { questions: [{ header: 'H', text: 'Go on?', options: [{ label: 'yes' }] }] },
          },
        ],
      }),
    )
    expect(session.view.batch()?.actions[0]).toMatchObject({
      summary: 'shell · ls',
      details: { text: '{"command":"ls"}' },
    })
    expect(session.whole('approval:b:0')).toBe('{"command":"ls"}')
    expect(session.view.question()).toMatchObject({ text: 'Go on?', options: [{ label: 'yes' }] })
  })

  it('[D47] shows a plan from memory, and when that is gone that it is locked', () => {
    const session = makeSealed().pauses({
      phase: {
        k: 'AwaitingApproval',
        approvalId: 'g',
        kind: 'plan',
        planId: 'p',
        decided: null,
        resume: 'NextTurn',
      },
    })
    session.sql.rows(
      `INSERT INTO plans (id, content, status, created_at, updated_at, version) VALUES ('p', '', 'draft', 0, 0, 1)`,
    )
    expect(session.view.batch()?.actions[0]?.details.text).toBe(LOCKED)
    session.held.set(planRef('p'), 'First this.')
    expect(session.view.batch()?.actions[0]).toMatchObject({ summary: 'plan · First this.' })
  })
})
