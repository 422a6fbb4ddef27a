import { z } from 'zod'
import type { Quote } from './quote.ts'

/** What a package manifest says about its project. */
export type ManifestFacts = { name?: Quote; description?: Quote; scripts: string[] }

/** Files that name a project, most telling first. */
const MANIFESTS = (
  'package.json Cargo.toml pyproject.toml go.mod composer.json deno.json pubspec.yaml mix.exs setup.py setup.cfg ' +
  'pom.xml build.gradle build.gradle.kts Gemfile CMakeLists.txt Makefile'
).split(' ')

/** The manifests among some paths of the top level, most telling first. */
export function manifestsAmong(paths: readonly string[]): string[] {
  return MANIFESTS.filter((name) => paths.includes(name))
}

const PackageJson = z.object({
  name: z.string().optional(),
  description: z.string().optional(),
  scripts: z.record(z.string(), z.unknown()).optional(),
})

/** Name and description as most manifest formats write them; JSON also tells its scripts. */
export function readManifest(path: string, content: string): ManifestFacts {
  if (path.endsWith('.json')) return readJsonManifest(content)
  if (path.endsWith('go.mod')) return optional({ name: firstMatch(content, /^module\s+(\S+)/) })
  const field = (key: string) =>
    firstMatch(content, new RegExp(`^\\s*${key}\\s*[=:]\\s*["']?([^"'\\n]{2,200})["']?,?\\s*$`)) ??
    firstMatch(content, new RegExp(`^\\s*<${key}>([^<]{2,200})</${key}>`))
  return optional({ name: field('name') ?? field('artifactId'), description: field('description') })
}

function readJsonManifest(content: string): ManifestFacts {
  const parsed = PackageJson.safeParse(parseJson(content))
  if (!parsed.success) return { scripts: [] }
  const { name, description, scripts } = parsed.data
  const quote = (key: string, text: string | undefined): Quote | undefined => {
    const line = content.split('\n').findIndex((row) => row.includes(`"${key}"`))
    return text === undefined || text === '' ? undefined : { line: line + 1, text }
  }
  return {
    ...optional({ name: quote('name', name), description: quote('description', description) }),
    scripts: Object.keys(scripts ?? {}),
  }
}

function optional({
  name,
  description,
}: {
  name?: Quote | undefined
  description?: Quote | undefined
}): ManifestFacts {
  return { ...(name ? { name } : {}), ...(description ? { description } : {}), scripts: [] }
}

function firstMatch(content: string, pattern: RegExp): Quote | undefined {
  for (const [index, row] of content.split('\n').entries()) {
    const text = pattern.exec(row)?.[1]?.trim()
    if (text !== undefined && text !== '') return { line: index + 1, text }
  }
  return undefined
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
