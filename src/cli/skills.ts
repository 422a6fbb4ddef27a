import { readdir, realpath } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { readWholeFile } from '../host/tools/text-file.ts'
import { resolveExisting } from '../host/tools/workspace-path.ts'
import type { Skill } from '../protocol/execution/execute.ts'

/** Where skills lie, below the project and below the home folder (EC 24.4). */
const SKILLS_FOLDER = '.agents/skills'
/** A skill's folder name becomes a tool name, so it must be one. */
const SKILL_NAME = /^[a-zA-Z0-9_-]{1,64}$/
/** Each is offered to the model in every run; more than this is a mistake. */
const MAX_SKILLS = 64

/**
 * The skills of a project and of the user, sorted by name; the project's win. The folder's name is the skill's name.
 * @param taken names of tools, which a skill may not take
 */
export async function loadSkills(
  root: string,
  taken: ReadonlySet<string>,
  home: string = os.homedir(),
): Promise<Skill[]> {
  const found = new Map<string, Skill>()
  for (const base of [home, root])
    for (const skill of await skillsBelow(base)) if (!taken.has(skill.name)) found.set(skill.name, skill)
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1)).slice(0, MAX_SKILLS)
}

async function skillsBelow(base: string): Promise<Skill[]> {
  // Confined to its base: a cloned project must not offer a link to one of the user's own files as a skill.
  const confines = await realpath(base).catch(() => undefined)
  if (confines === undefined) return []
  const names = await readdir(path.join(confines, SKILLS_FOLDER)).catch(() => [])
  const skills: Skill[] = []
  for (const name of names) {
    if (!SKILL_NAME.test(name)) continue
    const file = `${SKILLS_FOLDER}/${name}/SKILL.md`
    const at = await resolveExisting(confines, file)
    const read = at.ok ? await readWholeFile(confines, at.value) : at
    if (read.ok) {
      skills.push({ name, content: withoutFrontMatter(read.value.text), path: path.join(base, file) })
    }
  }
  return skills
}

/** The body of a document that may begin with a block between two `---` lines. */
export function withoutFrontMatter(text: string): string {
  const match = /^\uFEFF?---[ \t]*\r?\n(?:[\s\S]*?\r?\n)?---[ \t]*(?:\r?\n|$)/.exec(text)
  return (match ? text.slice(match[0].length) : text).replace(/^\s*\n/, '')
}
