import {
  type Fields,
  fieldsOf,
  isCallId,
  isFields,
  isJsonObject,
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
  ...['model', 'input', 'instructions', 'stream', 'stream_options', 'store', 'include', 'metadata', 'user'],
  ...['tools', 'tool_choice', 'parallel_tool_calls', 'max_tool_calls', 'max_output_tokens', 'truncation'],
  ...['reasoning', 'text', 'temperature', 'top_p', 'top_logprobs', 'background', 'conversation', 'prompt'],
  ...[
    'previous_response_id',
    'prompt_cache_key',
    'prompt_cache_retention',
    'safety_identifier',
    'service_tier',
  ],
]
const CONTENT: Record<string, readonly string[]> = {
  user: ['input_text', 'input_image', 'input_file'],
  system: ['input_text'],
  developer: ['input_text'],
  assistant: ['output_text', 'refusal'],
}
const TOOL_NAME = /^[a-zA-Z0-9_-]{1,64}$/
const MAX_CALL_ID_CHARS = 64
const MIN_OUTPUT_TOKENS = 16
/** How the id of an item begins. */
const ID_PREFIX: Record<string, string> = { function_call: 'fc', message: 'msg', reasoning: 'rs' }

/** What `POST /v1/responses` would refuse. */
export function responsesFaults(body: Fields): string[] {
  const items = placed('input', body.input)
  const tools = placed('tools', body.tools)
  const limit = body.max_output_tokens
  return [
    ...unknownKeys('body', body, BODY),
    ...nullFields('body', body, ['parameters']),
    ...(textOf(body.model) === '' ? ['model is missing'] : []),
    ...(items.length === 0 && textOf(body.input) === '' ? ['input is empty'] : []),
    ...(limit !== undefined && Number(limit) < MIN_OUTPUT_TOKENS
      ? [`max_output_tokens is under ${MIN_OUTPUT_TOKENS}`]
      : []),
    ...items.flatMap((item) => itemFaults(item, body.store !== false)),
    ...pairFaults(items),
    ...reasoningFaults(items),
    ...repeated(
      'the tool',
      tools.filter(({ fields }) => fields.type === 'function').map(({ fields }) => fields.name),
    ),
    ...tools
      .filter(({ fields }) => fields.type === 'function')
      .flatMap(({ at, fields }) => [
        ...(TOOL_NAME.test(textOf(fields.name)) ? [] : [`${at}: bad name`]),
        ...schemaFaults(`${at}.parameters`, fields.parameters),
        ...(fields.strict === true ? strictFaults(`${at}.parameters`, fields.parameters) : []),
      ]),
  ]
}

const typeOf = ({ type, role }: Fields): string => textOf(type) || (textOf(role) === '' ? '' : 'message')

function itemFaults({ at, fields }: Placed, isStored: boolean): string[] {
  const type = typeOf(fields)
  const faults: string[] = []
  const prefix = ID_PREFIX[type]
  if (fields.id !== undefined && prefix !== undefined && !textOf(fields.id).startsWith(prefix)) {
    faults.push(`${at}: an id of a ${type} begins with ${prefix}`)
  }
  switch (type) {
    case 'message': {
      const kinds = CONTENT[textOf(fields.role)]
      if (kinds === undefined) return [...faults, `${at}: role ${String(fields.role)}`]
      if (typeof fields.content === 'string') return faults
      if (listOf(fields.content).length === 0) faults.push(`${at}: content is empty`)
      for (const part of placed(`${at}.content`, fields.content)) {
        const kind = textOf(part.fields.type)
        if (!kinds.includes(kind)) faults.push(`${part.at}: ${kind} in a message of ${String(fields.role)}`)
      }
      return faults
    }
    case 'function_call':
      if (!isCallId(fields.call_id) || textOf(fields.call_id).length > MAX_CALL_ID_CHARS) {
        faults.push(`${at}: bad call_id`)
      }
      if (!TOOL_NAME.test(textOf(fields.name))) faults.push(`${at}: bad name`)
      if (!isJsonObject(fields.arguments)) faults.push(`${at}: arguments are not the text of an object`)
      return faults
    case 'function_call_output':
      if (typeof fields.output !== 'string' && !Array.isArray(fields.output)) {
        faults.push(`${at}: no output`)
      }
      return faults
    case 'reasoning':
      if (!Array.isArray(fields.summary)) faults.push(`${at}: no summary`)
      if (!isStored && textOf(fields.encrypted_content) === '') {
        faults.push(`${at}: nothing is stored, and there is no encrypted_content`)
      }
      return faults
    case 'item_reference':
      return isStored ? faults : [...faults, `${at}: a reference, and nothing is stored`]
    default:
      return [...faults, `${at}: unknown type ${type}`]
  }
}

const idsOf = (items: readonly Placed[], type: string): unknown[] =>
  items.filter(({ fields }) => fields.type === type).map(({ fields }) => fields.call_id)

function pairFaults(items: readonly Placed[]): string[] {
  const asked = idsOf(items, 'function_call')
  const answered = idsOf(items, 'function_call_output')
  const early = items.flatMap(({ at, fields }, index) =>
    fields.type === 'function_call_output' &&
    !idsOf(items.slice(0, index), 'function_call').includes(fields.call_id)
      ? [`${at}: an output before or without the call ${String(fields.call_id)}`]
      : [],
  )
  return [
    ...repeated('the call id', asked),
    ...repeated('the output for', answered),
    ...asked.filter((id) => !answered.includes(id)).map((id) => `no output for the call ${String(id)}`),
    ...early,
  ]
}

/** Reasoning stands right before what came of it. */
const reasoningFaults = (items: readonly Placed[]): string[] =>
  items.flatMap(({ at, fields }, index) => {
    if (fields.type !== 'reasoning') return []
    const next = fieldsOf(items.slice(index + 1).find((item) => item.fields.type !== 'reasoning')?.fields)
    const follows = next.type === 'function_call' || (typeOf(next) === 'message' && next.role === 'assistant')
    return follows ? [] : [`${at}: reasoning without what follows from it`]
  })

function strictFaults(at: string, schema: unknown): string[] {
  const { type, properties, required, additionalProperties, items } = fieldsOf(schema)
  const faults: string[] = items === undefined ? [] : strictFaults(`${at}.items`, items)
  if (type !== 'object') return faults
  if (additionalProperties !== false) faults.push(`${at}: strict, but further properties are allowed`)
  for (const [name, property] of Object.entries(fieldsOf(properties))) {
    if (!listOf(required).includes(name)) faults.push(`${at}: strict, but ${name} is not required`)
    if (isFields(property)) faults.push(...strictFaults(`${at}.${name}`, property))
  }
  return faults
}
