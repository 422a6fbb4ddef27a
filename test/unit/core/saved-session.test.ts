import { expect, test } from 'vitest'
import { fittingEntries, parseCursor, savedSession, toCursor } from '../../../src/core/saved-session.ts'
import { SavedSession } from '../../../src/protocol/remote/host-results.ts'
import { MAX_PAYLOAD_BYTES } from '../../../src/protocol/remote/limits.ts'

const ID = '0198c0de-0000-7000-8000-000000000001'
const facts = (fields: object = {}) => ({
  sessionId: ID,
  title: 'A title',
  derivedTitle: 'what was said',
  workspace: '/home/ada/code',
  updatedAtMs: Date.UTC(2030, 0, 1),
  messageCount: 4,
  ...fields,
})

test('[RF 25] an entry names the session, its folder as project and workspace, its size and its state', () => {
  const entry = savedSession(facts(), false)
  expect(entry).toEqual({
    session_id: ID,
    title: 'A title',
    project: '/home/ada/code',
    workspace: '/home/ada/code',
    updated_at: '2030-01-01T00:00:00.000Z',
    message_count: 4,
    state: 'saved',
  })
  expect(SavedSession.parse(entry)).toEqual(entry)
  expect(savedSession(facts(), true).state).toBe('shared')
})

test('[RF 25] a session without a title shows what was said first, and "(no prompt)" before that', () => {
  expect(savedSession(facts({ title: ' \n' }), false).title).toBe('what was said')
  expect(savedSession(facts({ title: null, derivedTitle: null }), false).title).toBe('(no prompt)')
})

test('"workspace (absent for sessions that predate workspace recording)", and the project with it', () => {
  const entry = savedSession(facts({ workspace: null }), false)
  expect(entry).not.toHaveProperty('workspace')
  expect(entry).not.toHaveProperty('project')
})

test('[RF 1] a page of the longest entries ends before it is too large for a frame', () => {
  const entries = Array.from({ length: 100 }, () =>
    savedSession(facts({ title: 'ä'.repeat(4000), workspace: `/${'x'.repeat(6000)}` }), false),
  )
  const shown = fittingEntries(entries)
  const bytes = new TextEncoder().encode(JSON.stringify(entries.slice(0, shown))).length
  expect(bytes).toBeLessThanOrEqual(MAX_PAYLOAD_BYTES + 1)
  expect(shown).toBeGreaterThan(20)
  expect(shown).toBeLessThan(100)
  expect(fittingEntries(entries.slice(0, 5))).toBe(5)
})

test('[RF 25] a cursor leads to where it was made, and nothing else is one', () => {
  const end = { createdAtMs: 1_893_456_000_000, sessionId: ID }
  expect(parseCursor(toCursor(end))).toEqual(end)
  for (const odd of ['', 'x', ID, `1.${ID}x`, `-1.${ID}`, "1.' OR 1=1 --"])
    expect(parseCursor(odd)).toBeNull()
})
