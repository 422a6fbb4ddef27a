import {
  type Fields,
  fieldsOf,
  isCallId,
  isFields,
  listOf,
  nullFields,
  type Placed,
  placed,
  repeated,
  schemaFaults,
  textOf,
  unknownKeys,
} from './conversation-faults.ts'

const BODY = [
  'model',
  'messages',
  'max_tokens',
  'system',
  'stream',
  'temperature',
  'top_p',
  'top_k',
  'stop_sequences',
  'tools',
  'tool_choice',
  'thinking',
  'output_config',
  'metadata',
  'service_tier',
  'cache_control',
]
const BLOCKS: Record<string, readonly string[]> = {
  text: ['type', 'text', 'cache_control', 'citations'],
  image: ['type', 'source', 'cache_control'],
  tool_use: ['type', 'id', 'name', 'input', 'cache_control', 'caller'],
  tool_result: ['type', 'tool_use_id', 'content', 'is_error', 'cache_control'],
  thinking: ['type', 'thinking', 'signature'],
  redacted_thinking: ['type', 'data'],
}
const IMAGE_TYPES = ['image/jpeg', 'image/png', 'image/gif', 'image/webp']
/** The least that may be spent on thinking. */
const MIN_THINKING_TOKENS = 1024
/** How many places of a request may be marked for the cache. */
const MAX_CACHE_MARKS = 4

/** What `POST /v1/messages` would refuse. */
export function anthropicFaults(body: Fields): string[] {
  const messages = placed('messages', body.messages)
  const marks = JSON.stringify(body).match(/"cache_control":\{/g)?.length ?? 0
  return [
    ...unknownKeys('body', body, BODY),
    ...nullFields('body', body, ['input', 'input_schema']),
    ...(textOf(body.model) === '' ? ['model is missing'] : []),
    ...(Number.isInteger(body.max_tokens) && Number(body.max_tokens) > 0 ? [] : ['max_tokens is missing']),
    ...(marks > MAX_CACHE_MARKS
      ? [`${marks} places are marked for the cache, ${MAX_CACHE_MARKS} may be`]
      : []),
    ...(Array.isArray(body.system) ? blockFaults(placed('system', body.system), 'system') : []),
    ...(body.system === '' ? ['system is empty'] : []),
    ...roleFaults(messages),
    ...messages.flatMap(({ at, fields }) => contentFaults(at, fields)),
    ...pairFaults(messages),
    ...toolFaults(body),
    ...thinkingFaults(body, messages),
  ]
}

function roleFaults(messages: readonly Placed[]): string[] {
  if (messages.length === 0) return ['messages is empty']
  return messages.flatMap(({ at, fields: { role } }, index) => [
    ...(role === 'user' || role === 'assistant' ? [] : [`${at}: role ${String(role)}`]),
    ...(index === 0 && role !== 'user' ? [`${at} is not the user's`] : []),
    ...(role === messages[index - 1]?.fields.role ? [`${at} has the role of the one before`] : []),
    ...(index === messages.length - 1 && role === 'assistant' ? [`${at}: the last word is the model's`] : []),
  ])
}

function contentFaults(at: string, { role, content }: Fields): string[] {
  if (typeof content === 'string') return content.trim() === '' ? [`${at}: content is empty`] : []
  if (listOf(content).length === 0) return [`${at}: content is empty`]
  return blockFaults(placed(`${at}.content`, content), textOf(role))
}

function blockFaults(blocks: readonly Placed[], role: string): string[] {
  return blocks.flatMap(({ at, fields }) => {
    const type = textOf(fields.type)
    const known = BLOCKS[type]
    if (known === undefined) return [`${at}: unknown type ${type}`]
    const faults = unknownKeys(at, fields, known)
    const belongsTo = ['thinking', 'redacted_thinking', 'tool_use'].includes(type) ? 'assistant' : 'user'
    if (type !== 'text' && role !== belongsTo) faults.push(`${at}: a ${type} block of the role ${role}`)
    if (type === 'text' && textOf(fields.text).trim() === '') faults.push(`${at}: the text is empty`)
    if (type === 'thinking' && typeof fields.thinking !== 'string') faults.push(`${at}: no thinking`)
    if (type === 'thinking' && textOf(fields.signature) === '') faults.push(`${at}: no signature`)
    if (type === 'redacted_thinking' && textOf(fields.data) === '') faults.push(`${at}: no data`)
    if (type === 'tool_use') {
      if (!isCallId(fields.id)) faults.push(`${at}: bad id`)
      if (!isToolName(fields.name)) faults.push(`${at}: bad name`)
      if (!isFields(fields.input)) faults.push(`${at}: input is no object`)
    }
    if (type === 'tool_result' && Array.isArray(fields.content)) {
      faults.push(...blockFaults(placed(`${at}.content`, fields.content), 'user'))
    }
    if (type === 'image') {
      const { type: kind, media_type: mediaType, data } = fieldsOf(fields.source)
      if (kind === 'base64' && (!IMAGE_TYPES.includes(textOf(mediaType)) || textOf(data) === '')) {
        faults.push(`${at}: the image cannot be read`)
      }
    }
    return faults
  })
}

const isToolName = (name: unknown): boolean => /^[a-zA-Z0-9_-]{1,128}$/.test(textOf(name))

/** The values of a field in the blocks of one type. */
const valuesIn = (message: Placed | undefined, type: string, field: string): unknown[] =>
  listOf(message?.fields.content)
    .map(fieldsOf)
    .filter((block) => block.type === type)
    .map((block) => block[field])

/** Each call is answered once, in the message right behind it, before anything else there. */
function pairFaults(messages: readonly Placed[]): string[] {
  const faults = repeated(
    'the call id',
    messages.flatMap((message) => valuesIn(message, 'tool_use', 'id')),
  )
  for (const [index, message] of messages.entries()) {
    const { at } = message
    const asked = valuesIn(messages[index - 1], 'tool_use', 'id')
    const answered = valuesIn(message, 'tool_result', 'tool_use_id')
    for (const id of asked) {
      if (!answered.includes(id)) faults.push(`${at}: no result for the call ${String(id)}`)
    }
    for (const id of answered) {
      if (!asked.includes(id)) faults.push(`${at}: a result without the call ${String(id)}`)
    }
    faults.push(...repeated(`${at}: the result for`, answered))
    const types = listOf(message.fields.content).map((block) => fieldsOf(block).type)
    if (types.slice(0, answered.length).some((type) => type !== 'tool_result')) {
      faults.push(`${at}: something stands before the results`)
    }
    if (index === messages.length - 1 && valuesIn(message, 'tool_use', 'id').length > 0) {
      faults.push(`${at}: its calls have no results`)
    }
  }
  return faults
}

function toolFaults({ tools, tool_choice: choice }: Fields): string[] {
  const declared = placed('tools', tools)
  return [
    ...repeated(
      'the tool',
      declared.map(({ fields }) => fields.name),
    ),
    ...declared.flatMap(({ at, fields }) => [
      ...(isToolName(fields.name) ? [] : [`${at}: bad name`]),
      ...schemaFaults(`${at}.input_schema`, fields.input_schema),
      ...['oneOf', 'allOf', 'anyOf']
        .filter((key) => key in fieldsOf(fields.input_schema))
        .map((key) => `${at}.input_schema has ${key} at its top`),
    ]),
    ...(choice !== undefined && declared.length === 0 ? ['tool_choice without tools'] : []),
  ]
}

function thinkingFaults(body: Fields, messages: readonly Placed[]): string[] {
  const thinking = fieldsOf(body.thinking)
  if (thinking.type !== 'enabled') return []
  const budget = Number(thinking.budget_tokens)
  const choice = fieldsOf(body.tool_choice).type
  const lastOfModel = messages.findLast(({ fields }) => fields.role === 'assistant')
  const inLoop = lastOfModel !== undefined && valuesIn(lastOfModel, 'tool_use', 'id').length > 0
  const first = fieldsOf(listOf(lastOfModel?.fields.content)[0]).type
  return [
    ...(budget >= MIN_THINKING_TOKENS ? [] : [`thinking.budget_tokens is under ${MIN_THINKING_TOKENS}`]),
    ...(budget < Number(body.max_tokens) ? [] : ['thinking.budget_tokens is not under max_tokens']),
    ...(body.temperature === undefined || body.temperature === 1 ? [] : ['temperature while thinking']),
    ...(body.top_k === undefined ? [] : ['top_k while thinking']),
    ...(body.top_p === undefined || Number(body.top_p) >= 0.95 ? [] : ['top_p under 0.95 while thinking']),
    ...(choice === 'any' || choice === 'tool' ? ['a forced tool while thinking'] : []),
    ...(inLoop && first !== 'thinking' && first !== 'redacted_thinking'
      ? [`${lastOfModel.at} begins with ${String(first)} while thinking is on`]
      : []),
  ]
}
