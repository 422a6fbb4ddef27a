/**
 * An estimate of tokens that errs high: for texts of the usual kinds it is no less than what the tokenizers of hosted models
 * count, so that what is said to fit a window fits it. It has no vocabulary. A character has a price by what stands
 * before it, in eighths of a token, and prices only add up: a longer text never costs less.
 *
 * What the prices follow: a usual English word with the blank before it is about one token; an unlikely pair of letters
 * begins a new one (random letters, base64, words of other languages); some tokenizers take each digit alone; what they have
 * no token for costs its bytes in UTF-8.
 */

const EIGHTHS_PER_TOKEN = 8

/**
 * Estimated tokens of a text; empty text is 0. Never less than a quarter of its code points, rounded up, which is the
 * contract's own estimate (EC 10.2).
 */
export const estimateTokens = (text: string): number => estimateTokensOf([text])

/** The same of a text in parts, which may be long: they are not put together for it. */
export function estimateTokensOf(parts: readonly string[]): number {
  const { pairs, pages } = priceTables()
  let eighths = 0
  let codePoints = 0
  let before = 0
  /** Letters of the word, or blanks of the run, up to here. */
  let length = 0
  for (const part of parts) {
    codePoints += part.length
    for (let i = 0; i < part.length; i++) {
      const unit = part.charCodeAt(i)
      if (unit < BEYOND) {
        const pair = (Math.min(before, BEYOND) << 7) | unit
        const price = pairs[pair] ?? 0
        // Not a branch, which a processor would guess wrong at the end of each word.
        length = (length & -(price >> GOES_ON_BIT)) + 1
        eighths += price & PRICE
        if (pair === TWO_BLANKS) eighths += length === 2 ? SECOND_BLANK : 0
        else if (length >= LONG_WORD) eighths += longWordPrice(length, price & PRICE)
      } else if (isSecondHalf(unit) && isFirstHalf(before)) codePoints--
      else eighths += unit === before && isBoxLine(unit) ? 2 : (pages[unit >> 4] ?? 0)
      before = unit
    }
  }
  return Math.max(Math.ceil(eighths / EIGHTHS_PER_TOKEN), Math.ceil(codePoints / 4))
}

/** The first code that is not ASCII; as the character before, it stands for all of those. */
const BEYOND = 128

/** An entry of `pairs`: eighths of a token, and a bit that says whether the word, or the run of blanks, goes on. */
const PRICE = 31
const GOES_ON_BIT = 5
const GOES_ON = 1 << GOES_ON_BIT

const BLANK = 32
const TWO_BLANKS = (BLANK << 7) | BLANK
/** The last blank of a run belongs to the word behind it, and the others are a token: a run begins with two. */
const SECOND_BLANK = 7

/** In letters. Longer words are mostly of other languages than English, or none at all. */
const LONG_WORD = 8
const VERY_LONG_WORD = 11

/** What a letter of a long word costs beside its price, if that is low. */
const longWordPrice = (length: number, price: number): number =>
  Math.max(0, (length < VERY_LONG_WORD ? 7 : 6) - price)

/** What often follows a letter in English words and in names of code, from `a` on, which costs nothing; then what sometimes does. */
const FOLLOWERS = [
  'bcdgilmnprstuwy fkv',
  'aeijlouy drs',
  'aehiklortu cpy',
  'aeilos dfruy',
  'acdeflmnpqrstvwxy bgio',
  'aefioru lnsty',
  'ei ahlnorstu',
  'aeiot rsu',
  'acdefglmnoprstv bkxz',
  'e os',
  'ei ns',
  'adefilostuy bvw',
  'abeiopu lmsy',
  'acdefgilostu knpvy',
  'bcdfklmnoprstuvw aegix',
  'aeiloprtuy ds',
  'u ',
  'acdegikmnorstuy flpvw',
  'acehiopstuy klrw',
  'acehiorstuy dflmpw',
  'bdelmnprst acfgio',
  'aei o',
  'aehior ns',
  'pt aceiy',
  'ops entw',
  ' e',
]

/** In eighths: a pair of letters that is not among those, and what each letter costs more among capitals. */
const RARE_PAIR = 8
const CAPITALS = 2

/** Signs that code and data put side by side so often that they are one token together. */
const SIGN_PAIRS =
  `": ); ", =" }, {" :{ () :" ), ', ._ </ ], "> >< ./ */ "$ ). ): /* }) ;- => (' ]) "} !( ". ){ *) ') ") (" :[ ($ ]; (*
   "] [] }; [" )} != "; -> ({ ,"`.split(/\s+/)

const KINDS = ['control', 'blank', 'tab', 'line_end', 'sign', 'digit', 'capital', 'small', 'beyond'] as const
type Kind = (typeof KINDS)[number]

function kindOf(code: number): Kind {
  if (code >= BEYOND) return 'beyond'
  if (code >= 97 && code <= 122) return 'small'
  if (code >= 65 && code <= 90) return 'capital'
  if (code >= 48 && code <= 57) return 'digit'
  if (code === BLANK) return 'blank'
  if (code === 9) return 'tab'
  if (code === 10 || code === 13) return 'line_end'
  return code < 32 || code === 127 ? 'control' : 'sign'
}

/** What a character of one kind costs after one of another. */
function priceAfter(before: Kind, kind: Kind): number {
  switch (kind) {
    case 'small':
      return before === 'small' || before === 'capital' ? RARE_PAIR | GOES_ON : wordPrice(before)
    case 'capital':
      return before === 'capital' ? RARE_PAIR | GOES_ON : wordPrice(before)
    case 'blank':
      return before === 'blank' ? 1 | GOES_ON : 8
    case 'tab':
      return before === 'tab' ? 2 : 9
    case 'line_end':
      return before === 'line_end' ? 1 : before === 'sign' ? 8 : 16
    case 'sign':
      return before === 'sign' ? 8 : before === 'blank' ? 1 : 4
    default:
      return 8
  }
}

/** The first letter of a word, by what stands before it: a blank has paid for it already. */
function wordPrice(before: Kind): number {
  switch (before) {
    case 'blank':
      return 1
    case 'digit':
      return 12
    case 'beyond':
      return 15
    default:
      return 8
  }
}

type PriceTables = { pairs: Uint8Array; pages: Uint8Array }

let tables: PriceTables | null = null

/** Made when the first text is estimated: a start has no use for them. */
function priceTables(): PriceTables {
  tables ??= { pairs: makePairPrices(), pages: makePagePrices() }
  return tables
}

/** What each ASCII character costs, by the one before it. */
function makePairPrices(): Uint8Array {
  const prices = new Uint8Array((BEYOND + 1) << 7)
  const kinds = Array.from({ length: BEYOND + 1 }, (_, code) => kindOf(code))
  for (const [before, kindBefore] of kinds.entries()) {
    const row = new Map(KINDS.map((kind) => [kind, priceAfter(kindBefore, kind)]))
    for (let code = 0; code < BEYOND; code++)
      prices[(before << 7) | code] = row.get(kinds[code] ?? 'control') ?? 0
  }
  for (const [index, followers] of FOLLOWERS.entries()) {
    const letter = 97 + index
    const [often = '', sometimes = ''] = followers.split(' ')
    for (const next of often + sometimes) {
      const code = next.charCodeAt(0)
      const price = often.includes(next) ? 0 : 4
      prices[(letter << 7) | code] = price | GOES_ON
      prices[((letter - 32) << 7) | code] = price | GOES_ON
      prices[((letter - 32) << 7) | (code - 32)] = (price + CAPITALS) | GOES_ON
    }
  }
  for (let code = 0; code < BEYOND; code++) if (kinds[code] === 'sign') prices[(code << 7) | code] = 4
  for (const pair of SIGN_PAIRS) prices[(pair.charCodeAt(0) << 7) | pair.charCodeAt(1)] = 2
  return prices
}

const isFirstHalf = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00
const isSecondHalf = (unit: number): boolean => unit >= 0xdc00 && unit < 0xe000
/** Frames and rules repeat the same line many times, and tokenizers know such runs. */
const isBoxLine = (unit: number): boolean => unit >= 0x2500 && unit < 0x2580

/** Up to which code unit a price holds, in steps of 16. Scripts without an entry of their own cost their bytes. */
const BEYOND_ASCII: readonly (readonly [end: number, eighths: number])[] = [
  [0xc0, 16],
  [0x100, 8], // western European letters
  [0x370, 16],
  [0x400, 8], // Greek
  [0x460, 6], // Cyrillic
  [0x590, 16],
  [0x700, 9], // Hebrew, Arabic
  [0x900, 16],
  [0x980, 9], // Devanagari
  [0xa00, 12], // Bengali
  [0xb00, 15], // Gurmukhi, Gujarati
  [0xb80, 24],
  [0xe00, 16], // Tamil, Telugu, Kannada, Malayalam, Sinhala
  [0xe80, 8], // Thai
  [0x1000, 24],
  [0x1100, 17], // Burmese, Georgian
  [0x1e00, 24],
  [0x1f00, 16], // Vietnamese
  [0x2010, 24],
  [0x2030, 12], // dashes, quotation marks, bullets
  [0x2500, 24],
  [0x2580, 10], // lines of boxes
  [0x3000, 24],
  [0x3100, 8], // Japanese syllables and marks
  [0x4e00, 24],
  [0xa000, 14], // Chinese characters
  [0xac00, 24],
  [0xd7b0, 14], // Korean syllables
  [0xd830, 32],
  [0xd840, 24], // pictures
  [0xe000, 32],
  [0xff00, 24],
  [0xfff0, 12], // wide forms
  [0x10000, 24],
]

/** What each other code unit costs, by its sixteen. */
function makePagePrices(): Uint8Array {
  const pages = new Uint8Array(0x10000 >> 4)
  let start = 0
  for (const [end, eighths] of BEYOND_ASCII) {
    pages.fill(eighths, start >> 4, end >> 4)
    start = end
  }
  return pages
}
