import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { vi } from 'vitest'
import { tempFolder } from './temp-folder.ts'

/** Variables of the developer's own shell that would reach into a test. */
const FOREIGN = [
  'SWITCHYARD_URL',
  'SWITCHYARD_API_KEY',
  'ANTHROPIC_API_KEY',
  'OPENAI_API_KEY',
  'GEMINI_API_KEY',
  'NO_COLOR',
]

/** A configuration folder and a home of the test's own, and a project folder. */
export function configHome(options: { global?: string; project?: string } = {}): {
  home: string
  cwd: string
} {
  const home = tempFolder()
  const cwd = tempFolder()
  const keys = Object.keys(process.env).filter((name) => /^SWITCHYARD_PROVIDER_.*_API_KEY$/.test(name))
  for (const name of [...FOREIGN, ...keys]) vi.stubEnv(name, '')
  vi.stubEnv('HOME', home)
  vi.stubEnv('XDG_CONFIG_HOME', path.join(home, 'cfg'))
  if (options.global !== undefined) write(path.join(home, 'cfg', 'switchyard', 'config.toml'), options.global)
  if (options.project !== undefined) write(path.join(cwd, '.switchyard', 'config.toml'), options.project)
  return { home, cwd }
}

function write(file: string, content: string): void {
  mkdirSync(path.dirname(file), { recursive: true })
  writeFileSync(file, content)
}
