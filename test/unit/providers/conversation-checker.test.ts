import { describe, expect, it } from 'vitest'
import { checkConversation, type DialectName } from '../../support/node/conversation-checker.ts'

const schema = { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] }

/** A conversation with two parallel calls, in the words of each dialect; a fresh copy each time. */
const good = {
  anthropic: () => ({
    model: 'claude',
    max_tokens: 4096,
    system: 'Be brief.',
    thinking: { type: 'enabled', budget_tokens: 2048 } as Record<string, unknown>,
    tools: [{ name: 'read_file', input_schema: { ...schema } as Record<string, unknown> }],
    messages: [
      { role: 'user', content: [{ type: 'text', text: 'Compare a and b.' }] },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'hm', signature: 'c2ln' },
          { type: 'text', text: 'Reading both.' },
          { type: 'tool_use', id: 'toolu_1', name: 'read_file', input: { path: null } },
          { type: 'tool_use', id: 'toolu_2', name: 'read_file', input: {} },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'toolu_2', content: 'b' },
          { type: 'tool_result', tool_use_id: 'toolu_1', content: [{ type: 'text', text: 'a' }] },
          { type: 'text', text: 'Go on.' },
        ],
      },
    ] as Record<string, unknown>[],
  }),
  gemini: () => ({
    systemInstruction: { parts: [{ text: 'Be brief.' }] },
    tools: [
      { functionDeclarations: [{ name: 'read_file', parameters: { ...schema } as Record<string, unknown> }] },
    ],
    contents: [
      { role: 'user', parts: [{ text: 'Compare a and b.' }] },
      {
        role: 'model',
        parts: [
          { functionCall: { name: 'read_file', args: { path: null } }, thoughtSignature: 'c2ln' },
          { functionCall: { name: 'read_file', args: {} } },
        ],
      },
      {
        role: 'user',
        parts: [
          { functionResponse: { name: 'read_file', response: { content: 'a' } } },
          { functionResponse: { name: 'read_file', response: { content: 'b' } } },
        ],
      },
    ] as Record<string, unknown>[],
  }),
  responses: () => ({
    model: 'gpt',
    store: false,
    tools: [{ type: 'function', name: 'read_file', parameters: { ...schema } as Record<string, unknown> }],
    input: [
      { role: 'developer', content: 'Be brief.' },
      { role: 'user', content: [{ type: 'input_text', text: 'Compare a and b.' }] },
      { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'x' },
      { type: 'function_call', call_id: 'call_1', name: 'read_file', arguments: '{"path":"a"}' },
      { type: 'function_call', call_id: 'call_2', name: 'read_file', arguments: '{}' },
      { type: 'function_call_output', call_id: 'call_1', output: 'a' },
      { type: 'function_call_output', call_id: 'call_2', output: 'b' },
    ] as Record<string, unknown>[],
  }),
  chat: () => ({
    model: 'gpt',
    tools: [
      {
        type: 'function',
        function: { name: 'read_file', parameters: { ...schema } as Record<string, unknown> },
      },
    ],
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Compare a and b.' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          { id: 'call_1', type: 'function', function: { name: 'read_file', arguments: '{"path":"a"}' } },
          { id: 'call_2', type: 'function', function: { name: 'read_file', arguments: '{}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'call_2', content: 'b' },
      { role: 'tool', tool_call_id: 'call_1', content: 'a' },
    ] as Record<string, unknown>[],
  }),
  ollama: () => ({
    model: 'qwen',
    options: { num_ctx: 4096 } as unknown,
    messages: [
      { role: 'user', content: 'Read a.' },
      {
        role: 'assistant',
        content: '',
        tool_calls: [{ id: 'c1', function: { name: 'read_file', arguments: { path: 'a' } } }],
      },
      { role: 'tool', tool_name: 'read_file', tool_call_id: 'c1', content: 'a' },
    ] as Record<string, unknown>[],
  }),
}

/** Changes a good conversation in one place and says what must be found, and that nothing else is. */
type Case<D extends DialectName> = [
  name: string,
  spoil: (body: ReturnType<(typeof good)[D]>) => void,
  fault: RegExp,
]

function rejects<D extends DialectName>(dialect: D, cases: Case<D>[]): void {
  describe(`the check of ${dialect} conversations`, () => {
    it('accepts a round of parallel calls', () => {
      expect(checkConversation(dialect, good[dialect]())).toEqual([])
    })

    it('has something to say about a body that is none', () => {
      expect(checkConversation(dialect, undefined)).toEqual(['the body is no object'])
      expect(checkConversation(dialect, {})).not.toEqual([])
    })

    it.each(cases)('rejects %s', (_name, spoil, fault) => {
      const body = good[dialect]() as ReturnType<(typeof good)[D]>
      spoil(body)
      const faults = checkConversation(dialect, body)
      expect(faults).toContainEqual(expect.stringMatching(fault))
    })
  })
}

/** The list under a field of an entry, to be changed. */
const inside = (entry: Record<string, unknown> | undefined, field: string): Record<string, unknown>[] => {
  const list = entry?.[field]
  if (!Array.isArray(list)) throw new Error(`no list in ${field}`)
  return list
}
const set = (entry: object | undefined, fields: object) => Object.assign(entry ?? {}, fields)

rejects('anthropic', [
  ['a body without max_tokens', (body) => set(body, { max_tokens: undefined }), /max_tokens is missing/],
  [
    'a field that it does not know',
    (body) => set(body, { frequency_penalty: 1 }),
    /unknown field frequency_penalty/,
  ],
  ['a null', (body) => set(body, { top_p: null }), /top_p is null/],
  ['a conversation that the model begins', (body) => body.messages.shift(), /\[0\] is not the user's/],
  ['a conversation that the model ends', (body) => body.messages.pop(), /the last word is the model's/],
  [
    'two messages of one role',
    (body) => body.messages.unshift({ role: 'user', content: 'Hm.' }),
    /role of the one before/,
  ],
  ['a role it has not', (body) => set(body.messages[0], { role: 'system' }), /role system/],
  ['an empty message', (body) => set(body.messages[0], { content: '' }), /content is empty/],
  [
    'an empty text block',
    (body) => set(inside(body.messages[0], 'content')[0], { text: ' ' }),
    /content\[0\]: the text is empty/,
  ],
  [
    'a call without its result',
    (body) => inside(body.messages[2], 'content').shift(),
    /no result for the call toolu_2/,
  ],
  [
    'a result without its call',
    (body) => inside(body.messages[1], 'content').pop(),
    /a result without the call toolu_2/,
  ],
  [
    'two results for one call',
    (body) => set(inside(body.messages[2], 'content')[1], { tool_use_id: 'toolu_2' }),
    /the result for toolu_2 is there twice/,
  ],
  [
    'text before the results',
    (body) => inside(body.messages[2], 'content').unshift({ type: 'text', text: 'First.' }),
    /before the results/,
  ],
  [
    'one id for two calls',
    (body) => set(inside(body.messages[1], 'content')[3], { id: 'toolu_1' }),
    /call id toolu_1 is there twice/,
  ],
  [
    'an id with other characters',
    (body) => set(inside(body.messages[1], 'content')[2], { id: 'call:1' }),
    /content\[2\]: bad id/,
  ],
  [
    'input that is no object',
    (body) => set(inside(body.messages[1], 'content')[2], { input: '{}' }),
    /input is no object/,
  ],
  [
    'thinking without its signature',
    (body) => set(inside(body.messages[1], 'content')[0], { signature: '' }),
    /no signature/,
  ],
  [
    'a block with a field too many',
    (body) => set(inside(body.messages[1], 'content')[1], { id: 'x' }),
    /unknown field id/,
  ],
  [
    'calls without the thinking before them while thinking is on',
    (body) => inside(body.messages[1], 'content').shift(),
    /begins with text while thinking is on/,
  ],
  ['a temperature while thinking', (body) => set(body, { temperature: 0.2 }), /temperature while thinking/],
  [
    'a budget for thinking beyond the answer',
    (body) => set(body.thinking, { budget_tokens: 4096 }),
    /not under max_tokens/,
  ],
  ['a small budget for thinking', (body) => set(body.thinking, { budget_tokens: 100 }), /is under 1024/],
  [
    'a schema that is no object',
    (body) => set(body.tools[0]?.input_schema, { type: 'string' }),
    /type is not object/,
  ],
  ['a schema of alternatives', (body) => set(body.tools[0]?.input_schema, { anyOf: [] }), /anyOf at its top/],
  ['a tool name with a dot', (body) => set(body.tools[0], { name: 'read.file' }), /tools\[0\]: bad name/],
  [
    'two tools of one name',
    (body) => body.tools.push({ ...good.anthropic().tools[0] } as never),
    /tool read_file/,
  ],
  [
    'an image of another kind',
    (body) =>
      inside(body.messages[0], 'content').push({
        type: 'image',
        source: { type: 'base64', media_type: 'image/svg+xml', data: 'eA==' },
      }),
    /the image cannot be read/,
  ],
  [
    'more marks for the cache than four',
    (body) =>
      inside(body.messages[0], 'content').push(
        ...Array.from({ length: 5 }, () => ({
          type: 'text',
          text: 'x',
          cache_control: { type: 'ephemeral' },
        })),
      ),
    /5 places are marked/,
  ],
])

rejects('gemini', [
  ['a field that it does not know', (body) => set(body, { max_tokens: 1 }), /unknown field max_tokens/],
  ['a null', (body) => set(body, { generationConfig: { topP: null } }), /topP is null/],
  ['a conversation that the model begins', (body) => body.contents.shift(), /\[0\] is not the user's/],
  ['a conversation that the model ends', (body) => body.contents.pop(), /the last word is the model's/],
  [
    'two turns of one role',
    (body) => body.contents.unshift({ role: 'user', parts: [{ text: 'Hm.' }] }),
    /role of the one before/,
  ],
  ['a role it has not', (body) => set(body.contents[1], { role: 'assistant' }), /role assistant/],
  ['an empty text', (body) => set(body.contents[0], { parts: [{ text: '' }] }), /the text is empty/],
  ['a turn without parts', (body) => set(body.contents[0], { parts: [] }), /no parts/],
  ['a call without its result', (body) => inside(body.contents[2], 'parts').pop(), /1 results for 2 calls/],
  ['a result without its call', (body) => inside(body.contents[1], 'parts').pop(), /2 results for 1 calls/],
  [
    'a result under another name',
    (body) =>
      set(inside(body.contents[2], 'parts')[0], { functionResponse: { name: 'shell', response: {} } }),
    /no call shell/,
  ],
  [
    'a result under another id',
    (body) => {
      const call = { id: 'c1', name: 'read_file', args: {} }
      set(inside(body.contents[1], 'parts')[0], { functionCall: call })
    },
    /no call read_file#undefined/,
  ],
  [
    'a result that is no object',
    (body) =>
      set(inside(body.contents[2], 'parts')[0], { functionResponse: { name: 'read_file', response: 'a' } }),
    /response is no object/,
  ],
  [
    'arguments that are no object',
    (body) => set(inside(body.contents[1], 'parts')[0], { functionCall: { name: 'read_file', args: '{}' } }),
    /args is no object/,
  ],
  [
    'a signature that is not base64',
    (body) => set(inside(body.contents[1], 'parts')[0], { thoughtSignature: 'sig 1' }),
    /not base64/,
  ],
  [
    'a part of two kinds',
    (body) => set(inside(body.contents[1], 'parts')[0], { text: 'x' }),
    /not exactly one kind/,
  ],
  [
    'a part with a field too many',
    (body) => set(inside(body.contents[1], 'parts')[0], { id: 'x' }),
    /unknown field id/,
  ],
  [
    'a schema that is no object',
    (body) => set(body.tools[0]?.functionDeclarations[0]?.parameters, { type: 'string' }),
    /type is not object/,
  ],
  [
    'a schema with a foreign keyword',
    (body) => set(body.tools[0]?.functionDeclarations[0]?.parameters, { additionalProperties: false }),
    /unknown field additionalProperties/,
  ],
  [
    'a schema without properties',
    (body) => set(body.tools[0]?.functionDeclarations[0], { parameters: { type: 'object', properties: {} } }),
    /properties is empty/,
  ],
  [
    'a schema that requires what it lacks',
    (body) => set(body.tools[0]?.functionDeclarations[0]?.parameters, { required: ['file'] }),
    /required names file/,
  ],
  [
    'a tool name that begins with a digit',
    (body) => set(body.tools[0]?.functionDeclarations[0], { name: '1st' }),
    /bad name/,
  ],
])

rejects('responses', [
  ['a field that it does not know', (body) => set(body, { max_tokens: 1 }), /unknown field max_tokens/],
  ['a null', (body) => set(body, { top_p: null }), /top_p is null/],
  ['an empty input', (body) => set(body, { input: [] }), /input is empty/],
  ['too small a limit', (body) => set(body, { max_output_tokens: 4 }), /under 16/],
  ['a call without its output', (body) => body.input.pop(), /no output for the call call_2/],
  ['an output without its call', (body) => body.input.splice(4, 1), /before or without the call call_2/],
  ['an output before its call', (body) => body.input.reverse(), /before or without the call call_1/],
  [
    'one id for two calls',
    (body) => set(body.input[4], { call_id: 'call_1' }),
    /call id call_1 is there twice/,
  ],
  ['two outputs for one call', (body) => set(body.input[6], { call_id: 'call_1' }), /output for call_1/],
  ['too long an id', (body) => set(body.input[3], { call_id: 'c'.repeat(65) }), /bad call_id/],
  [
    'arguments that are no text',
    (body) => set(body.input[3], { arguments: {} }),
    /arguments are not the text/,
  ],
  ['reasoning that leads nowhere', (body) => body.input.push({ ...body.input[2] }), /without what follows/],
  [
    'reasoning that is stored nowhere',
    (body) => set(body.input[2], { encrypted_content: undefined }),
    /no encrypted_content/,
  ],
  [
    'a reference to what is not stored',
    (body) => body.input.push({ type: 'item_reference', id: 'x' }),
    /a reference/,
  ],
  ['an id of another kind of item', (body) => set(body.input[3], { id: 'call_1' }), /begins with fc/],
  [
    'text of the user in the mouth of the model',
    (body) => set(body.input[1], { role: 'assistant' }),
    /input_text in a message of assistant/,
  ],
  ['a tool result as a message', (body) => set(body.input[1], { role: 'tool' }), /role tool/],
  [
    'a schema that is no object',
    (body) => set(body.tools[0]?.parameters, { type: 'array' }),
    /type is not object/,
  ],
  [
    'a strict tool with a loose schema',
    (body) => set(body.tools[0], { strict: true }),
    /strict, but further/,
  ],
  ['a tool name with a dot', (body) => set(body.tools[0], { name: 'read.file' }), /bad name/],
])

rejects('chat', [
  ['a null', (body) => set(body, { temperature: null }), /temperature is null/],
  ['an empty conversation', (body) => set(body, { messages: [] }), /messages is empty/],
  ['an empty list of tools', (body) => set(body, { tools: [] }), /tools is empty/],
  ['a message without content', (body) => set(body.messages[1], { content: null }), /no content/],
  ['a role it has not', (body) => set(body.messages[1], { role: 'human' }), /role human/],
  ['a call without its result', (body) => body.messages.pop(), /no result for the call call_1/],
  [
    'a call whose result comes too late',
    (body) => body.messages.splice(4, 0, { role: 'user', content: 'Wait.' }),
    /no result for the call call_1 before it/,
  ],
  [
    'a result without its call',
    (body) => inside(body.messages[2], 'tool_calls').pop(),
    /a result without the call call_2/,
  ],
  ['an empty list of calls', (body) => set(body.messages[2], { tool_calls: [] }), /tool_calls is empty/],
  [
    'one id for two calls',
    (body) => set(inside(body.messages[2], 'tool_calls')[1], { id: 'call_1' }),
    /call id call_1 is there twice/,
  ],
  [
    'too long an id',
    (body) => set(inside(body.messages[2], 'tool_calls')[0], { id: 'c'.repeat(41) }),
    /bad id/,
  ],
  [
    'arguments that are no text',
    (body) =>
      set(inside(body.messages[2], 'tool_calls')[0], { function: { name: 'read_file', arguments: {} } }),
    /arguments are not the text/,
  ],
  [
    'a schema that is no object',
    (body) => set(body.tools[0]?.function.parameters, { type: 'array' }),
    /not object/,
  ],
  ['options of a stream without one', (body) => set(body, { stream_options: {} }), /stream_options without/],
])

rejects('ollama', [
  ['a null', (body) => set(body, { think: null }), /think is null/],
  ['options that are none', (body) => set(body, { options: 'num_ctx 4096' }), /options is no object/],
  ['content that is no text', (body) => set(body.messages[0], { content: [] }), /content is no text/],
  ['a call without its result', (body) => body.messages.pop(), /no result for the call c1/],
  ['a result without its call', (body) => body.messages.splice(1, 1), /a result without the call c1/],
  [
    'arguments as text',
    (body) =>
      set(inside(body.messages[1], 'tool_calls')[0], { function: { name: 'read_file', arguments: '{}' } }),
    /arguments are no object/,
  ],
])
