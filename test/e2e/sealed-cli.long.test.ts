import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type CommandProcess, startCommand } from '../support/node/command-line.ts'
import { configHome } from '../support/node/config-home.ts'
import { filesWith } from '../support/node/find-bytes.ts'
import { makeHoldPoint } from '../support/node/hold-point.ts'
import { type ScriptedModel, startScriptedModel } from '../support/node/model-scripts.ts'
import { makeAccount, must, type RouterAccount } from '../support/node/router-account.ts'
import { RouterProcess } from '../support/node/router-process.ts'
import type { ChatRequest } from '../support/node/scripted-ollama.ts'
import { type StatefulFolder, statefulFolder } from '../support/node/stateful-folder.ts'
import { tempFolder } from '../support/node/temp-folder.ts'

/** Encrypted sessions by the command line, against a router in processes of its own: what is sealed, shown and found. */

const CONFIG = `
[routing.default]
model = "ollama/scripted"
[[routing.rules]]
name = "planning"
intent = "plan"
model = "ollama/planner"
`

let folder: StatefulFolder
let model: ScriptedModel
let router: RouterProcess
let account: RouterAccount

beforeAll(async () => {
  folder = statefulFolder()
  model = await startScriptedModel(['scripted', 'planner'])
  router = await RouterProcess.start({ persistTo: folder.path, vars: { OLLAMA_BASE_URL: model.url } })
  account = await makeAccount(router.url)
})

afterAll(async () => {
  await router?.stop()
  await model?.close()
  folder?.remove()
})

type Machine = (args: string[], options?: { input?: boolean }) => CommandProcess

/** A machine of the user: its configuration, its keys, and a project. */
function machine(files: Record<string, string> = {}): Machine {
  const { home } = configHome({ global: CONFIG })
  const cwd = tempFolder(files)
  const env = {
    HOME: home,
    XDG_CONFIG_HOME: path.join(home, 'cfg'),
    SWITCHYARD_URL: router.url,
    SWITCHYARD_API_KEY: account.apiKey,
  }
  return (args, options = {}) => startCommand(args, { cwd, env, ...options })
}

const found = (text: string, pattern: RegExp): string => pattern.exec(text)?.[1] ?? `none in: ${text}`
const sessionOf = ({ stderr }: CommandProcess) => found(stderr, /^session ([0-9a-f-]{36})/m)
const keyOf = ({ stderr }: CommandProcess) => found(stderr, /keys export (kf2_[\w-]{43})/)
const shown = ({ messages }: ChatRequest) =>
  messages.map(({ role, content, tool_calls: calls }) => [
    role,
    content + (calls ? JSON.stringify(calls) : ''),
  ])

/** Two tools, an answer that is cut by new words, and the answer to those: every text has the marker in it. */
function scriptTools(marker: string, ...more: string[]) {
  const talking = makeHoldPoint()
  model.script(
    `<begin ${marker}>`,
    { pieces: [`reading ${marker}`], calls: [{ name: 'read_file', arguments: { path: `${marker}.txt` } }] },
    {
      calls: [{ name: 'edit_file', arguments: { path: `${marker}.txt`, old: 'blue', new: `red ${marker}` } }],
    },
    { pieces: [`half of ${marker}`], hold: talking.hold },
  )
  model.script(`<instead ${marker}>`, { pieces: [`all of ${marker}`] })
  for (const word of more) model.script(`<${word} ${marker}>`, { pieces: [`${word}: ${marker}`] })
  return { files: { [`${marker}.txt`]: `the colour of ${marker} is blue\n` } }
}

/** The run of `scriptTools`, with the words typed in the middle of its third turn. */
async function toolsAndNewWords(marker: string, run: Machine, ...options: string[]): Promise<CommandProcess> {
  const command = run(['run', '--yes', '--input', ...options, `<begin ${marker}>`], { input: true })
  await command.says(`half of ${marker}`)
  command.types(`<instead ${marker}>\n`)
  expect([await command.ended, command.stderr]).toEqual([0, expect.stringContaining('→ ollama/scripted')])
  return command
}

test('[EC 17, D22, U35] a session of tools and new words: sealed, continued, locked elsewhere, opened with the key', async () => {
  const marker = 'plum-7341-orchard'
  const { files } = scriptTools(marker, 'more', 'elsewhere', 'moved')
  const home = machine(files)
  const first = await toolsAndNewWords(marker, home, '--encrypted')
  expect(first.stdout).toBe(`reading ${marker}\nhalf of ${marker}\nall of ${marker}\n`)
  expect(first.stderr).toContain(`the answer above was interrupted; sent: <instead ${marker}>\n`)
  const session = sessionOf(first)
  const key = keyOf(first)

  const second = home(['run', '--session', session, `<more ${marker}>`])
  expect([await second.ended, second.stdout]).toEqual([0, `more: ${marker}\n`])
  const [asked] = model.asked(`<more ${marker}>`)
  expect(asked && shown(asked).slice(1)).toEqual([
    ['user', `<begin ${marker}>`],
    ['assistant', expect.stringMatching(`^reading ${marker}.*read_file.*${marker}.txt`)],
    ['tool', expect.stringContaining(`the colour of ${marker} is blue`)],
    ['assistant', expect.stringMatching(`edit_file.*red ${marker}`)],
    ['tool', expect.stringContaining(`${marker}.txt changed`)],
    ['assistant', expect.stringContaining(`half of ${marker}`)],
    ['user', `<instead ${marker}>`],
    ['assistant', `all of ${marker}`],
    ['user', `<more ${marker}>`],
  ])

  const away = machine()
  const locked = away(['run', '--session', session, `<elsewhere ${marker}>`])
  expect([await locked.ended, locked.stderr]).toEqual([1, expect.stringContaining(`key ${key} is needed`)])
  expect(model.asked(`<elsewhere ${marker}>`)).toEqual([])
  const sealed = await looks(away, session)
  expect(sealed.out).not.toContain(marker)
  expect(sealed.out.match(new RegExp(`locked: key ${key} is needed`, 'g'))?.length).toBeGreaterThan(8)
  expect(sealed.usage).toContain('in ? · out ? tokens')

  const exported = home(['keys', 'export', key])
  expect(await exported.ended).toBe(0)
  const imported = away(['keys', 'import'], { input: true })
  imported.types(exported.stdout)
  imported.endInput()
  expect([await imported.ended, imported.stderr]).toEqual([0, expect.any(String)])
  const moved = away(['run', '--session', session, `<moved ${marker}>`])
  expect([await moved.ended, moved.stdout]).toEqual([0, `moved: ${marker}\n`])
  const open = await looks(away, session)
  expect(open.out).toContain(`half of ${marker}`)
  expect(open.out).toContain('── assistant (ollama/scripted), interrupted')
  expect(open.out).toContain('edit_file completed')
  expect(open.out).not.toContain('locked')
  // The one that was cut among them.
  expect(open.usage).toMatch(/total {2}6 calls {2}in 500 · out 100 tokens/)
  expect(filesWith(folder.path, marker)).toEqual([])
  expect(router.log).not.toContain(marker)
})

/** Everything that is shown of a session. */
async function looks(run: Machine, session: string) {
  const commands = [
    run(['sessions', 'show', session]),
    run(['trace', session, '--all']),
    run(['usage', session]),
  ]
  const codes = await Promise.all(commands.map(({ ended }) => ended))
  expect(codes).toEqual([0, 0, 0])
  return { out: commands.map(({ stdout }) => stdout).join(''), usage: commands[2]?.stdout ?? '' }
}

test('[EC 17] the same session in plain text is found in the state folder: the search can find it', async () => {
  const marker = 'pear-2290-cellar'
  const { files } = scriptTools(marker)
  const first = await toolsAndNewWords(marker, machine(files))
  expect(first.stdout).toBe(`reading ${marker}\nhalf of ${marker}\nall of ${marker}\n`)
  expect(filesWith(folder.path, marker)).not.toEqual([])
})

test('[EC 13, EC 17] a plan of an encrypted session is approved, and carried out in the next turn', async () => {
  const marker = 'quince-5518-attic'
  model.script(`<plan ${marker}>`, { pieces: [`1. Paint ${marker} red.`] })
  model.script(
    'The plan is approved.',
    { calls: [{ name: 'edit_file', arguments: { path: 'a.txt', old: 'blue', new: `red ${marker}` } }] },
    { pieces: [`${marker} is red now.`] },
  )
  model.script(`<after ${marker}>`, { pieces: ['It was a good plan.'] })
  const home = machine({ 'a.txt': 'blue\n' })
  const planned = home(['run', '--yes', '--encrypted', '--command', 'plan', `<plan ${marker}>`])
  expect([await planned.ended, planned.stderr]).toEqual([0, expect.stringContaining('plan')])
  expect(planned.stdout).toBe(`1. Paint ${marker} red.\n${marker} is red now.\n`)
  const session = sessionOf(planned)
  const after = home(['run', '--session', session, `<after ${marker}>`])
  expect([await after.ended, after.stdout]).toEqual([0, 'It was a good plan.\n'])
  const [asked] = model.asked(`<after ${marker}>`)
  expect(asked && shown(asked).flat().join('\n')).toContain(`1. Paint ${marker} red.`)
  expect(must(await account.client.currentRun(session))).toMatchObject({ status: 'idle' })
  expect(filesWith(folder.path, marker)).toEqual([])
})
