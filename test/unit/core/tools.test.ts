import { describe, expect, test } from 'vitest'
import type { PermissionMap } from '../../../src/core/permissions.ts'
import type { Driver } from '../../../src/core/run/state.ts'
import { firstLine, type ToolsInput, turnTools } from '../../../src/core/tools.ts'
import { makeRequest, must, type RequestParts } from '../../support/core/builders.ts'

type Given = {
  attachments?: RequestParts['attachments']
  permissions?: PermissionMap
  planning?: boolean
  noNetwork?: boolean
  driver?: Driver
}

const input = ({
  attachments = {},
  permissions = {},
  planning = false,
  noNetwork = false,
  driver,
}: Given): ToolsInput => ({
  attachments: makeRequest({ attachments }).attachments,
  permissions,
  planning,
  noNetwork,
  isPrivateSkill: () => false,
  ...(driver === undefined ? {} : { driver }),
})

const tools = (given: Given = {}) => must(turnTools(input(given)))
const names = (given: Given = {}) => tools(given).map(({ name }) => name)

const declared = (name: string, fields: object = {}) => ({ name, parameters: { type: 'object' }, ...fields })

describe('[EC 12.1] what a model is offered', () => {
  test('the tools of the contract, with their arguments', () => {
    expect(tools().map(({ name, parameters: { required } }) => [name, required])).toEqual([
      ['read_file', ['path']],
      ['write_file', ['path', 'content']],
      ['edit_file', ['path', 'old', 'new']],
      ['shell', ['command']],
      ['memory', ['op', 'scope', 'key']],
    ])
    expect(tools().map(({ name, changesFiles }) => [name, changesFiles])).toEqual([
      ['read_file', false],
      ['write_file', true],
      ['edit_file', true],
      ['shell', false],
      ['memory', false],
    ])
  })

  test('[EC 12.2] a denied tool is not offered; an unset one is, and asks', () => {
    expect(names({ permissions: { shell: 'deny', file_write: 'deny' } })).toEqual(['read_file', 'memory'])
    expect(tools().map(({ mode }) => mode)).toEqual(['ask', 'ask', 'ask', 'ask', 'allow'])
  })

  test('[EC 14] while planning nothing that changes files is offered; the shell is', () => {
    const attachments = { tools: [declared('look'), declared('format', { changes_files: true })] }
    expect(names({ planning: true, attachments })).toEqual(['read_file', 'shell', 'memory', 'look'])
    expect(names({ planning: false, attachments })).toContain('format')
  })

  test('[EC 12.4] every tool that changes files leaves a diff, declared ones too', () => {
    const attachments = { tools: [declared('format', { changes_files: true })] }
    expect(tools({ attachments }).find(({ name }) => name === 'format')).toMatchObject({ changesFiles: true })
  })

  test('what a client declares comes as it was declared', () => {
    const parameters = { type: 'object', properties: { q: { type: 'string' } } }
    const attachments = {
      tools: [{ name: 'search', description: 'Searches.', parameters, permission: 'allow' as const }],
    }
    expect(tools({ attachments }).at(-1)).toEqual({
      name: 'search',
      description: 'Searches.',
      parameters,
      executor: 'client',
      mode: 'allow',
      changesFiles: false,
    })
  })
})

describe('[EC 9] tools that reach out', () => {
  const attachments = {
    tools: [{ ...declared('fetch_page'), permission: 'allow' as const, reaches_network: true }],
  }
  const mode = (given: Given) =>
    tools({ attachments, ...given }).find(({ name }) => name === 'fetch_page')?.mode

  test('keep to the permission `network` as well: the strictest counts', () => {
    expect(mode({})).toBe('allow')
    expect(mode({ permissions: { network: 'ask' } })).toBe('ask')
    expect(mode({ permissions: { network: 'allow', fetch_page: 'ask' } })).toBe('ask')
    expect(mode({ permissions: { network: 'deny' } })).toBe(undefined)
  })

  test('are not offered under `no_network`; others are', () => {
    expect(mode({ noNetwork: true })).toBe(undefined)
    expect(names({ noNetwork: true })).toContain('shell')
  })
})

describe('[D08] a declared name that is taken is refused', () => {
  test.each([
    ['a tool of the contract', [declared('shell')], []],
    ['memory', [declared('memory')], []],
    ['a skill', [declared('deploy')], [{ name: 'deploy', content: 'x' }]],
    [
      'a skill in the form in which it is offered',
      [declared('my_skill')],
      [{ name: 'my skill', content: 'x' }],
    ],
    ['another declaration', [declared('a'), declared('a')], []],
  ])('%s', (_, declarations, available_skills) => {
    const refused = turnTools(input({ attachments: { tools: declarations, available_skills } }))
    expect(refused).toMatchObject({
      ok: false,
      error: { code: 'invalid_request', details: { tool: declarations.at(-1)?.name } },
    })
  })

  test('also when the tool whose name it takes is denied', () => {
    expect(
      turnTools(input({ attachments: { tools: [declared('shell')] }, permissions: { shell: 'deny' } })).ok,
    ).toBe(false)
  })

  test('a name that every object has is not taken', () => {
    expect(names({ attachments: { tools: [declared('constructor'), declared('toString')] } })).toEqual(
      expect.arrayContaining(['constructor', 'toString']),
    )
  })
})

describe('[EC 12.5] skills are tools that the router answers', () => {
  const skill = (name: string, content = '# Title\nBody') => ({ name, content })

  test('invoked and available ones, described by their first line, answered with their body', () => {
    const attachments = {
      invoked_skills: [skill('deploy')],
      available_skills: [skill('review', '\n## How\nX')],
    }
    expect(tools({ attachments }).filter(({ executor }) => executor === 'skill')).toEqual([
      {
        name: 'deploy',
        description: 'Title',
        parameters: { type: 'object', properties: {}, required: [], additionalProperties: false },
        executor: 'skill',
        mode: 'allow',
        changesFiles: false,
        skillBody: '# Title\nBody',
      },
      expect.objectContaining({ name: 'review', description: 'How' }),
    ])
  })

  test('a name that no provider accepts is put into letters that all do; the first of a name stays', () => {
    const attachments = {
      available_skills: [skill('my skill', 'first'), skill('my_skill', 'second'), skill('')],
    }
    const skills = tools({ attachments }).filter(({ executor }) => executor === 'skill')
    expect(skills.map(({ name, skillBody }) => [name, skillBody])).toEqual([['my_skill', 'first']])
  })

  test('a skill takes no name of the contract, but any name that an object merely inherits', () => {
    const attachments = { available_skills: [skill('shell'), skill('memory'), skill('constructor')] }
    const skills = tools({ attachments }).filter(({ executor }) => executor === 'skill')
    expect(skills.map(({ name }) => name)).toEqual(['constructor'])
  })

  test('[U25] denied under its name it is not offered; `ask` asks nobody', () => {
    const attachments = { available_skills: [skill('my skill'), skill('other')] }
    expect(names({ attachments, permissions: { 'my skill': 'deny', other: 'ask' } })).toEqual([
      ...names(),
      'other',
    ])
    expect(names({ attachments, permissions: { my_skill: 'deny' } })).toEqual([...names(), 'other'])
  })

  test('the first line is the first with words in it', () => {
    expect(['', '\n\n', '#\n## A b \nc', 'x'].map(firstLine)).toEqual(['', '', 'A b', 'x'])
  })
})

describe('[D08] asking the user', () => {
  const asking = (given: Given) => tools(given).find(({ name }) => name === 'ask_user')

  test('a client that knows the contract alone is never asked for it', () => {
    expect(names()).not.toContain('ask_user')
    expect(names({ driver: { kind: 'http' } })).not.toContain('ask_user')
  })

  test.each<[string, Given]>([
    ['the client declares it', { attachments: { tools: [declared('ask_user')] } }],
    ['the policy names it', { permissions: { ask_user: 'allow' } }],
    ['the policy has it asked for', { permissions: { ask_user: 'ask' } }],
    ['nobody drives the run', { driver: { kind: 'none' } }],
    ['a host drives the run', { driver: { kind: 'host', id: 'h' } }],
  ])('%s: it is offered, and nobody is asked whether it may ask', (_, given) => {
    expect(asking(given)).toMatchObject({ executor: 'user', mode: 'allow', changesFiles: false })
  })

  test.each<[string, Given]>([
    ['the policy', { permissions: { ask_user: 'deny' }, driver: { kind: 'none' } }],
    ['the declaration', { attachments: { tools: [declared('ask_user', { permission: 'deny' })] } }],
  ])('%s denies it: it is not offered', (_, given) => {
    expect(asking(given)).toBeUndefined()
  })

  test('a declaration only asks for it: the arguments are those that the router knows', () => {
    const own = { parameters: { type: 'object', properties: { mine: {} } }, description: 'mine' }
    const attachments = { tools: [declared('ask_user', own)] }
    expect(asking({ attachments })).toEqual(asking({ driver: { kind: 'none' } }))
    expect(names({ attachments }).filter((name) => name === 'ask_user')).toHaveLength(1)
  })

  test('declared twice it is refused; a skill does not get its name', () => {
    const twice = { tools: [declared('ask_user'), declared('ask_user')] }
    expect(turnTools(input({ attachments: twice })).ok).toBe(false)
    const attachments = { available_skills: [{ name: 'ask_user', content: 'Body' }] }
    expect(names({ attachments })).toEqual(names())
  })

  test('[EC 14] it may be used while planning', () => {
    expect(names({ planning: true, driver: { kind: 'none' } })).toContain('ask_user')
  })
})

test('[D07] where nobody drives the run, no tool is offered that a client would have to run', () => {
  const attachments = {
    tools: [declared('look')],
    available_skills: [{ name: 'deploy', content: 'Run it.' }],
  }
  expect(names({ driver: { kind: 'none' }, attachments })).toEqual(['memory', 'ask_user', 'deploy'])
  expect(names({ driver: { kind: 'host', id: 'h' }, attachments })).toContain('look')
})
