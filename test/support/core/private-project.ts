/**
 * A project with files under their true names, the ways in which people write those names, and the patterns with which
 * they fence them off. What a pattern hits is said here of true names, without any of the router's own code.
 */

import type { Random } from './random.ts'

/** Where the project lies, and what that says about names. */
export type Place = {
  root: string
  /** The root without a slash at its end. */
  base: string
  /** The folder around it. */
  parent: string
  separator: '/' | '\\'
  /** Two spellings that differ in letter case are one file. */
  foldsCase: boolean
  /** What Windows drops from names is dropped. */
  windows: boolean
  /** The folder around the project is the user's own, `~`. */
  atHome: boolean
}

const place = (
  root: string,
  parent: string,
  traits: Partial<Pick<Place, 'foldsCase' | 'windows' | 'atHome'>> = {},
): Place => ({
  root,
  base: root.replace(/[/\\]$/, ''),
  parent,
  separator: parent.includes('\\') ? '\\' : '/',
  foldsCase: false,
  windows: false,
  atHome: false,
  ...traits,
})

export const PLACES: readonly Place[] = [
  place('/home/u/code', '/home/u', { atHome: true }),
  place('/home/u/code/', '/home/u', { atHome: true }),
  place('/srv/code', '/srv'),
  place('/Users/u/code', '/Users/u', { foldsCase: true, atHome: true }),
  place('/Volumes/disk/code', '/Volumes/disk', { foldsCase: true }),
  place('/mnt/c/dev/code', '/mnt/c/dev', { foldsCase: true }),
  place('C:\\Users\\u\\code', 'C:\\Users\\u', { foldsCase: true, windows: true, atHome: true }),
  place('d:/dev/code', 'd:/dev', { foldsCase: true, windows: true }),
  place('\\\\server\\share\\code', '\\\\server\\share', { foldsCase: true, windows: true }),
]

/** True names, relative to the root, with forward slashes. */
export const FILES = [
  'src/a.ts',
  'src/lib/b.ts',
  'docs/read me.md',
  'secrets/key',
  'secrets/deep/er/key.txt',
  'app/.env',
  '.env',
  'certs/server.pem',
  'privé/notes.md',
  '../outside/x.ts',
] as const

export const baseOf = (file: string): string => file.split('/').at(-1) ?? ''
const folderOf = (file: string): string => file.split('/').slice(0, -1).join('/')

/** A pattern and the true names that it hits, given where the project lies. */
export type Fence = { pattern: string; hits: (file: string) => boolean }

const within = (folder: string) => (file: string) => file.startsWith(folder)
const named = (name: string) => (file: string) => file.split('/').includes(name)

export function fencesAt({ base, parent, foldsCase, atHome }: Place): Fence[] {
  return [
    { pattern: 'secrets/**', hits: within('secrets/') },
    { pattern: './secrets/**', hits: within('secrets/') },
    { pattern: 'secrets/', hits: within('secrets/') },
    { pattern: 'secrets', hits: named('secrets') },
    { pattern: 'secrets/deep', hits: within('secrets/deep/') },
    { pattern: 'secrets/deep/*', hits: within('secrets/deep/') },
    { pattern: '**/er', hits: named('er') },
    { pattern: '/secrets/**', hits: within('secrets/') },
    { pattern: '/secrets', hits: within('secrets/') },
    { pattern: `${base}/secrets/**`, hits: within('secrets/') },
    { pattern: 'secrets\\deep\\**', hits: within('secrets/deep/') },
    { pattern: '[rs]ecrets/k*', hits: within('secrets/k') },
    { pattern: 'SECRETS/**', hits: foldsCase ? within('secrets/') : () => false },
    { pattern: '**/.env', hits: named('.env') },
    { pattern: '.env', hits: named('.env') },
    { pattern: '.ENV', hits: foldsCase ? named('.env') : () => false },
    { pattern: 'app', hits: named('app') },
    { pattern: '*.pem', hits: (file) => file.endsWith('.pem') },
    { pattern: '{app,certs}/**', hits: (file) => /^(app|certs)\//.test(file) },
    { pattern: 'docs/read me.md', hits: (file) => file === 'docs/read me.md' },
    { pattern: 'prive\u0301/**', hits: within('privé/') },
    { pattern: '../outside/**', hits: within('../outside/') },
    { pattern: `${parent}/outside/**`, hits: within('../outside/') },
    { pattern: '~/outside/**', hits: atHome ? within('../outside/') : () => false },
    { pattern: '.agents/skills/inside/**', hits: within('.agents/skills/inside/') },
    { pattern: 'inside', hits: named('inside') },
    { pattern: 'tools/*', hits: within('tools/') },
    { pattern: 'nowhere/**', hits: () => false },
  ]
}

/** A pattern that nobody can read: it fails closed, and hits everything. */
export const BROKEN: Fence = { pattern: 'secrets/[**', hits: () => true }

/** The absolute name of a file, as its system writes it. */
export function absoluteOf(file: string, { base, parent, separator }: Place): string {
  const name = file.startsWith('../') ? `${parent}/${file.slice(3)}` : `${base}/${file}`
  return separator === '/' ? name : name.replaceAll('/', '\\')
}

/** One of the ways in which a client or a model may write a file's name in a field of its own. */
export function spelled(file: string, place: Place, random: Random): string {
  const absolute = absoluteOf(file, place)
  const [first = '', ...rest] = file.split('/')
  const ways = [
    file,
    file,
    `./${file}`,
    absolute,
    `"${file}"`,
    file.replaceAll('/', '\\'),
    file.normalize('NFD'),
    `x/../${file}`,
    [first, '.', ...rest].join('/'),
    absolute.replaceAll('\\', '/'),
  ]
  if (place.foldsCase) ways.push(file.toUpperCase(), absolute.toUpperCase())
  if (place.windows) {
    ways.push(`${file}.`, `${file} . `, `${file}::$DATA`)
    if (!file.startsWith('.') && rest.length > 0) ways.push([`${first}.`, ...rest].join('\\'))
  }
  return random.pick(ways)
}

/** A command line that reads a file, as a model writes it. */
export function commandFor(file: string, place: Place, random: Random): string {
  const folder = folderOf(file)
  const base = baseOf(file)
  const plain = file.replaceAll(' ', '\\ ')
  const middle = Math.ceil(file.length / 2)
  const ways = [
    `cat "${file}"`,
    `head -n 5 ${plain} | sort`,
    `git show "HEAD:${file}"`,
    `sed -n '1,9p' '${file}'; echo done`,
    `tool --file="${file}"`,
    `cat ${quotedInside(file, middle)}`,
    `cat ./"${file}" > /tmp/copy`,
    `sort <"${file}"`,
    `echo "$(cat '${file}')"`,
    `A=1 less -- ${plain} 2>/dev/null || true`,
    `type "${absoluteOf(file, place)}"`,
  ]
  if (folder !== '') {
    ways.push(`cd "${folder}" && cat "${base}"`, `cd ${folder}; grep -n x ${base.replaceAll(' ', '\\ ')}`)
  }
  if (!base.includes(' ')) ways.push(`cat ${file.slice(0, file.length - base.length)}${abbreviated(base)}`)
  if (!place.windows && !file.includes(' ')) ways.push(`cat ${file.slice(0, middle)}\\${file.slice(middle)}`)
  return random.pick(ways)
}

/** A name with a wildcard that leaves its beginning and its ending; what leaves neither stands for too much to name anything. */
function abbreviated(base: string): string {
  const dot = base.lastIndexOf('.')
  const ending = dot > 0 ? base.slice(dot) : ''
  return `${base.slice(0, Math.min(2, base.length - ending.length))}*${ending}`
}

/** A shell takes away quotes wherever they stand. */
const quotedInside = (file: string, at: number): string => `${file.slice(0, at)}"${file.slice(at)}"`

/** Whether routing, which knows nothing of letter case and of what Windows drops, reads a spelling as this file. */
export function isRead(spelling: string, file: string, place: Place): boolean {
  const forward = (text: string) => text.replaceAll('\\', '/').replaceAll('"', '').normalize('NFC')
  const plain = forward(spelling).replaceAll('/./', '/').replace('x/../', '')
  return [file, `./${file}`, forward(absoluteOf(file, place))].includes(plain)
}
