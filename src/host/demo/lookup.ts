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
        files.map(readFile),
        ...(lost ? [[listFiles('.')], ...planOverview(evidence).stages] : []),
      ],
      answer: () => answerLookup(evidence, keywords),
    }
  }

/** "What is in src/main.ts?": reads the named files; one that is not there is looked for by its name. */
export const planFiles =
  (paths: readonly string[], keywords: readonly string[]): Planner =>
  (evidence) => {
    const missing = paths.filter((path) => !evidence.files.has(path))
    const failed = missing.filter((path) => evidence.failures.some((failure) => failure.path === path))
    const found = failed.flatMap((path) => namesakes(evidence, path)).slice(0, MAX_FILES)
    const nothing = evidence.files.size === 0
    // A word with a dot may have been no path at all.
    const words = [...keywords, ...failed].slice(0, MAX_FILES)
    return {
      stages: [
        missing.map(readFile),
        failed.map(listFiles),
        ...(failed.length > 0 && found.length === 0 ? [[listFiles('.')]] : []),
        found.map(readFile),
        ...(nothing && failed.length > 0 ? planLookup(words)(evidence).stages : []),
      ],
      answer: () => answerFiles(evidence, paths, nothing ? words : keywords),
    }
  }

function namesakes({ listing }: Evidence, path: string): string[] {
  const name = path.replace(/\/$/, '').split('/').at(-1)?.toLowerCase()
  return (listing?.files ?? []).filter((file) => file.toLowerCase().split('/').at(-1) === name)
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
    (isTest ? 15 : 0) -
    (NOISE.test(path) ? 40 : 0)
  )
}

function answerLookup(evidence: Evidence, keywords: readonly string[]): string[] {
  const sought = keywords.map((keyword) => `"${keyword}"`).join(', ')
  const ranked = rankFiles(evidence, keywords)
  const order = [...ranked, ...[...evidence.files.keys()].filter((path) => !ranked.includes(path))]
  const quoted = order.flatMap((path) => {
    const content = evidence.files.get(path)
    const quotes =
      content === undefined ? fromHits(evidence, path) : bestLines(path, content, keywords, MAX_LINES)
    return quotes.length === 0 ? [] : [...quoteLines(path, quotes), '']
  })
  const failures = failureLines(evidence)
  if (quoted.length > 0) {
    const count = new Set(evidence.hits.map(({ path }) => path)).size
    const where = count > 0 ? ` (${evidence.hits.length} lines in ${count} files)` : ''
    return [`What I found about ${sought}${where}:`, '', ...quoted, ...failures]
  }
  return [`I found nothing about ${sought}.`, '', ...planOverview(evidence).answer()]
}

function fromHits({ hits }: Evidence, path: string): Quote[] {
  return hits.filter((hit) => hit.path === path).slice(0, MAX_LINES)
}

function answerFiles(evidence: Evidence, paths: readonly string[], keywords: readonly string[]): string[] {
  const lines: string[] = []
  for (const [path, content] of evidence.files) {
    const asked = paths.some((wanted) => wanted === path || path.endsWith(`/${wanted.split('/').at(-1)}`))
    if (!asked) continue
    const about = keywords.length === 0 ? [] : bestLines(path, content, keywords, MAX_LINES)
    const rows = content === '' ? 0 : content.replace(/\n$/, '').split('\n').length
    lines.push(`${path} has ${rows} lines.`)
    if (about.length > 0) lines.push(...quoteLines(path, about))
    else {
      lines.push(...quoteLines(path, headOf(path, content)))
      const outline = outlineOf(content, MAX_OUTLINE)
      if (outline.length > 0) lines.push('Outline:', ...quoteLines(path, outline))
    }
    lines.push('')
  }
  for (const path of paths.filter((wanted) => !evidence.files.has(wanted)))
    lines.push(...folderLines(evidence, path))
  if (lines.length > 0) return [...lines, ...failureLines(evidence)]
  return answerLookup(evidence, keywords)
}

function folderLines({ listing }: Evidence, path: string): string[] {
  const prefix = `${path.replace(/\/$/, '')}/`
  const inside = (listing?.files ?? []).filter((file) => file.startsWith(prefix))
  if (inside.length === 0) return []
  const names = inside.slice(0, MAX_OUTLINE).map((file) => `  ${file}`)
  return [
    `${prefix} holds ${inside.length} files:`,
    ...names,
    ...(inside.length > MAX_OUTLINE ? ['  …'] : []),
    '',
  ]
}

const quoteLines = (path: string, quotes: readonly Quote[]): string[] =>
  quotes.map(({ line, text }) => `  ${path}:${line}  ${text}`)
