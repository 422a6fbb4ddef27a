import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { frameFaults } from '../../support/remote-device/frame-shapes.ts'
import type { Fields } from '../../support/remote-device/shapes.ts'

const FRAMES = path.join(import.meta.dirname, '../../../golden/remote-v1/frames')
const golden = (name: string): Fields => JSON.parse(readFileSync(path.join(FRAMES, name), 'utf8'))
const faultsOf = (frame: Fields) =>
  frameFaults(frame, 'session', () => new Set(['submit_prompt', 'list_sessions']))

/** Golden frames that show what version 1 knows and this router never sends (D37), or that are no whole snapshot. */
const NEVER_SENT = [
  'event_resync_required_history_changed.json',
  'event_session_closed_device_revoked.json',
  'event_session_closed_session_changed.json',
  'event_snapshot.json',
  'event_subagent_updated.json',
  'event_turn_finished_unnamed.json',
  'event_turn_started_by_delegate.json',
  'response_attached_resync_gateway_restarted.json',
  'response_attached_resync_lagged.json',
  'response_attached_resync_sequence_gap.json',
  'response_error_internal.json',
  'response_error_open_elsewhere.json',
  'response_error_receipt_capacity.json',
  'response_error_unauthorized.json',
  'response_history_start.json',
  'response_saved_sessions.json',
  'response_sessions.json',
  'response_sessions_empty.json',
  'sessions_empty.json',
  // Its live response is told shorter than it is.
  'response_attached.json',
]

describe('what a device expects of a frame', () => {
  it('[D37] is what the golden frames show, and none of the reserved ones', () => {
    const refused = readdirSync(FRAMES).filter((name) => faultsOf(golden(name)).length > 0)
    expect(refused.sort()).toEqual([...NEVER_SENT].sort())
  })

  it('lets no text pass that is longer, or said to be another size, than the contract allows', () => {
    const delta = golden('event_tool_finished.json')
    const withContent = (content: object) => ({
      ...delta,
      event: { type: 'tool_finished', id: 'a', success: true, pending: false, content },
    })
    const fits = { text: 'äb', truncated: true, offset: 0, total_bytes: 9 }
    expect(faultsOf(withContent(fits))).toEqual([])
    const wrong = [
      { ...fits, truncated: false },
      { ...fits, total_bytes: 3 },
      { ...fits, total_bytes: 2 },
      { ...fits, offset: 7 },
      { ...fits, text: 'x'.repeat(4097), total_bytes: 5000 },
    ]
    for (const content of wrong) expect(faultsOf(withContent(content))).not.toEqual([])
  })
})
