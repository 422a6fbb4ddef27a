import type { OfferedTool } from '../../../src/core/prompt.ts'
import type { FinishReason, ModelEvent } from '../../../src/providers/provider.ts'

/** The tools that are offered wherever calls are printed in these tests. */
export const TOOLS: OfferedTool[] = [
  {
    name: 'read_file',
    description: 'Reads a file.',
    parameters: {
      type: 'object',
      properties: {
        path: { type: 'string' },
        first_line: { type: 'integer' },
        ratio: { type: 'number' },
        follow: { type: 'boolean' },
        lines: { type: 'array' },
        encoding: { anyOf: [{ type: 'object' }, { type: 'null' }] },
      },
      required: ['path'],
    },
  },
  { name: 'list_files', description: 'Lists files.', parameters: { type: 'object' } },
]

export type Case = {
  what: string
  printed: string
  /** What is left as text. */
  text: string
  calls: { name: string; arguments: Record<string, unknown>; malformedArguments?: string }[]
}

const readA = { name: 'read_file', arguments: { path: 'a' } }
const list = { name: 'list_files', arguments: {} }
const READ_A = '{"name":"read_file","arguments":{"path":"a"}}'
const LIST = '{"name": "list_files", "parameters": {}}'

const THOUGHT = `A call would be <tool_call>${READ_A}</tool_call>, or ${READ_A}.`

const taken = (what: string, printed: string, calls: Case['calls'], text = ''): Case => ({
  what,
  printed,
  text,
  calls,
})
const left = (what: string, printed: string): Case => ({ what, printed, text: printed, calls: [] })

/** Answers, each ended by the model, in which calls are found. */
export const CALLS: Case[] = [
  taken('bare JSON', READ_A, [readA]),
  taken('bare JSON with white space around it', `\n\n  ${READ_A} \n`, [readA]),
  taken('bare JSON after a sentence', `I look at it.\n\n${READ_A}`, [readA], 'I look at it.\n\n'),
  taken('bare JSON over many lines', JSON.stringify(JSON.parse(READ_A), null, 2), [readA]),
  taken('a list of calls', `[${READ_A}, ${LIST}]`, [readA, list]),
  taken('one call per line', `${READ_A}\n${LIST}\n`, [readA, list]),
  taken('a call that says that it is a function', `{"type":"function",${LIST.slice(1)}`, [list]),
  taken(
    'escapes, brackets and a form in the text of an argument',
    JSON.stringify({
      name: 'read_file',
      arguments: { path: '}]"\\`<tool_call>{"name":"list_files"}</tool_call>ü🚂' },
    }),
    [{ name: 'read_file', arguments: { path: '}]"\\`<tool_call>{"name":"list_files"}</tool_call>ü🚂' } }],
  ),
  taken(
    'numbers, words and lists as arguments',
    '{"name":"list_files","arguments":{"a":[-1.5e3,true,null,[]],"b":{"c":{}}}}',
    [{ name: 'list_files', arguments: { a: [-1500, true, null, []], b: { c: {} } } }],
  ),
  taken(
    'OpenAI’s function object with its arguments as text',
    '{"type":"function","id":"c1","function":{"name":"read_file","arguments":"{\\"path\\":\\"a\\"}"}}',
    [readA],
  ),
  taken(
    'OpenAI’s list of calls',
    `{"tool_calls":[{"function":${READ_A}},{"function":{"name":"list_files","arguments":"{}"}}]}`,
    [readA, list],
  ),
  taken('a json fence', `Reading.\n\`\`\`json\n${READ_A}\n\`\`\`\n`, [readA], 'Reading.\n'),
  taken('a json fence that is not closed', `\`\`\`json\n[${READ_A}]`, [readA]),
  left('a tool_call fence with words after it', `\`\`\`tool_call\n${READ_A}\n\`\`\`\nDone?`),
  taken('a tool_code fence', `\`\`\`\`tool_code \n${READ_A}\n${LIST}\n\`\`\`\`\n`, [readA, list]),
  taken('Hermes', `Hm. <tool_call>\n${READ_A}\n</tool_call>`, [readA], 'Hm. '),
  taken(
    'Hermes, twice',
    `So. <tool_call>${READ_A}</tool_call>\n<tool_call>${LIST}</tool_call>\n`,
    [readA, list],
    'So. ',
  ),
  left('Hermes within a sentence', `The file says <tool_call>${READ_A}</tool_call>. I have not run it.`),
  left('Hermes in a quotation', `It says:\n> <tool_call>${READ_A}</tool_call>`),
  left('Hermes in a quotation that goes on', `> a\n > b <tool_call>${READ_A}</tool_call>\nAnd so on.`),
  taken(
    'the last of two, with words between them',
    `<tool_call>${READ_A}</tool_call> is what the file says.\n<tool_call>${LIST}</tool_call>`,
    [list],
    `<tool_call>${READ_A}</tool_call> is what the file says.\n`,
  ),
  taken('Hermes, not closed', `<tool_call>\n${READ_A}\n`, [readA]),
  taken('Hermes, closed by the next call', `<tool_call>${READ_A}\n<tool_call>${LIST}</tool_call>`, [
    readA,
    list,
  ]),
  taken('Hermes without arguments', '<tool_call>{"name":"list_files"}</tool_call>', [list]),
  taken(
    'Hermes with arguments that are no object',
    '<tool_call>{"name":"list_files","arguments":"{\\"a"}</tool_call>',
    [{ ...list, malformedArguments: '{"a' }],
  ),
  taken('Mistral, a list', `[TOOL_CALLS] [${READ_A}]`, [readA]),
  taken('Mistral, names', '[TOOL_CALLS]read_file{"path":"a"}[TOOL_CALLS]list_files{}', [readA, list]),
  taken(
    'Mistral, names with ids',
    '[TOOL_CALLS]read_file[CALL_ID]x1y2z3[ARGS]{"path":"a"}\n[TOOL_CALLS]list_files[ARGS]{}',
    [readA, list],
  ),
  taken('Mistral without its first mark', 'Yes.\nread_file[ARGS]{"path":"a"}', [readA], 'Yes.\n'),
  taken('Llama’s python tag', `<|python_tag|>${READ_A}; ${LIST}`, [readA, list]),
  taken('Llama’s function tag', '<function=read_file>{"path":"a"}</function>', [readA]),
  taken('Llama’s function tag, not closed', 'So: <function=list_files>{}', [list], 'So: '),
  taken(
    'Qwen3-Coder, with the types of the schema',
    [
      '<tool_call>\n<function=read_file>\n<parameter=path>\n if a<b:\n  <c/>\n\n</parameter>',
      '<parameter=first_line>\n12\n</parameter>\n<parameter=follow>True</parameter>',
      '<parameter=ratio>2</parameter><parameter=lines>[1, {"a": 2}]</parameter>',
      '<parameter=encoding>None</parameter>\n<parameter=unknown>3</parameter>\n</function>\n</tool_call>',
    ].join('\n'),
    [
      {
        name: 'read_file',
        arguments: {
          path: ' if a<b:\n  <c/>\n',
          first_line: 12,
          follow: true,
          ratio: 2,
          lines: [1, { a: 2 }],
          encoding: null,
          unknown: '3',
        },
      },
    ],
  ),
  taken(
    'Qwen3-Coder, values that do not fit their type',
    '<tool_call><function=read_file><parameter=path>7</parameter><parameter=first_line>two</parameter>' +
      '<parameter=follow>1</parameter></function></tool_call>',
    [{ name: 'read_file', arguments: { path: '7', first_line: 'two', follow: '1' } }],
  ),
  taken(
    'Qwen3-Coder, two functions in one tag',
    '<tool_call><function=list_files></function>\n<function=read_file><parameter=path>a</parameter></function></tool_call>',
    [list, readA],
  ),
  taken(
    'Qwen3-Coder without its opening tag',
    'I read.\n<function=read_file>\n<parameter=path>\na\n</parameter>\n</function>\n</tool_call>',
    [readA],
    'I read.\n',
  ),
  taken(
    'DeepSeek V3',
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read_file\n```json\n{"path":"a"}\n```' +
      '<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>list_files\n```json\n{}\n```' +
      '<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    [readA, list],
  ),
  taken(
    'DeepSeek V3.1',
    'Ok.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read_file<｜tool▁sep｜>{"path":"a"}<｜tool▁call▁end｜>' +
      '<｜tool▁calls▁end｜>',
    [readA],
    'Ok.',
  ),
  taken('DeepSeek without the outer markers, not closed', '<｜tool▁call▁begin｜>list_files<｜tool▁sep｜>{}', [
    list,
  ]),
  taken('Phi', `functools[${READ_A},${LIST}]`, [readA, list]),
  taken(
    'a form after a fenced block',
    `\`\`\`ts\nf()\n\`\`\`\n<tool_call>${LIST}</tool_call>`,
    [list],
    '```ts\nf()\n```\n',
  ),
  taken('a form right after the beginning of one', `<tool_<tool_call>${LIST}</tool_call>`, [list], '<tool_'),
  taken(
    'a form after one that is none',
    `[<tool_call>{"x":1}<tool_call>${LIST}</tool_call>`,
    [list],
    '[<tool_call>{"x":1}',
  ),
  taken('a form after JSON that breaks off', `{"name"<tool_call>${LIST}</tool_call>`, [list], '{"name"'),
  taken(
    'a form after thinking that holds one',
    `<think>\n${THOUGHT}\n</think>\n\n<tool_call>${LIST}</tool_call>`,
    [list],
    `<think>\n${THOUGHT}\n</think>\n\n`,
  ),
  taken(
    'a form right after thinking under the longer name, and not the one before it',
    `<tool_call>${READ_A}</tool_call>\n<thinking></think>${THOUGHT}</thinking><function=list_files>{}</function>`,
    [list],
    `<tool_call>${READ_A}</tool_call>\n<thinking></think>${THOUGHT}</thinking>`,
  ),
  taken(
    'bare JSON after a fence that was only thought of',
    `<think>\`\`\`json\n${READ_A}\n</think>\n${READ_A}`,
    [readA],
    `<think>\`\`\`json\n${READ_A}\n</think>\n`,
  ),
  taken(
    'a form after a mention of the tag in code',
    `\`<think>\` begins it.\n\`\`\`\n<think>\n\`\`\`\n<tool_call>${LIST}</tool_call>`,
    [list],
    '`<think>` begins it.\n```\n<think>\n```\n',
  ),
]

/** Answers that stay as they are. */
export const TEXTS: Case[] = [
  left('nothing but white space', ' \n'),
  left(
    'prose with brackets of all kinds',
    'a < b, c[1] = {x: 1}; `<tool_call>` is a tag. <b>Bold</b>\n[link](url)\n{see}',
  ),
  left('bare JSON within a sentence', `Print ${READ_A}`),
  left('bare JSON with text after it', `${READ_A}\nThis is how a call looks.`),
  left('bare JSON after a long text', `${'A long explanation. '.repeat(26)}\n${READ_A}`),
  left('bare JSON of a tool that was not offered', '{"name":"write_file","arguments":{"path":"a"}}'),
  left('bare JSON without what the tool needs', '{"name":"read_file","arguments":{"first_line":1}}'),
  left('bare JSON without arguments', '{"name":"list_files"}'),
  left('bare JSON with a key that no call has', `{"thought":"x",${READ_A.slice(1)}`),
  left(
    'bare JSON with a key that no call has inside',
    '{"function":{"name":"list_files","arguments":{},"x":1}}',
  ),
  left('bare JSON with both kinds of arguments', '{"name":"list_files","arguments":{},"parameters":{}}'),
  left('bare JSON of another type', `{"type":"object",${LIST.slice(1)}`),
  left('bare JSON with arguments that are no object', '{"name":"list_files","arguments":"[]"}'),
  left('bare JSON with a comma too much', '{"name":"list_files","arguments":{},}'),
  left('a list with something else in it', `[${READ_A}, 1]`),
  left('a list of lists', `[[${READ_A}]]`),
  left('an empty list', '[]'),
  left('the list of a wrapper with another key', `{"tool_calls":[${READ_A}],"id":"x"}`),
  left('JSON that answers the question', '{"files": ["a", "b"], "count": 2}'),
  left('JSON cut short', READ_A.slice(0, -1)),
  left('a json fence with text after it', `Such a call:\n\`\`\`json\n${READ_A}\n\`\`\`\nTry it.`),
  left('a fence of another language', `\`\`\`python\n${READ_A}\n\`\`\``),
  left('a fence without a language', `\`\`\`\n${READ_A}\n\`\`\``),
  left('a tag in a fenced block', `\`\`\`xml\n<tool_call>${READ_A}</tool_call>\n\`\`\`\nSo.`),
  left('a tag in a block fenced by tildes', `~~~\n\`\`\`\n<tool_call>${READ_A}</tool_call>\n~~~`),
  left('a fence within a longer fence', `\`\`\`\`md\n\`\`\`tool_call\n${READ_A}\n\`\`\`\n\`\`\`\``),
  left('a tag in a block that is not closed', `\`\`\`\n<tool_call>${READ_A}</tool_call>`),
  left('a tag in code within a line', `Write \`<tool_call>${READ_A}</tool_call>\` for it.`),
  left('a tag with a tool that was not offered', '<tool_call>{"name":"nope","arguments":{}}</tool_call>'),
  left('a tag of which one call was not offered', `<tool_call>${LIST}{"name":"nope"}</tool_call>`),
  left('a tag with something else behind the call', `<tool_call>${READ_A} or so`),
  left('a tag with no call in it', '<tool_call></tool_call><function=>{}</function>[TOOL_CALLS][]'),
  left('tags cut short', `<tool_call>${READ_A.slice(0, 20)}`),
  left('a parameter cut short', '<function=read_file><parameter=path>a</para'),
  left('a name cut short', '<function=read_fi'),
  left('a name and nothing else', '<function=list_files>'),
  left('the beginning of a tag', 'Hm <tool_ca'),
  left(
    'a function that was not offered',
    '<function=nope>{}</function> [TOOL_CALLS]nope{} functools[{"name":"nope"}]',
  ),
  left('a name within a line', 'Call read_file[ARGS]{"path":"a"}'),
  left('a name that only ends like one', `myfunctools[${LIST}]`),
  left(
    'DeepSeek with a tool that was not offered',
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>x<｜tool▁sep｜>{}<｜tool▁call▁end｜>',
  ),
  left('DeepSeek without a call', '<｜tool▁calls▁begin｜><｜tool▁calls▁end｜>'),
  left('a form within thinking', `<think>${THOUGHT}</think> No call is needed.`),
  left('a form on a line of its own within thinking', `<thinking>\nSo:\n${READ_A}\n</thinking>`),
  left('a fence of calls within thinking', `<think>\n\`\`\`tool_call\n${READ_A}\n\`\`\`\n</think>`),
  left('a form after thinking that is not closed', `<think>Hm.\n<tool_call>${READ_A}</tool_call>`),
  left(
    'a form after a wrong end of thinking',
    `<think>Hm.</thinking>\n<tool_call>${READ_A}</tool_call></thin`,
  ),
  left('Python in a tool_code fence', '```tool_code\nprint(read_file(path="a"))\n```'),
]

export const text = (delta: string): ModelEvent => ({ type: 'text_delta', delta })
export const finished = (reason: FinishReason): ModelEvent => ({ type: 'finished', reason })

export async function* play(events: Iterable<ModelEvent>): AsyncGenerator<ModelEvent, void> {
  yield* events
}

/** The events of an answer that is printed in these pieces, and ends well. */
export const printed = (pieces: Iterable<string>): ModelEvent[] => [
  ...[...pieces].map(text),
  finished('stop'),
]

export const expectedOf = ({ text: rest, calls }: Case): ModelEvent[] => [
  ...(rest === '' ? [] : [text(rest)]),
  ...calls.map((call): ModelEvent => ({ type: 'tool_call', ...call })),
  finished(calls.length === 0 ? 'stop' : 'tool_calls'),
]
