import type { Evidence } from './evidence.ts'
import { countFolders, countLanguages, extensionOf } from './listing.ts'
import { manifestsAmong, readManifest } from './manifest.ts'
import { failureLines, listFiles, type Planner, readFile } from './plan.ts'
import { headOf, proseOf } from './quote.ts'

/** More of each would be a wall of text. */
const MAX_MANIFESTS = 2
const MAX_DOCUMENTS = 2
const MAX_COUNTS = 6
const MAX_SCRIPTS = 12
/** A project without any document or manifest is told by this many of its source files. */
const MAX_SOURCES = 2

/** Endings of what is not worth reading as text. */
const NOT_TEXT =
  /\.(png|jpe?g|gif|webp|ico|pdf|zip|gz|tgz|woff2?|ttf|mp[34]|wasm|so|dylib|exe|bin|sqlite|db|lock)$/i

/** "What does this project do?": looks around, reads what the project says about itself, counts the rest. */
export const planOverview: Planner = (evidence) => ({
  stages: [[listFiles('.')], selfDescriptions(evidence).map(readFile), sources(evidence), folders(evidence)],
  answer: () => answerOverview(evidence),
})

const isReadme = (path: string): boolean => /^readme(\.\w+)?$/i.test(path)

/** The README and the manifests; by their usual names when nothing could be listed. */
function selfDescriptions({ listing }: Evidence): string[] {
  if (listing === undefined) return ['README.md', 'package.json']
  const readme =
    listing.files.find(isReadme) ?? listing.files.find((path) => /^docs?\/(readme|index)\.\w+$/i.test(path))
  const manifests = manifestsAmong(listing.files).slice(0, MAX_MANIFESTS)
  return [...(readme === undefined ? [] : [readme]), ...manifests]
}

function sources(evidence: Evidence) {
  if (evidence.reads > 0 || evidence.listing === undefined) return []
  const { files } = evidence.listing
  const texts = files.filter((path) => !NOT_TEXT.test(path))
  const main = texts.filter((path) => /(^|\/)(main|index|app|lib|mod|__init__|__main__)\.\w+$/.test(path))
  const documents = texts.filter((path) => ['md', 'txt', 'rst'].includes(extensionOf(path)))
  return [...new Set([...documents, ...main, ...texts, ...files])].slice(0, MAX_SOURCES).map(readFile)
}

function folders(evidence: Evidence) {
  if (evidence.reads > 0 || evidence.listing === undefined) return []
  return evidence.listing.folders.slice(0, 1).map(({ path }) => listFiles(path))
}

function answerOverview(evidence: Evidence): string[] {
  const { files, listing } = evidence
  const manifests = manifestsAmong([...files.keys()]).map((path) => ({
    path,
    facts: readManifest(path, files.get(path) ?? ''),
  }))
  const lines: string[] = []
  for (const { path, facts } of manifests) {
    const { name, description } = facts
    if (name)
      lines.push(
        `${name.text}${description ? `: ${description.text}` : ''} (${path}:${(description ?? name).line})`,
      )
  }
  const documents = [...files]
    .filter(([path]) => manifestsAmong([path]).length === 0)
    .sort(([a], [b]) => Number(isReadme(b)) - Number(isReadme(a)))
    .slice(0, MAX_DOCUMENTS)
  for (const [path, content] of documents) {
    const quotes = /\.(md|txt|rst)$|readme/i.test(path) ? proseOf(content, 2) : headOf(path, content)
    if (quotes.length > 0) lines.push('', `From ${path}:`)
    for (const { line, text } of quotes) lines.push(`  "${text}" (${path}:${line})`)
  }
  const scripts = manifests.flatMap(({ facts }) => facts.scripts)
  if (scripts.length > 0) lines.push('', `Scripts: ${scripts.slice(0, MAX_SCRIPTS).join(', ')}`)
  if (listing !== undefined) {
    const told = (counts: [string, number][]) =>
      counts
        .slice(0, MAX_COUNTS)
        .map(([name, count]) => `${name} ${count}`)
        .join(', ')
    const languages = told(countLanguages(listing))
    const places = told(countFolders(listing).map(([name, count]) => [`${name}/`, count]))
    if (languages !== '') lines.push('', `Files by language: ${languages}`)
    if (places !== '') lines.push(`${languages === '' ? '\n' : ''}Files by folder: ${places}`)
    if (listing.files.length + listing.folders.length === 0) lines.push('There are no files here.')
  }
  if (lines.length === 0) lines.push('I could not find out what this project does.')
  return [...lines, ...spaced(failureLines(evidence))]
}

const spaced = (lines: string[]): string[] => (lines.length === 0 ? [] : ['', ...lines])
