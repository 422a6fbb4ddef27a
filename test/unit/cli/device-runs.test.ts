import { describe, expect, test } from 'vitest'
import { DeviceRuns } from '../../../src/cli/devices/device-runs.ts'
import type { RemoteEvent } from '../../../src/protocol/remote/events.ts'
import { scriptedIo } from '../../support/node/scripted-io.ts'

const started = (turnId: string, text: string, truncated = false): RemoteEvent => ({
  type: 'turn_started',
  turn_id: turnId,
  prompt: { text, truncated, offset: 0, total_bytes: text.length },
})

function rig() {
  const io = scriptedIo({ isTty: true })
  const runs = new DeviceRuns(io)
  const hear = (...events: RemoteEvent[]) => {
    for (const event of events) runs.heard({ k: 'event', event })
  }
  /** What stands on the screen once the prompt has shown; `typing` happens while it waits. */
  const prompt = async (typing: () => void = () => undefined) => {
    await runs.during(async () => typing())
    return io.stderr
  }
  return { runs, hear, prompt }
}

describe('[U10] a run that a device starts', () => {
  test('shows in one line above the prompt, and so does its end', async () => {
    const { hear, prompt } = rig()
    const shown = await prompt(() =>
      hear(started('turn:1', 'tidy\nup'), { type: 'turn_finished', turn_id: 'turn:1' }),
    )
    expect(shown).toBe('a device started: tidy up\nwhat the device started has ended: completed\n')
  })

  test.each([
    [{ type: 'turn_cancelled', turn_id: 'turn:1' } as const, 'cancelled'],
    [
      {
        type: 'turn_finished',
        turn_id: 'turn:1',
        timing: { turn_id: 'turn:1', outcome: 'failed' },
      } as const,
      'failed',
    ],
  ])('says how it ended', async (end, told) => {
    const { hear, prompt } = rig()
    expect(await prompt(() => hear(started('turn:1', 'x'), end))).toContain(`has ended: ${told}\n`)
  })

  test('while this machine writes waits for the prompt', async () => {
    const { hear, prompt } = rig()
    hear(started('turn:1', 'x'))
    expect(await prompt()).toBe('a device started: x\n')
  })

  test('is not one of our own', async () => {
    const { runs, hear, prompt } = rig()
    runs.expect('refused')
    runs.expect('ours, and long')
    hear(started('turn:1', 'ours, and', true), { type: 'turn_finished', turn_id: 'turn:1' })
    expect(await prompt()).toBe('')
    // The same words again are a device's.
    expect(await prompt(() => hear(started('turn:2', 'ours, and long')))).toBe(
      'a device started: ours, and long\n',
    )
  })
})
