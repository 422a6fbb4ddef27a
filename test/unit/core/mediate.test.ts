import { describe, expect, test } from 'vitest'
import { type MediatedCall, type ModelCall, mediate } from '../../../src/core/mediate.ts'
import type { PermissionMap } from '../../../src/core/permissions.ts'
import { turnTools } from '../../../src/core/tools.ts'
import { makeRequest, must } from '../../support/core/builders.ts'

const call = (
  name: string,
  args: Record<string, unknown> = {},
  fields: Partial<ModelCall> = {},
): ModelCall => ({
  name,
  arguments: args,
  ...fields,
})

function judge(
  calls: ModelCall[],
  { permissions = {}, planning = false }: { permissions?: PermissionMap; planning?: boolean } = {},
): MediatedCall[] {
  const attachments = makeRequest({
    attachments: { available_skills: [{ name: 'deploy', content: 'Run it.' }] },
  }).attachments
  return mediate(
    calls,
    must(turnTools({ attachments, permissions, planning, noNetwork: false, isPrivateSkill: () => false })),
    permissions,
  )
}

/** What becomes of one call, in short. */
const outcome = (one: ModelCall, given: Parameters<typeof judge>[1] = {}): string => {
  const [judged] = judge([one], given)
  if (judged === undefined) throw new Error('a call got lost')
  if (judged.to === 'client') return `client: ${judged.requiresApproval}`
  return judged.refused ? `refused: ${judged.result}` : `answered: ${judged.result}`
}

describe('[EC 12.3] what becomes of a call', () => {
  const read = call('read_file', { path: 'a.ts' })
  test.each<[string, ModelCall, Parameters<typeof judge>[1], string]>([
    ['allowed', read, { permissions: { read_file: 'allow' } }, 'client: allow'],
    ['to be asked for', read, { permissions: { read_file: 'ask' } }, 'client: ask'],
    ['unset', read, {}, 'client: ask'],
    [
      'denied, so not offered',
      read,
      { permissions: { file_read: 'deny' } },
      'refused: The tool `read_file` is not available. Available: write_file, edit_file, shell, memory, deploy.',
    ],
    [
      'unknown',
      call('teleport'),
      {},
      'refused: The tool `teleport` is not available. Available: read_file, write_file, edit_file, shell, memory, deploy.',
    ],
    [
      'changing a file while planning',
      call('write_file', { path: 'a', content: 'b' }),
      { planning: true },
      'refused: The tool `write_file` is not available. Available: read_file, shell, memory, deploy.',
    ],
    ['a shell command while planning', call('shell', { command: 'ls' }), { planning: true }, 'client: ask'],
    [
      'without an argument',
      call('edit_file', { path: 'a', new: 'x' }),
      {},
      'refused: Missing arguments: old.',
    ],
    ['without any argument', call('shell'), {}, 'refused: Missing arguments: command.'],
    [
      'with arguments that are no object',
      call('shell', {}, { malformedArguments: '["ls"' }),
      {},
      'refused: The arguments are not a JSON object. They came as: ["ls"',
    ],
    [
      '[EC 12.2] git, denied',
      call('shell', { command: 'git push' }),
      { permissions: { shell: 'allow', git: 'deny' } },
      'refused: The policy denies this call.',
    ],
    [
      '[EC 12.2] git, to be asked for',
      call('shell', { command: 'git push' }),
      { permissions: { shell: 'allow', git: 'ask' } },
      'client: ask',
    ],
    ['[EC 12.5] a skill', call('deploy'), {}, 'answered: Run it.'],
  ])('%s', (_, one, given, expected) => {
    expect(outcome(one, given)).toBe(expected)
  })

  test('nothing offered: the refusal says so', () => {
    expect(mediate([call('shell')], [], {})).toMatchObject([
      { to: 'model', result: 'The tool `shell` is not available. Available: none.', isError: true },
    ])
  })

  test('[EC 12.4] a call that changes files leaves a diff', () => {
    const judged = judge([
      call('write_file', { path: 'a', content: 'b' }),
      call('edit_file', { path: 'a', old: 'b', new: 'c' }),
      call('read_file', { path: 'a' }),
    ])
    expect(judged.map((one) => one.to === 'client' && one.recordsDiff)).toEqual([true, true, false])
  })

  test('a mixed round keeps every call in its order, with what each came to', () => {
    const calls = [
      call('teleport'),
      call('read_file', { path: 'a' }, { providerCallId: 'p1', opaque: { signature: 's' } }),
      call('deploy'),
      call('read_file'),
    ]
    const judged = judge(calls)
    expect(judged.map(({ call: one }) => one)).toEqual(calls)
    expect(judged.map(({ to }) => to)).toEqual(['model', 'client', 'model', 'model'])
  })

  test('no calls, nothing to do', () => {
    expect(judge([])).toEqual([])
  })
})

describe('[D08] questions to the user', () => {
  const ask = (args: Record<string, unknown>, permissions: PermissionMap = { ask_user: 'ask' }) =>
    judge([call('ask_user', args)], { permissions })[0]
  const question = { header: 'Colour', text: 'Which one?', options: [{ label: 'Blue' }] }

  test('go to the client as a call that nobody has to allow, with how many there are', () => {
    expect(ask({ questions: [question, question] })).toMatchObject({
      to: 'client',
      requiresApproval: 'allow',
      recordsDiff: false,
      questions: 2,
    })
  })

  test.each([
    ['none', { questions: [] }],
    ['no list', { questions: 'Which one?' }],
    ['more than eight', { questions: Array.from({ length: 9 }, () => question) }],
    ['two options of one label', { questions: [{ ...question, options: [{ label: 'a' }, { label: 'a' }] }] }],
  ])('%s: the model is told at once, and nobody is asked', (_, args) => {
    const answered = ask(args)
    expect(answered).toMatchObject({ to: 'model', isError: true })
    expect(answered?.to === 'model' && answered.result).toContain('`questions` is a list of 1 to 8')
  })

  test('of a client that did not ask for the tool are refused', () => {
    expect(ask({ questions: [question] }, {})).toMatchObject({ to: 'model', refused: true })
  })
})
