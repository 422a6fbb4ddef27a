import { readdir, realpath } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { readWholeFile } from '../host/tools/text-file.ts'
import { resolveExisting } from '../host/tools/workspace-path.ts'
import { TaskIntent } from '../protocol/execution/policy.ts'
import { err, ok, type Result } from '../protocol/result.ts'
import { withoutFrontMatter } from './skills.ts'

/** Where templates lie, below the project and below the home folder, beside the skills (EC 24.4). */
const PROMPTS_FOLDER = '.agents/prompts'
/** What a file may be called before its `.md`: a name that can be typed, and no path. */
const TEMPLATE_NAME = /^[a-zA-Z0-9_-]{1,64}$/

/** A prompt that is written once and used often. */
export type PromptTemplate = {
  /** The name of its file without `.md`. */
  name: string
  /** Of the front matter; else empty. */
  description: string
  /** What kind of task it is, if it says so. */
  command?: TaskIntent
  body: string
  /** Absolute. */
  folder: string
  /** Why it cannot be used. */
  problem?: string
}

/** A template with its words in place. */
export type FilledPrompt = { prompt: string; command?: TaskIntent; template: PromptTemplate }

/** The templates of a project and of the user, sorted by name; of two with one name the project's is taken. */
export async function loadPromptTemplates(
  root: string,
  home: string = os.homedir(),
): Promise<PromptTemplate[]> {
  const found = new Map<string, PromptTemplate>()
  for (const base of [home, root])
    for (const template of await templatesBelow(base)) found.set(template.name, template)
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
}

async function templatesBelow(base: string): Promise<PromptTemplate[]> {
  // Confined to its base: a cloned project must not send one of the user's own files as a prompt.
  const confines = await realpath(base).catch(() => undefined)
  if (confines === undefined) return []
  const folder = path.join(confines, PROMPTS_FOLDER)
  const templates: PromptTemplate[] = []
  for (const file of await readdir(folder).catch(() => [])) {
    const name = file.slice(0, -'.md'.length)
    if (!file.endsWith('.md') || !TEMPLATE_NAME.test(name)) continue
    const at = await resolveExisting(confines, `${PROMPTS_FOLDER}/${file}`)
    const read = at.ok ? await readWholeFile(confines, at.value) : at
    templates.push(
      read.ok
        ? { name, folder, ...parseTemplate(read.value.text) }
        : { name, folder, description: '', body: '', problem: read.error.message },
    )
  }
  return templates
}

function parseTemplate(text: string): Omit<PromptTemplate, 'name' | 'folder'> {
  const body = withoutFrontMatter(text)
  const fields = frontMatter(text.slice(0, text.length - body.length))
  const description = fields.get('description') ?? ''
  const wanted = fields.get('command')
  if (wanted === undefined) return { description, body }
  const command = TaskIntent.safeParse(wanted)
  // Refused and not ignored: a misspelt `plan` must not become a run that changes files.
  return command.success
    ? { description, body, command: command.data }
    : {
        description,
        body,
        problem: `its \`command\` is ${JSON.stringify(wanted)}, which is none of ${TaskIntent.options.join(', ')}`,
      }
}

/** The `key: value` lines of a front matter; indented lines go on with the value before. */
function frontMatter(head: string): Map<string, string> {
  const fields = new Map<string, string>()
  let last = ''
  for (const line of head.split(/\r?\n/)) {
    const field = /^([A-Za-z_-]+):(?:[ \t]+(.*))?$/.exec(line)
    if (field) {
      last = field[1] ?? ''
      fields.set(last, unquoted((field[2] ?? '').trim()))
    } else if (/^[ \t]+\S/.test(line) && last !== '') {
      const before = (fields.get(last) ?? '').replace(/^[>|][+-]?$/, '')
      fields.set(last, `${before} ${line.trim()}`.trim())
    }
  }
  return fields
}

const unquoted = (value: string): string => /^(["'])(.*)\1$/.exec(value)?.[2] ?? value

/** Finds a template and fills it. The failure is a sentence that names the templates there are. */
export async function fillPrompt(
  root: string,
  name: string,
  words: readonly string[],
): Promise<Result<FilledPrompt, string>> {
  const templates = await loadPromptTemplates(root)
  const template = templates.find((one) => one.name === name)
  if (!template) {
    const there =
      templates.length === 0
        ? `write one to ${PROMPTS_FOLDER}/NAME.md, in the project or in your home folder`
        : `there are: ${templates.map((one) => one.name).join(', ')}`
    return err(`there is no prompt template "${name}"; ${there}`)
  }
  return fillTemplate(template, words)
}

/** Tells which file is used: the project's may have taken the place of the user's own. */
export const templateNote = ({ name, folder }: PromptTemplate): string =>
  `prompt template ${path.join(folder, `${name}.md`)}`

/** Puts words into a template. */
export function fillTemplate(
  template: PromptTemplate,
  words: readonly string[],
): Result<FilledPrompt, string> {
  const { name, body, command, problem } = template
  if (problem !== undefined) return err(`the prompt template "${name}" cannot be used: ${problem}`)
  const filled = fill(body, words)
  if (!filled.ok) return err(`the prompt template "${name}" ${filled.error}`)
  return ok({ prompt: filled.value, ...(command === undefined ? {} : { command }), template })
}

/**
 * `$1` to `$9` are single words, none of which may be missing; `$ARGUMENTS` is all of them; a backslash before keeps either as it
 * is written. A body that names no place for words has them behind it. What the words bring is not looked at again.
 */
function fill(body: string, words: readonly string[]): Result<string, string> {
  let placed = false
  const missing = new Set<string>()
  const filled = body.replace(
    /(\\?)\$(ARGUMENTS\b|[1-9](?!\d))/g,
    (whole, backslash: string, place: string) => {
      if (backslash !== '') return whole.slice(1)
      placed = true
      if (place === 'ARGUMENTS') return words.join(' ')
      const word = words[Number(place) - 1]
      if (word === undefined) missing.add(`$${place}`)
      return word ?? ''
    },
  )
  if (missing.size > 0) {
    const given = words.length === 0 ? 'none was given' : `given: ${words.length}`
    return err(`lacks a word for ${[...missing].sort().join(', ')} (${given})`)
  }
  return ok(placed || words.length === 0 ? filled : `${filled.trimEnd()}\n\n${words.join(' ')}`)
}
