/** Texts that say of a piece of theirs which file it is from: diffs, listings of hits, files one after the other, JSON. */

import { absoluteOf, commandFor, type Place, spelled } from './private-project.ts'
import type { Random } from './random.ts'

/** A name as git quotes it: C escapes, and the bytes of UTF-8 in octal. */
const quoted = (side: string, file: string): string =>
  `"${side}/${Array.from(new TextEncoder().encode(file), (byte) =>
    byte > 126 ? `\\${byte.toString(8).padStart(3, '0')}` : String.fromCharCode(byte),
  ).join('')}"`

/** What git prints about a file, in one of its forms. `text` is what it shows of it. */
export function diffOf(file: string, text: string, random: Random): string {
  const header = random.pick([
    `diff --git a/${file} b/${file}`,
    `diff --git a/${file} b/${file}\nindex 12ab..34cd 100644\n--- a/${file}\n+++ b/${file}`,
    `diff --git ${quoted('a', file)} ${quoted('b', file)}`,
    `diff --git ${file} ${file}`,
    `diff --git i/${file} w/${file}`,
    `diff --git a/${file} b/other.ts`,
    `diff --git a/other.ts b/${file}`,
    `diff --git a/one.ts b/two.ts\nrename from ${file}\nrename to two.ts`,
    `diff --cc ${file}`,
    `--- a/${file}\n+++ b/${file}`,
    `--- a/${file}\t2026-01-01\n+++ /dev/null`,
  ])
  return `${header}\n@@ -1 +1 @@\n-${text}\n`
}

/** A piece of a file as a tool prints it that was not asked for this file. */
export function attributed(file: string, text: string, place: Place, random: Random): string {
  const path = random.pick([file, file, `./${file}`, absoluteOf(file, place)])
  return random.pick([
    `${path}:12:${text}`,
    `${path}:3:5:${text}`,
    `==> ${path} <==\n${text}`,
    diffOf(file, text, random),
    JSON.stringify({ path, text }),
    JSON.stringify({ hits: [{ file: path, line: 3, content: text }] }, null, random.pick([0, 2])),
    JSON.stringify([{ uri: { filePath: path }, preview: { lines: [text] } }]),
  ])
}

/**
 * The arguments of a call that reads or writes a file, in one of the forms that tools have.
 * @param text what is written
 * @param only the tools that there are; otherwise any
 */
export function callOn(
  file: string,
  place: Place,
  text: string,
  random: Random,
  only?: readonly string[],
): { name: string; arguments: Record<string, unknown> } {
  const path = spelled(file, place, random)
  const command = commandFor(file, place, random)
  const ways = [
    { name: 'read_file', arguments: { path } },
    { name: 'write_file', arguments: { path, content: text } },
    { name: 'shell', arguments: { command } },
    { name: 'a_tool', arguments: { file_path: path } },
    { name: 'a_tool', arguments: { paths: ['src/other.ts', path] } },
    { name: 'a_tool', arguments: { target: path, note: text } },
    { name: 'a_tool', arguments: { edits: [{ where: { uri: path }, with: text }] } },
    { name: 'a_tool', arguments: { cmd: command } },
    { name: 'a_tool', arguments: { argv: ['cat', '--', path] } },
  ]
  return random.pick(only === undefined ? ways : ways.filter(({ name }) => only.includes(name)))
}
