import { describe, expect, test } from 'vitest'
import { MAX_ROUNDS, SIGNATURE } from '../../../src/host/demo/decide.ts'
import { type Call, talk, workspaceOf } from './talk.ts'

const TIDAL = {
  'README.md':
    '# Tidal\n\n[![build](x)](y)\n\nTidal predicts the height of the tide for a harbour, offline.\n\n## Use\n\nRun it.\n',
  'package.json':
    '{\n  "name": "tidal",\n  "description": "Tide tables",\n  "scripts": { "build": "x", "test": "y" }\n}\n',
  'src/main.ts': '// Starts the program.\nexport function main() {\n  return predict(0.5)\n}\n',
  'src/predict.ts':
    '/** Sums the constituents of a harbour. */\nexport function predict(x: number) {\n  return x\n}\n',
  'test/predict.test.ts': 'test("constituents", () => {})\n',
}

const names = (calls: readonly Call[]) =>
  calls.map(({ name, arguments: args }) => `${name} ${args.path ?? args.query ?? ''}`)

describe('what a project does', () => {
  test('it lists the files, then reads the README and the manifest together', () => {
    const { rounds } = talk('What does this project do?', workspaceOf(TIDAL))
    expect(rounds.map(names)).toEqual([['list_files .'], ['read_file README.md', 'read_file package.json']])
  })

  test('the answer quotes with file and line, counts languages and folders, and says what it is', () => {
    const { answer } = talk('What does this project do?', workspaceOf(TIDAL))
    expect(answer).toBe(
      [
        'tidal: Tide tables (package.json:3)',
        '',
        'From README.md:',
        '  "Tidal predicts the height of the tide for a harbour, offline." (README.md:5)',
        '',
        'Scripts: build, test',
        '',
        'Files by language: TypeScript 3, Markdown 1',
        'Files by folder: src/ 2, test/ 1',
        '',
        SIGNATURE,
      ].join('\n'),
    )
  })

  test.each([
    'Describe this repository.',
    'Give me an overview',
    'what is this about?',
    'Explain the codebase, please',
  ])('"%s" asks the same', (question) => {
    expect(names(talk(question, workspaceOf(TIDAL)).calls)).toContain('read_file README.md')
  })

  test.each([
    ['one text file', { 'notes.txt': 'a' }],
    ['one binary file', { 'logo.png': '\u0089PNG' }],
    ['sources only', { 'src/a.py': 'x = 1', 'src/b.py': 'y = 2' }],
  ])('a folder with %s gets at least two calls', (_what, files) => {
    expect(talk('What does this project do?', workspaceOf(files)).calls.length).toBeGreaterThanOrEqual(2)
  })

  test('project instructions in the system message do not stand for looking', () => {
    const before = [{ role: 'system' as const, content: 'Be brief.\n\n# AGENTS.md\nUse tabs.' }]
    const { calls } = talk('What does this project do?', workspaceOf({ 'main.go': 'package main' }), {
      before,
    })
    expect(names(calls)).toEqual(['list_files .', 'read_file main.go'])
  })

  test('an empty folder is said to be empty', () => {
    expect(talk('What does this project do?', workspaceOf({})).answer).toContain('There are no files here.')
  })
})

describe('where something is', () => {
  test('it searches for each telling word, reads the best file, and quotes the lines', () => {
    const { rounds, answer } = talk('How are the constituents summed?', workspaceOf(TIDAL))
    expect(rounds.map(names)).toEqual([
      ['search_files constituent', 'search_files summ'],
      ['read_file src/predict.ts', 'read_file test/predict.test.ts'],
    ])
    expect(answer).toContain('  src/predict.ts:1  /** Sums the constituents of a harbour. */')
  })

  test('a word that is marked as code is searched as it is, and alone', () => {
    expect(names(talk('Who calls `predict` in this code?', workspaceOf(TIDAL)).rounds[0] ?? [])).toEqual([
      'search_files predict',
    ])
  })

  test('a lock file is quoted from what the search found, and not read', () => {
    const files = { 'package-lock.json': '{\n"license": "MIT"\n}\n' }
    const { calls, answer } = talk('which license?', workspaceOf(files))
    expect(names(calls)).toEqual(['search_files license'])
    expect(answer).toContain('package-lock.json:2  "license": "MIT"')
  })

  test('without a hit it says so and tells what the project is', () => {
    const { answer } = talk('Where are the whales?', workspaceOf(TIDAL))
    expect(answer).toContain('I found nothing about that.')
    expect(answer).toContain('tidal: Tide tables (package.json:3)')
  })
})

describe('a named file', () => {
  test('it is read and outlined', () => {
    const { calls, answer } = talk('What is in src/main.ts?', workspaceOf(TIDAL))
    expect(names(calls)).toEqual(['read_file src/main.ts'])
    expect(answer).toContain('src/main.ts has 4 lines.\n  src/main.ts:1  Starts the program.')
    expect(answer).toContain('  src/main.ts:2  export function main()')
  })

  test('one that is not there is found by its name', () => {
    const { calls, answer } = talk('explain predict.ts', workspaceOf(TIDAL))
    expect(names(calls)).toEqual(['read_file predict.ts', 'list_files .', 'read_file src/predict.ts'])
    expect(answer).toContain('src/predict.ts has 4 lines.')
    expect(answer).not.toContain('Not done')
  })

  test('an attached file is used without reading it again', () => {
    const question =
      'Context of the request:\n\n# src/main.ts\n// Starts the program.\n\n# a heading\n\nRequest:\nWhat is in src/main.ts?'
    const { calls, answer } = talk(question, workspaceOf({}))
    expect(calls).toEqual([])
    expect(answer).toContain('src/main.ts:1  Starts the program.')
  })
})

describe('acts', () => {
  const files = { 'notes.md': 'one\ntwo\ntwo\n' }

  test('a text that stands once is replaced after the file was read', () => {
    const { rounds, answer } = talk('replace `one` with `uno` in notes.md', workspaceOf(files))
    expect(rounds).toEqual([
      [{ name: 'read_file', arguments: { path: 'notes.md' } }],
      [{ name: 'edit_file', arguments: { path: 'notes.md', old: 'one', new: 'uno' } }],
    ])
    expect(answer).toContain('Replaced "one" with "uno" (notes.md:1).')
  })

  test('a text that stands twice is not replaced, and the places are told', () => {
    const { calls, answer } = talk('In notes.md, change two to zwei', workspaceOf(files))
    expect(names(calls)).toEqual(['read_file notes.md'])
    expect(answer).toContain('"two" occurs in several places (notes.md:2, notes.md:3)')
  })

  test('[U22] a declined change is told as such and not tried again', () => {
    const workspace = workspaceOf(files)
    const { calls, answer } = talk('replace one with uno in notes.md', (call) =>
      call.name === 'edit_file' ? 'Error: The user declined this call.' : workspace(call),
    )
    expect(names(calls)).toEqual(['read_file notes.md', 'edit_file notes.md'])
    expect(answer).toContain('Nothing was changed: The user declined this call.')
  })

  test('a command is run once and the end of its output quoted', () => {
    const { calls, answer } = talk('run `npm test`', () => `${'x\n'.repeat(50)}all good`)
    expect(calls).toEqual([{ name: 'shell', arguments: { command: 'npm test' } }])
    expect(answer).toContain('`npm test` ran:\n  … 31 lines before\n')
    expect(answer).toContain('  all good')
  })

  test('a file is written with the given text', () => {
    expect(talk('create hello.txt with the text: good day', () => 'done').calls).toEqual([
      { name: 'write_file', arguments: { path: 'hello.txt', content: 'good day\n' } },
    ])
  })

  test('while planning, when nothing may change, the edit is only described', () => {
    const { calls, answer } = talk('replace one with uno in notes.md', workspaceOf(files), {
      tools: ['read_file', 'list_files', 'search_files'],
    })
    expect(names(calls)).toEqual(['read_file notes.md'])
    expect(answer).toContain('notes.md:1 would get "uno"')
  })
})

describe('limits', () => {
  test('only tools on offer are called', () => {
    const { calls, answer } = talk('What does this project do?', workspaceOf(TIDAL), { tools: ['read_file'] })
    expect(names(calls)).toEqual(['read_file README.md', 'read_file package.json'])
    expect(answer).toContain('tidal: Tide tables')
  })

  test('without tools and without a file it says what it cannot do', () => {
    expect(talk('Where is predict?', () => '', { tools: [] }).answer).toContain('I cannot look at anything')
  })

  test('without tools it answers from what is attached', () => {
    const question = `Context of the request:\n\n# README.md\n${TIDAL['README.md']}\nRequest:\nWhat does this project do?`
    expect(talk(question, () => '', { tools: [] }).answer).toContain('Tidal predicts the height of the tide')
  })

  test('[U22] when every call is declined it gives up and says what was not done', () => {
    const { rounds, answer } = talk('What does this project do?', () => 'Error: The user declined this call.')
    expect(rounds.length).toBeLessThanOrEqual(MAX_ROUNDS)
    expect(answer).toContain('Not done: list_files . (The user declined this call.)')
  })

  test('a greeting is answered at once, with what may be asked', () => {
    const { calls, answer } = talk('Hello!', workspaceOf(TIDAL))
    expect(calls).toEqual([])
    expect(answer).toContain('Ask me what this project does')
  })

  test('the same conversation gives the same move', () => {
    const once = talk('How are the constituents summed?', workspaceOf(TIDAL))
    expect(talk('How are the constituents summed?', workspaceOf(TIDAL))).toEqual(once)
  })

  test('[U24] no two calls of a conversation share an id', () => {
    const { messages, calls } = talk('What does this project do?', workspaceOf(TIDAL))
    const ids = messages.flatMap((message) => (message.tool_calls ?? []).map(({ id }) => id))
    expect(new Set(ids).size).toBe(calls.length)
  })

  test('a later question is answered from what it asks, not from what was asked before', () => {
    const first = talk('What does this project do?', workspaceOf(TIDAL))
    const before = [
      { role: 'user' as const, content: 'What does this project do?' },
      { role: 'assistant' as const, content: first.answer },
    ]
    expect(names(talk('where is predict?', workspaceOf(TIDAL), { before }).rounds[0] ?? [])).toEqual([
      'search_files predict',
    ])
  })

  test('a command asked for again is run again, and what failed before is not told again', () => {
    const first = talk('run `date`', () => 'Error: The user declined this call.')
    const before = [...first.messages, { role: 'assistant' as const, content: first.answer }]
    const { calls, answer } = talk('run `date`', () => 'Monday', { before })
    expect(calls).toEqual([{ name: 'shell', arguments: { command: 'date' } }])
    expect(answer).toContain('`date` ran:\n  Monday')
    expect(talk('where is predict?', workspaceOf(TIDAL), { before }).answer).not.toContain('declined')
  })
})
