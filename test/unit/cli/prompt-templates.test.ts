import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { saveCredentials } from '../../../src/cli/credentials.ts'
import { runCli } from '../../../src/cli/program.ts'
import { fillTemplate, loadPromptTemplates } from '../../../src/cli/prompt-templates.ts'
import { configHome } from '../../support/node/config-home.ts'
import { type ScriptedIo, scriptedIo } from '../../support/node/scripted-io.ts'
import { json, type ScriptedRouter, startScriptedRouter, stream } from '../../support/node/scripted-router.ts'
import { completed, paths, SESSION, sessionSummary } from '../../support/node/scripted-router-turns.ts'
import { tempFolder } from '../../support/node/temp-folder.ts'

const FOLDER = '.agents/prompts'
const template = (name: string) => `${FOLDER}/${name}.md`

describe('loadPromptTemplates', () => {
  test('[EC 24.4] the file is the name, the front matter is no part of the body, the project beats the home', async () => {
    const home = tempFolder({
      [template('review')]: 'home review',
      [template('deploy')]: '---\ndescription: "Rolls it out"\ncommand: plan\n---\n\nDeploy $1\n',
    })
    const root = tempFolder({ [template('review')]: '---\nname: other\n---\nproject review' })
    expect(await loadPromptTemplates(root, home)).toEqual([
      {
        name: 'deploy',
        description: 'Rolls it out',
        command: 'plan',
        body: 'Deploy $1\n',
        folder: path.join(home, FOLDER),
      },
      { name: 'review', description: '', body: 'project review', folder: path.join(root, FOLDER) },
    ])
  })

  test('a file whose name cannot be typed as a name is no template', async () => {
    const names = ['good-1_x', 'bad name', 'dotted.name', 'ä', 'x'.repeat(65), '']
    const root = tempFolder({
      ...Object.fromEntries(names.map((name) => [template(name), 'x'])),
      [`${FOLDER}/readme.txt`]: 'x',
      [`${FOLDER}/deep/inner.md`]: 'x',
    })
    expect((await loadPromptTemplates(root, tempFolder())).map(({ name }) => name)).toEqual(['good-1_x'])
  })

  test.each([
    ['description: plain # with a hash', 'plain # with a hash'],
    ["description: 'quoted: yes'", 'quoted: yes'],
    ['description: >-\n  over two\n  lines\nother: x', 'over two lines'],
    ['description:', ''],
    ['# a comment', ''],
  ])('front matter %j', async (head, description) => {
    const root = tempFolder({ [template('a')]: `---\n${head}\n---\nbody` })
    expect(await loadPromptTemplates(root, tempFolder())).toMatchObject([{ description, body: 'body' }])
  })

  test('a link out of the project is not followed', async () => {
    const outside = tempFolder({ 'secret.md': 'SECRET' })
    const root = tempFolder({ [template('own')]: 'x' })
    symlinkSync(path.join(outside, 'secret.md'), path.join(root, template('trap')))
    const linked = tempFolder()
    mkdirSync(path.join(linked, '.agents'))
    symlinkSync(outside, path.join(linked, FOLDER))
    for (const folder of [root, linked]) {
      const templates = await loadPromptTemplates(folder, tempFolder())
      expect(JSON.stringify(templates)).not.toContain('SECRET')
      for (const { name, problem } of templates)
        expect(problem, name).toEqual(name === 'own' ? undefined : expect.stringContaining('symbolic link'))
    }
  })
})

describe('fillTemplate', () => {
  const fill = (body: string, ...words: string[]) => {
    const filled = fillTemplate({ name: 'x', description: '', body, folder: '/f' }, words)
    return filled.ok ? filled.value.prompt : filled.error
  }

  test.each<[body: string, words: string[], prompt: string]>([
    ['Fix $1 in $2.', ['this', 'a.ts'], 'Fix this in a.ts.'],
    ['All: $ARGUMENTS!', ['a', 'b c'], 'All: a b c!'],
    ['$2 $1 $2', ['a', 'b'], 'b a b'],
    ['[$ARGUMENTS]', [], '[]'],
    [
      'costs $100, not \\$1, nor \\$ARGUMENTS or $ARGUMENTSX',
      ['a'],
      'costs $100, not $1, nor $ARGUMENTS or $ARGUMENTSX\n\na',
    ],
    // What is kept as it is written asks for no word.
    ['\\$2 $1', ['a'], '$2 a'],
    // What comes in is text, and no pattern.
    ['$1 $2', ['$2', "$& $' $ARGUMENTS"], "$2 $& $' $ARGUMENTS"],
    ['No place.\n', ['for', 'words'], 'No place.\n\nfor words'],
    ['No place.\n', [], 'No place.\n'],
  ])('%j with %j', (body, words, prompt) => {
    expect(fill(body, ...words)).toBe(prompt)
  })

  test.each<[body: string, words: string[], problem: string]>([
    ['Review @$1.', [], 'lacks a word for $1 (none was given)'],
    ['$3 and $2 of $1, $3', ['a'], 'lacks a word for $2, $3 (given: 1)'],
  ])('%j with %j is refused, and says what is missing', (body, words, problem) => {
    expect(fill(body, ...words)).toBe(`the prompt template "x" ${problem}`)
  })
})

describe('at the command line', () => {
  let router: ScriptedRouter
  let io: ScriptedIo
  let home: string
  let cwd: string

  beforeEach(async () => {
    router = await startScriptedRouter()
    router.always('GET', '/api/v1/*', json({ sessions: [sessionSummary] }))
    io = scriptedIo()
    ;({ home, cwd } = configHome({ global: '[routing.default]\nmodel = "ollama/small"\n' }))
    vi.stubEnv('SWITCHYARD_URL', router.url)
    saveCredentials(router.url, {
      user_id: 'u1',
      api_key: 'sk-stored',
      token: { value: 't0', expires_at: '2099-01-01T00:00:00.000Z' },
    })
    router.always('GET', '/api/v1/auth/me', json({ user_id: 'u1' }))
    router.always('POST', paths.execute, stream([{ event: completed('ok') }]))
  })
  afterEach(async () => {
    expect(router.unexpected).toEqual([])
    await router.close()
  })

  const cli = (...argv: string[]) => runCli(argv, { makeIo: () => io })
  const run = (...argv: string[]) => cli('run', '--cwd', cwd, '--session', SESSION, ...argv)
  const write = (base: string, name: string, content: string) => {
    mkdirSync(path.dirname(path.join(base, name)), { recursive: true })
    writeFileSync(path.join(base, name), content)
  }
  const executed = () => router.requests.filter(({ path }) => path === paths.execute).map(({ body }) => body)

  test('[EC 26.13] run --prompt fills the template, attaches what it names, and says what kind of task it is', async () => {
    write(home, template('review'), '---\ncommand: review\n---\nReview @$1. $ARGUMENTS')
    write(cwd, 'src/a.ts', 'const a = 1\n')
    expect(await run('--prompt', 'review', 'src/a.ts', 'be strict')).toBe(0)
    expect(executed()).toMatchObject([
      {
        input: { text: 'Review src/a.ts. src/a.ts be strict', command: 'review' },
        attachments: { files: [{ path: 'src/a.ts', content: 'const a = 1\n' }] },
      },
    ])
    expect(io.stderr).toContain(path.join(home, template('review')))
  })

  test('--command beats the template, and no words are needed, also without a terminal', async () => {
    write(cwd, template('tidy'), '---\ncommand: plan\n---\nTidy up.')
    expect(await run('--prompt', 'tidy', '--command', 'review')).toBe(0)
    expect(executed()).toMatchObject([{ input: { text: 'Tidy up.', command: 'review' } }])
  })

  test.each(['nope', '../prompts/tidy', '/etc/passwd', 'tidy.md', '__proto__'])(
    'a template %j that is not there is wrong usage, and those that are there are named',
    async (name) => {
      write(cwd, template('tidy'), 'Tidy up.')
      write(home, template('deploy'), 'Deploy.')
      expect(await run('--prompt', name, 'x')).toBe(2)
      expect(io.stderr).toBe(`error: there is no prompt template "${name}"; there are: deploy, tidy\n`)
      expect(router.requests).toEqual([])
    },
  )

  test('where there is none at all, it says where to write one', async () => {
    expect(await run('--prompt', 'nope')).toBe(2)
    expect(io.stderr).toContain('.agents/prompts/NAME.md')
  })

  test('a misspelt kind of task is refused, not ignored', async () => {
    write(cwd, template('careful'), '---\ncommand: plann\n---\nThink first.')
    expect(await run('--prompt', 'careful')).toBe(2)
    expect(io.stderr).toContain('its `command` is "plann", which is none of ')
    expect(router.requests).toEqual([])
    expect(await cli('prompts', '--cwd', cwd)).toBe(0)
    expect(io.stdout).toContain('careful  ')
    expect(io.stdout).toContain('cannot be used: its `command` is "plann"')
  })

  test('prompts lists names, descriptions and folders; a description cannot act on the terminal', async () => {
    write(home, template('deploy'), '---\ndescription: Rolls \u001b[2J it out\n---\nDeploy.')
    write(cwd, template('plan-it'), '---\ndescription: Plans\ncommand: plan\n---\nPlan.')
    expect(await cli('prompts', '--cwd', cwd)).toBe(0)
    expect(io.stdout).toBe(
      `deploy  Rolls \\u{1b}[2J it out  ${home}/${FOLDER}\nplan-it  Plans  plan  ${cwd}/${FOLDER}\n`,
    )
    io.stdout = ''
    expect(await cli('prompts', '--cwd', cwd, '--json')).toBe(0)
    expect(JSON.parse(io.stdout)).toMatchObject([{ name: 'deploy', body: 'Deploy.' }, { name: 'plan-it' }])
  })

  test('prompts says so where there are none', async () => {
    expect(await cli('prompts', '--cwd', cwd)).toBe(0)
    expect(io.stdout).toBe('')
    expect(io.stderr).toContain('no prompt templates')
  })

  test('in a conversation /NAME is the template unless it is a command, and /help lists them', async () => {
    write(cwd, template('review'), '---\ndescription: Reviews a file\ncommand: review\n---\nReview $1.')
    write(cwd, template('usage'), 'never')
    write(cwd, template('broken'), '---\ncommand: x\n---\nnever')
    io = scriptedIo({ isTty: true })
    for (const text of ['/help', '/review a.ts', 'and then?', '/usage', '/broken', '/nope a'])
      io.lines.push({ kind: 'line', text })
    router.always('GET', paths.usage, json({ total: {}, by_model: [], by_task_type: [] }))
    expect(await run()).toBe(0)
    expect(executed()).toMatchObject([
      { input: { text: 'Review a.ts.', command: 'review' } },
      { input: { text: 'and then?' } },
    ])
    expect(executed()[1]).not.toHaveProperty('input.command')
    expect(io.stderr).toContain('\n  /review           Reviews a file\n')
    expect(io.stderr.match(/\n {2}\/usage /g)).toHaveLength(1)
    expect(io.stderr).toContain('the prompt template "broken" cannot be used')
    expect(io.stderr).toContain('unknown command /nope')
  })
})
