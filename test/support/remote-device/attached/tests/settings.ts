import { expect } from 'vitest'
import { fieldsOf, listOfFields } from '../items.ts'
import type { AttachTest } from './attach-test.ts'

/** "Session model and reasoning controls", "Question cancellation and remote commands". */
export const SETTINGS: readonly AttachTest[] = [
  {
    name: '[D09, RF 20] settings offer auto and the models of the policy; a change is a snapshot for everyone',
    covers: ['operation:set_session_settings', 'result:session_settings_updated', 'event:snapshot'],
    run: async (stage) => {
      const { device, session } = await stage.attached()
      const other = await stage.follower(session)
      const settings = fieldsOf(device.view(session).settings)
      expect(settings).toMatchObject({
        selected_model: 'auto',
        reasoning_effort: 'default',
        can_change: true,
      })
      expect(listOfFields(settings.models).map(({ id }) => id)).toEqual(['auto', stage.world.model])
      const change = { type: 'set_session_settings', model: stage.world.model, reasoning_effort: 'default' }
      const { result, receipt } = await device.on(session, change)
      expect(receipt).toBe('applied')
      expect(result).toMatchObject({
        type: 'session_settings_updated',
        settings: { selected_model: stage.world.model, can_change: true },
      })
      const view = await other.until(
        session,
        (one) => one.settings?.selected_model === stage.world.model,
        'the change',
      )
      expect(view.settings).toEqual(result.settings)
    },
  },
  {
    name: '[RF 20] an unknown model or effort is invalid_request; while something runs a change is busy',
    covers: ['error:invalid_request', 'error:busy'],
    run: async (stage) => {
      const { device, session } = await stage.attached()
      for (const change of [
        { model: 'no/such', reasoning_effort: 'default' },
        { model: 'auto', reasoning_effort: 'extreme' },
      ])
        expect(await device.on(session, { type: 'set_session_settings', ...change })).toMatchObject({
          receipt: 'rejected',
          result: { code: 'invalid_request' },
        })
      const streaming = await stage.streaming()
      expect(streaming.device.view(streaming.session).settings?.can_change).toBe(false)
      const change = { type: 'set_session_settings', model: 'auto', reasoning_effort: 'default' }
      expect(await streaming.device.on(streaming.session, change)).toMatchObject({
        receipt: 'rejected',
        result: { code: 'busy' },
      })
      streaming.hold.release()
      await streaming.running
      await streaming.device.until(
        streaming.session,
        ({ settings }) => settings?.can_change === true,
        'the end',
      )
    },
  },
  {
    name: '[RF 21] each command answers under its own name, and nothing of it enters the transcript',
    covers: ['operation:execute_command', 'result:command_executed'],
    run: async (stage) => {
      const { device, session } = await stage.attached()
      const plain = [
        '/help',
        '/status',
        '/info',
        '/about',
        '/usage',
        '/perf',
        '/context',
        '/tasks',
        '/mcp',
        '/model',
        '/effort',
      ]
      for (const command of plain) {
        const { result, receipt } = await device.on(session, {
          type: 'execute_command',
          command: ` ${command.toUpperCase()} `,
        })
        expect(receipt).toBe('applied')
        expect(result).toMatchObject({ type: 'command_executed', command })
        expect(String(result.output).length).toBeGreaterThan(0)
      }
      const commands = [`/model ${stage.world.model}`, '/model auto', '/effort default', '/effort off']
      for (const command of commands)
        expect(await device.on(session, { type: 'execute_command', command })).toMatchObject({
          receipt: 'applied',
        })
      await device.drained()
      expect(device.view(session).items).toHaveLength(2)
    },
  },
  {
    name: '[RF 21] other commands, and arguments where none belong, are unsupported_operation; a bad title is invalid_request',
    covers: ['error:unsupported_operation', 'error:invalid_request'],
    run: async (stage) => {
      const { device, session } = await stage.attached()
      for (const command of [
        '',
        'help',
        '/new',
        '/clear',
        '/compact',
        '/yolo',
        '/help me',
        '/status now',
        '/',
      ])
        expect(await device.on(session, { type: 'execute_command', command })).toMatchObject({
          receipt: 'rejected',
          result: { code: 'unsupported_operation' },
        })
      for (const command of [
        '/title',
        `/title ${'x'.repeat(513)}`,
        '/title a\u0007b',
        '/model no/such',
        '/effort extreme',
      ])
        expect((await device.on(session, { type: 'execute_command', command })).result).toMatchObject({
          code: expect.stringMatching(/^(invalid_request|unsupported_operation)$/),
        })
    },
  },
  {
    name: '[RF 21] /title and its alias name the session everywhere',
    covers: ['result:command_executed'],
    run: async (stage) => {
      const { device, session } = await stage.attached()
      for (const [command, title] of [
        ['/title', 'A new name'],
        ['/change_title', 'Another: "name"'],
      ]) {
        expect(
          await device.on(session, { type: 'execute_command', command: `${command} ${title}` }),
        ).toMatchObject({
          receipt: 'applied',
          result: { command },
        })
        const detail = await stage.must('GET', `/sessions/${session.id}`)
        expect(fieldsOf(detail.session)).toMatchObject({ title })
        const { result } = await device.attach(session)
        expect(fieldsOf(fieldsOf(result.snapshot).session).title).toBe(title)
      }
    },
  },
]
