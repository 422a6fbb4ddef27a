import { makeCall, type Offered, type PrintedCall } from './call-shapes.ts'
import { type Cursor, END, literal, type Reading, readName, skipSpace } from './cursor.ts'
import { type FormReader, type PrintedForm, readClosing, readJsonCalls } from './form.ts'
import { FUNCTION, readFunctionTag, readToolCallTag, TOOL_CALL } from './function-tag.ts'
import { readJsonValue } from './json-scanner.ts'
import { THINKING } from './thinking.ts'

const ARGS = '[ARGS]'

/** A mark and nothing that closes it: the form ends with its last value. */
const readUnclosedJson: FormReader = function* (cursor, offered) {
  yield* skipSpace(cursor)
  const calls = yield* readJsonCalls(cursor, offered)
  return calls && { calls, byEnd: false }
}

/** `[TOOL_CALLS]` with JSON, or with a name and its arguments (Mistral, by the age of its tokenizer). */
const readMistral: FormReader = function* (cursor, offered) {
  yield* skipSpace(cursor)
  if (cursor.isAt('[') || cursor.isAt('{')) return yield* readUnclosedJson(cursor, offered)
  const tool = offered.get(yield* readName(cursor))
  if (tool === undefined) return undefined
  if ((yield* literal(cursor, [ARGS, '[CALL_ID]'])) === '[CALL_ID]') {
    yield* readName(cursor)
    if ((yield* literal(cursor, [ARGS])) === undefined) return undefined
  }
  return whole(yield* readArguments(cursor, tool.name))
}

/** `functools[…]` (Phi): the list follows at once. */
const readFunctools: FormReader = function* (cursor, offered) {
  return cursor.isAt('[') ? yield* readUnclosedJson(cursor, offered) : undefined
}

const DEEPSEEK_CALLS = '<｜tool▁calls▁begin｜>'
const DEEPSEEK_CALLS_END = '<｜tool▁calls▁end｜>'
const DEEPSEEK_CALL = '<｜tool▁call▁begin｜>'

const readDeepSeek: FormReader = function* (cursor, offered) {
  const calls: PrintedCall[] = []
  for (;;) {
    yield* skipSpace(cursor)
    if (cursor.isAt(END)) return calls.length === 0 ? undefined : { calls, byEnd: true }
    const mark = yield* literal(cursor, [DEEPSEEK_CALL, DEEPSEEK_CALLS_END])
    if (mark === DEEPSEEK_CALLS_END) return calls.length === 0 ? undefined : { calls, byEnd: false }
    const form = mark && (yield* readDeepSeekCall(cursor, offered))
    if (!form) return undefined
    calls.push(...form.calls)
  }
}

/** `name<sep>{…}` or, in older models, `function<sep>name` and the arguments in a fence. */
const readDeepSeekCall: FormReader = function* (cursor, offered) {
  let name = yield* readName(cursor)
  if ((yield* literal(cursor, ['<｜tool▁sep｜>'])) === undefined) return undefined
  if (name === 'function' && !cursor.isAt('{')) name = yield* readName(cursor)
  if (!offered.has(name)) return undefined
  yield* skipSpace(cursor)
  yield* literal(cursor, ['```json'])
  const call = yield* readArguments(cursor, name)
  if (call === undefined) return undefined
  yield* skipSpace(cursor)
  yield* literal(cursor, ['```'])
  return yield* readClosing(cursor, [call], '<｜tool▁call▁end｜>')
}

function* readArguments(cursor: Cursor, name: string): Reading<PrintedCall | undefined> {
  yield* skipSpace(cursor)
  const value = cursor.isAt('{') ? yield* readJsonValue(cursor) : undefined
  return value === undefined ? undefined : makeCall(name, value)
}

const whole = (call: PrintedCall | undefined): PrintedForm | undefined =>
  call && { calls: [call], byEnd: false }

/** Forms whose beginning says what they are, and thinking, in which there are none. */
export class Marks {
  /** How forms and thinking begin. None of these begins with another. */
  readonly beginnings: readonly string[]
  readonly #readers: ReadonlyMap<string, FormReader>
  readonly #firstChars: ReadonlySet<string>

  constructor(readers: readonly (readonly [string, FormReader])[]) {
    this.#readers = new Map(readers)
    this.beginnings = [...this.#readers.keys(), ...THINKING.keys()]
    this.#firstChars = new Set(this.beginnings.map((beginning) => beginning.charAt(0)))
  }

  mayBeginWith(char: string): boolean {
    return this.#firstChars.has(char)
  }

  /** @param beginning one of `beginnings`, or what was found instead of one */
  readerAfter(beginning: string | undefined): FormReader | undefined {
    return beginning === undefined ? undefined : this.#readers.get(beginning)
  }
}

const READERS: readonly (readonly [string, FormReader])[] = [
  [TOOL_CALL, readToolCallTag],
  [FUNCTION, readFunctionTag],
  ['[TOOL_CALLS]', readMistral],
  ['<|python_tag|>', readUnclosedJson],
  ['functools', readFunctools],
  [DEEPSEEK_CALLS, readDeepSeek],
  [DEEPSEEK_CALL, readDeepSeekCall],
]

/** The marks that count anywhere. */
export const MARKS = new Marks(READERS)

/**
 * The marks that count at the beginning of a line: where a server swallowed Mistral's first mark, the name of a tool and
 * the second mark are left.
 */
export function marksOfLine(offered: Offered): Marks {
  const named = [...offered.keys()].map((name): [string, FormReader] => [
    name + ARGS,
    function* (cursor) {
      return whole(yield* readArguments(cursor, name))
    },
  ])
  return new Marks([...READERS, ...named])
}
