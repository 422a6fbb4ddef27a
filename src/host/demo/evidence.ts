import type { Conversation, Finding } from './conversation.ts'
import { type Listing, readListing } from './listing.ts'

/** One line that a search found. */
export type Hit = { keyword: string; path: string; line: number; text: string }

/** What the conversation holds so far, sorted for use. */
export type Evidence = {
  /** Path → content, of files read or attached. */
  files: ReadonlyMap<string, string>
  /** Undefined until a listing came back. */
  listing: Listing | undefined
  hits: Hit[]
  failures: { what: string; path: string | undefined; reason: string }[]
  /** Calls made so far, and those of them that read a file. */
  calls: number
  reads: number
}

export function gatherEvidence({ findings, attached }: Conversation): Evidence {
  const good = (name: string) => findings.filter((finding) => finding.name === name && !finding.failed)
  const files = new Map(attached.map(({ path, content }) => [path, content]))
  for (const finding of good('read_file')) files.set(argument(finding, 'path'), finding.content)
  const listings = good('list_files').map(({ content }) => readListing(content))
  return {
    files,
    listing:
      listings.length === 0
        ? undefined
        : {
            files: [...new Set(listings.flatMap((listing) => listing.files))],
            folders: listings[0]?.folders ?? [],
          },
    hits: good('search_files').flatMap((finding) => readHits(finding)),
    failures: findings.filter(({ failed }) => failed).map(describeFailure),
    calls: findings.length,
    reads: good('read_file').length,
  }
}

/** Reads the answer of `search_files`: `path:line: text` per line, notes in brackets. */
function readHits(finding: Finding): Hit[] {
  const keyword = argument(finding, 'query')
  return finding.content.split('\n').flatMap((row) => {
    const match = /^([^[].*?):(\d+):\s?(.*)$/.exec(row)
    return match ? [{ keyword, path: match[1] ?? '', line: Number(match[2]), text: match[3] ?? '' }] : []
  })
}

function describeFailure(finding: Finding): Evidence['failures'][number] {
  const path = typeof finding.arguments.path === 'string' ? finding.arguments.path : undefined
  const target = path ?? finding.arguments.query ?? finding.arguments.command
  const what = typeof target === 'string' ? `${finding.name} ${target}` : finding.name
  const reason =
    finding.content
      .replace(/^error: /i, '')
      .split('\n')[0]
      ?.slice(0, 200) ?? ''
  return { what, path, reason: reason === '' ? 'no result' : reason }
}

const argument = ({ arguments: args }: Finding, name: string): string => {
  const value = args[name]
  return typeof value === 'string' ? value : ''
}
