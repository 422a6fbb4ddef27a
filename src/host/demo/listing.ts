/** What `list_files` told: files with their paths, and folders of which only the number of files is known. */
export type Listing = { files: string[]; folders: { path: string; files: number }[] }

/** Reads the answer of `list_files`: a path per line, `folder/ (3 files)` for what was not opened, notes in brackets. */
export function readListing(content: string): Listing {
  const listing: Listing = { files: [], folders: [] }
  for (const line of content.split('\n')) {
    const text = line.trim().replace(/^(- |\.\/)/, '')
    if (text === '' || text.startsWith('[')) continue
    const folder = /^(.+)\/(?: \((\d+) files?\))?$/.exec(text)
    if (folder === null) listing.files.push(text)
    else listing.folders.push({ path: folder[1] ?? '', files: Number(folder[2] ?? 0) })
  }
  return listing
}

/** A language and the endings of its files, per line. */
const LANGUAGE_ENDINGS = `
C: c h
C++: cc cpp cxx hpp
C#: cs
Clojure: clj
CSS: css scss
Dart: dart
Elixir: ex exs
Erlang: erl
Go: go
Haskell: hs
HTML: html
Java: java
JavaScript: js cjs mjs jsx
Julia: jl
Kotlin: kt
Lua: lua
Markdown: md
OCaml: ml
Perl: pl
PHP: php
Python: py
R: r
Ruby: rb
Rust: rs
Scala: scala
Shell: sh bash
SQL: sql
Svelte: svelte
Swift: swift
TypeScript: ts mts cts tsx
Vue: vue
Zig: zig`

const LANGUAGES: ReadonlyMap<string, string> = new Map(
  LANGUAGE_ENDINGS.trim()
    .split('\n')
    .flatMap((row) => {
      const [language = '', endings = ''] = row.split(': ')
      return endings.split(' ').map((ending): [string, string] => [ending, language])
    }),
)

export const extensionOf = (path: string): string => /\.([^./]+)$/.exec(path)?.[1]?.toLowerCase() ?? ''

/** Languages with their number of files, most first. */
export function countLanguages({ files }: Listing): [language: string, files: number][] {
  return counted(files.map((file) => LANGUAGES.get(extensionOf(file))))
}

/** The folders of the top level with their number of files, fullest first. */
export function countFolders({ files, folders }: Listing): [folder: string, files: number][] {
  const top = (path: string) => (path.includes('/') ? path.slice(0, path.indexOf('/')) : undefined)
  const counts = new Map(counted(files.map(top)))
  for (const { path, files: inside } of folders) {
    const name = top(`${path}/`) ?? path
    counts.set(name, (counts.get(name) ?? 0) + inside)
  }
  return sorted([...counts])
}

function counted(names: (string | undefined)[]): [string, number][] {
  const counts = new Map<string, number>()
  for (const name of names) if (name !== undefined) counts.set(name, (counts.get(name) ?? 0) + 1)
  return sorted([...counts])
}

const sorted = (counts: [string, number][]): [string, number][] =>
  counts.sort(([nameA, a], [nameB, b]) => b - a || (nameA < nameB ? -1 : 1))
