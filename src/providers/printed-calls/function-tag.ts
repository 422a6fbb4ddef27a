import { makeCall, type Offered, type PrintedCall } from './call-shapes.ts'
import { type Cursor, END, literal, type Reading, readName, skipSpace, textUntil } from './cursor.ts'
import { type FormReader, type PrintedForm, readClosing, readJsonCalls } from './form.ts'
import { readJsonValue } from './json-scanner.ts'
import { typedValue } from './parameter-values.ts'

export const TOOL_CALL = '<tool_call>'
export const FUNCTION = '<function='
const TOOL_CALL_END = '</tool_call>'

/** `<tool_call>` with JSON (Hermes, Qwen) or with function tags (Qwen3-Coder) in it. */
export const readToolCallTag: FormReader = function* (cursor, offered) {
  yield* skipSpace(cursor)
  const calls = yield* cursor.isAt('<') ? readFunctions(cursor, offered) : readJsonCalls(cursor, offered)
  return yield* readClosing(cursor, calls, TOOL_CALL_END, TOOL_CALL)
}

/** `<function=name>` on its own (Llama), or where Qwen3-Coder forgot the opening tag around it. */
export const readFunctionTag: FormReader = function* (cursor, offered) {
  const form = yield* readFunction(cursor, offered)
  if (form === undefined) return undefined
  yield* skipSpace(cursor)
  yield* literal(cursor, [TOOL_CALL_END])
  return form
}

function* readFunctions(cursor: Cursor, offered: Offered): Reading<PrintedCall[] | undefined> {
  const calls: PrintedCall[] = []
  while ((yield* literal(cursor, [FUNCTION])) !== undefined) {
    const form = yield* readFunction(cursor, offered)
    if (form === undefined) return undefined
    calls.push(...form.calls)
    yield* skipSpace(cursor)
  }
  return calls.length === 0 ? undefined : calls
}

/** What follows `<function=`: the name, and JSON or parameter tags up to the closing tag. */
function* readFunction(cursor: Cursor, offered: Offered): Reading<PrintedForm | undefined> {
  const tool = offered.get(yield* readName(cursor))
  if (tool === undefined || !cursor.isAt('>')) return undefined
  yield
  yield* skipSpace(cursor)
  const value = yield* cursor.isAt('{') ? readJsonValue(cursor) : readParameters(cursor, tool)
  const call = value === undefined ? undefined : makeCall(tool.name, value)
  return yield* readClosing(cursor, call && [call], '</function>')
}

type Tool = Parameters<typeof typedValue>[0]

function* readParameters(cursor: Cursor, tool: Tool): Reading<Record<string, unknown> | undefined> {
  const values: [string, unknown][] = []
  while ((yield* literal(cursor, ['<parameter='])) !== undefined) {
    const name = yield* readName(cursor)
    if (name === '' || !cursor.isAt('>')) return undefined
    yield
    const text = yield* textUntil(cursor, '</parameter>')
    if (text === undefined) return undefined
    // The line breaks next to the tags are layout.
    values.push([name, typedValue(tool, name, text.replace(/^\r?\n/, '').replace(/\r?\n$/, ''))])
    yield* skipSpace(cursor)
  }
  // A call of a tool without parameters that was cut right after its name could not be told from a mention of it.
  return values.length === 0 && cursor.isAt(END) ? undefined : Object.fromEntries(values)
}
