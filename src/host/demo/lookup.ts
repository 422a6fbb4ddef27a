import type { Evidence, Hit } from './evidence.ts'
import { planOverview } from './overview.ts'
import { failureLines, listFiles, type Planner, readFile, searchFiles } from './plan.ts'
import { bestLines, headOf, outlineOf, type Quote } from './quote.ts'

/** Files read for one question, and lines quoted from each. */
const MAX_FILES = 3
const MAX_LINES = 4
const MAX_OUTLINE = 12

/** A file with a thousand matches is not a thousand times better than one with a few. */
const MAX_COUNTED_HITS = 5

/** "Where are sessions stored?": searches for the words that carry the question, reads the best hits, quotes them. */
export const planLookup =
  (keywords: readonly string[]): Planner =>
  (evidence) => {
    const files = rankFiles(evidence, keywords)
    const lost = files.length === 0
    return {
      stages: [
        keywords.map(searchFiles),
        // Of noise, the lines that the search found are enough: a lock file alone can fill the window.
        files.filter((path) => !NOISE.test(path)).map(readFile),
        ...(lost ? [[listFiles('.')], ...planOverview(evidence).stages] : []),
      ],
      answer: () => answerLookup(evidence, keywords),
    }
  }

/** "What is in src/main.ts?": reads the named files; one that is not there is looked for by its name. */
export const planFiles =
  (paths: readonly string[], keywords: readonly string[]): Planner =>
  (evidence) => {
    const read = filesAskedFor(evidence, paths)
    const failed = paths.filter((path) => evidence.failures.some((failure) => failure.path === path))
    const folders = failed.filter((path) => !/\.\w+$/.test(path))
    const listing = failed.length > folders.length ? [listFiles('.')] : []
    const found = failed.flatMap((path) => namesakes(evidence, path)).slice(0, MAX_FILES)
    // A word with a dot may have been no path at all.
    const lookup = planLookup([...keywords, ...failed].slice(0, MAX_FILES))(evidence)
    const lost = read.length === 0 && failed.length > 0 && folders.length === 0
    return {
      stages: [
        paths.filter((path) => !evidence.files.has(path)).map(readFile),
        [...folders.map(listFiles), ...listing],
        found.map(readFile),
        ...(lost ? lookup.stages : []),
      ],
      answer: () => {
        const lines = [
          ...read.flatMap(([path, content]) => describeFile(path, content, keywords)),
          ...folders.flatMap((path) => describeFolder(evidence, path)),
        ]
        if (lines.length === 0) return lookup.answer()
        // A file that was found elsewhere under its name was not missed.
        const missed = evidence.failures.filter(({ path }) =>
          read.every(([found]) => nameOf(found) !== nameOf(path ?? '')),
        )
        return [...lines, ...failureLines({ ...evidence, failures: missed })]
      },
    }
  }

function filesAskedFor({ files }: Evidence, paths: readonly string[]): [path: string, content: string][] {
  return [...files].filter(([path]) =>
    paths.some((wanted) => wanted === path || nameOf(wanted) === nameOf(path)),
  )
}

const nameOf = (path: string): string => path.replace(/\/$/, '').split('/').at(-1)?.toLowerCase() ?? ''

function namesakes({ listing }: Evidence, path: string): string[] {
  return (listing?.files ?? []).filter((file) => nameOf(file) === nameOf(path))
}

/** Generated files and data say a word a thousand times and explain it nowhere. */
const NOISE =
  /(^|\/)(package-lock\.json|yarn\.lock|pnpm-lock\.yaml|Cargo\.lock|CHANGELOG\.md|dist|build|vendor|fixtures?|golden|snapshots?|__snapshots__)(\/|$)|\.(min\.js|map|snap|svg|lock|csv)$/i

function rankFiles({ hits, listing }: Evidence, keywords: readonly string[]): string[] {
  const byFile = new Map<string, Hit[]>()
  for (const hit of hits) byFile.set(hit.path, [...(byFile.get(hit.path) ?? []), hit])
  const scores = new Map<string, number>()
  for (const [path, inFile] of byFile) scores.set(path, scoreOf(path, inFile))
  if (byFile.size === 0) {
    // No search: a path that bears a keyword is the next best sign.
    for (const path of listing?.files ?? []) {
      const bears = keywords.filter((keyword) => path.toLowerCase().includes(keyword.toLowerCase())).length
      if (bears > 0) scores.set(path, bears)
    }
  }
  return [...scores]
    .sort(([pathA, a], [pathB, b]) => b - a || (pathA < pathB ? -1 : 1))
    .slice(0, MAX_FILES)
    .map(([path]) => path)
}

function scoreOf(path: string, hits: readonly Hit[]): number {
  const words = new Set(hits.map(({ keyword }) => keyword))
  const inPath = [...words].filter((word) => path.toLowerCase().includes(word.toLowerCase())).length
  const isTest = /(^|\/)(tests?|spec|__tests__)\/|\.(test|spec)\.\w+$/.test(path)
  const isDocument = /\.(md|rst|adoc)$/i.test(path)
  return (
    words.size * 20 +
    inPath * 10 +
    Math.min(hits.length, MAX_COUNTED_HITS) +
    (isDocument ? 4 : 0) -
    (/\.(json|ya?ml|toml)$/i.test(path) ? 15 : 0) -
    (isTest ? 15 : 0) -
    (NOISE.test(path) ? 40 : 0)
  )
}

function answerLookup(evidence: Evidence, keywords: readonly string[]): string[] {
  const ranked = rankFiles(evidence, keywords)
  const order = [...ranked, ...[...evidence.files.keys()].filter((path) => !ranked.includes(path))]
  const quoted = order.flatMap((path) => {
    const content = evidence.files.get(path)
    const quotes =
      content === undefined ? fromHits(evidence, path) : bestLines(path, content, keywords, MAX_LINES)
    return quotes.length === 0 ? [] : [...quoteLines(path, quotes), '']
  })
  if (quoted.length === 0) return ['I found nothing about that.', '', ...planOverview(evidence).answer()]
  const count = new Set(evidence.hits.map(({ path }) => path)).size
  const where =
    count > 0 ? ` (the best of ${plural(evidence.hits.length, 'line')} in ${plural(count, 'file')})` : ''
  return [`What I found${where}:`, '', ...quoted, ...failureLines(evidence)]
}

function fromHits({ hits }: Evidence, path: string): Quote[] {
  return hits.filter((hit) => hit.path === path).slice(0, MAX_LINES)
}

function describeFile(path: string, content: string, keywords: readonly string[]): string[] {
  const count = content === '' ? 0 : content.replace(/\n$/, '').split('\n').length
  const head = `${path} has ${plural(count, 'line')}.`
  const about = bestLines(path, content, keywords, MAX_LINES)
  if (about.length > 0) return [head, ...quoteLines(path, about), '']
  const outline = outlineOf(content, MAX_OUTLINE)
  const definitions = outline.length > 0 ? ['Outline:', ...quoteLines(path, outline)] : []
  return [head, ...quoteLines(path, headOf(path, content)), ...definitions, '']
}

function describeFolder({ listing }: Evidence, path: string): string[] {
  const prefix = `${path.replace(/\/$/, '')}/`
  const inside = (listing?.files ?? []).filter((file) => file.startsWith(prefix))
  if (inside.length === 0) return []
  const names = inside.slice(0, MAX_OUTLINE).map((file) => `  ${file}`)
  const rest = inside.length > MAX_OUTLINE ? ['  …'] : []
  return [`${prefix} holds ${plural(inside.length, 'file')}:`, ...names, ...rest, '']
}

const quoteLines = (path: string, quotes: readonly Quote[]): string[] =>
  quotes.map(({ line, text }) => `  ${path}:${line}  ${text}`)

const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`
