import { BUILT_IN_PROVIDERS, ModelReference } from '../protocol/execution/ids.ts'
import { alignmentDistance } from './edit-distance.ts'

/** Longer words are no misspelt names; comparing them would only cost time. */
const MAX_WORD_CHARS = 64
/** One slip per so many characters still looks like the same word; one slip is always allowed. */
const CHARS_PER_SLIP = 3
/** The same where the word may well be right: of `write_file`, `create_file` is no misspelling. */
const CHARS_PER_SURE_SLIP = 4
/** Shorter beginnings fit too many names. */
const MIN_PREFIX_CHARS = 3

/**
 * The name that was probably meant by a word that is none of the names: the same but for letter case, the only one that
 * the word begins or that begins the word, or the nearest by optimal string alignment. Undefined when nothing is near.
 * Of equally near names the first counts.
 */
export function nearest(word: string, names: readonly string[]): string | undefined {
  const wanted = asName(word)
  const slips = Math.max(1, Math.floor(wanted.length / CHARS_PER_SLIP))
  return closest(wanted, names, slips) ?? onlyOneBegun(wanted, names)
}

/** The same where other names are as good: only what hardly can be anything but a slip of the pen counts. */
export function misspelt(word: string, names: readonly string[]): string | undefined {
  const wanted = asName(word)
  return closest(wanted, names, wanted.length < 2 * CHARS_PER_SURE_SLIP ? 1 : 2)
}

const asName = (word: string): string =>
  word
    .trim()
    .toLowerCase()
    .replace(/[\s-]+/g, '_')

function closest(wanted: string, names: readonly string[], mostSlips: number): string | undefined {
  if (wanted === '' || wanted.length > MAX_WORD_CHARS) return undefined
  const same = names.find((name) => name.toLowerCase() === wanted)
  if (same !== undefined) return same
  const chars = Array.from(wanted)
  let best: string | undefined
  let fewest = mostSlips
  for (const name of names) {
    // So many have to be put in or taken out at least.
    if (Math.abs(name.length - wanted.length) > fewest) continue
    const slips = alignmentDistance(chars, Array.from(name.toLowerCase()))
    if (slips > fewest || (slips === fewest && best !== undefined)) continue
    // Of a word of one or two letters, one slip leaves nothing in common.
    if (slips >= chars.length) continue
    best = name
    fewest = slips
  }
  return best
}

function onlyOneBegun(wanted: string, names: readonly string[]): string | undefined {
  if (wanted.length < MIN_PREFIX_CHARS || wanted.length > MAX_WORD_CHARS) return undefined
  const begun = names.filter((name) => name.startsWith(wanted) || wanted.startsWith(name))
  return begun.length === 1 ? begun[0] : undefined
}

/** What people call the maker of a provider's models, and the provider. */
const MAKERS: Readonly<Record<string, string>> = { google: 'gemini', claude: 'anthropic' }

/** The model reference that was probably meant by a text that is none (EC 4). The model's name is left as it is. */
export function suggestReference(text: string): string | undefined {
  const trimmed = text.trim()
  const instance = /^openai-compat[:/]([^/]+)\/(.+)$/is.exec(trimmed)
  if (instance) {
    const name = (instance[1] ?? '').toLowerCase().replace(/[^a-z0-9_-]+/g, '-')
    return accepted(`openai-compat:${name}/${instance[2]}`)
  }
  const parts = /^([^/]*)\/(.+)$/s.exec(trimmed) ?? /^([^:\s]+)[:\s]+(.+)$/s.exec(trimmed)
  if (!parts) return undefined
  const word = (parts[1] ?? '').trim().toLowerCase()
  const provider = Object.hasOwn(MAKERS, word) ? MAKERS[word] : nearest(word, BUILT_IN_PROVIDERS)
  return provider === undefined ? undefined : accepted(`${provider}/${parts[2]?.trim()}`)
}

/** The reference to a model of an OpenAI-compatible server, of which somebody left out that it is one. */
export function instanceReference(text: string): string | undefined {
  const [, name, model] = /^([^/:]+)\/(.+)$/s.exec(text.trim()) ?? []
  return name === undefined ? undefined : accepted(`openai-compat:${name.toLowerCase()}/${model}`)
}

/** Longer references are no slip of the pen, and an answer does not repeat them. */
const MAX_REFERENCE_CHARS = 200

const accepted = (reference: string): string | undefined =>
  reference.length <= MAX_REFERENCE_CHARS && ModelReference.safeParse(reference).success
    ? reference
    : undefined
