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
} from './conversation-faults.ts'

const TOOL_NAME = /^[a-zA-Z0-9_-]{1,64}$/
const MAX_CALL_ID_CHARS = 40
const ROLES = ['system', 'developer', 'user', 'assistant', 'tool']

/** What `POST /v1/chat/completions` would refuse. */
export function chatFaults(body: Fields): string[] {
  const messages = placed('messages', body.messages)
  const nulls = nullFields('body', body, ['parameters']).filter(
    (fault) => !/^body\.messages\[\d+\]\.content is null$/.test(fault),
  )
  return [
    ...commonFaults(body, messages),
    ...nulls,
    ...(body.stream_options !== undefined && body.stream !== true ? ['stream_options without stream'] : []),
    ...messages.flatMap(({ at, fields }) => [
      ...contentFaults(at, fields),
      ...placed(`${at}.tool_calls`, fields.tool_calls).flatMap((call) => [
        ...(isCallId(call.fields.id) && textOf(call.fields.id).length <= MAX_CALL_ID_CHARS
          ? []
          : [`${call.at}: bad id`]),
        ...(call.fields.type === 'function' ? [] : [`${call.at}: type is not function`]),
        ...(isJsonObject(fieldsOf(call.fields.function).arguments)
          ? []
          : [`${call.at}: arguments are not the text of an object`]),
      ]),
    ]),
    ...repeated('the call id', messages.flatMap(callIds)),
    ...pairFaults(messages),
  ]
}

/** What Ollama's `POST /api/chat` would refuse or misread. */
export function ollamaFaults(body: Fields): string[] {
  const messages = placed('messages', body.messages)
  return [
    ...commonFaults(body, messages),
    ...nullFields('body', body, ['parameters', 'arguments']),
    ...(body.options === undefined || isFields(body.options) ? [] : ['options is no object']),
    ...messages.flatMap(({ at, fields }) => [
      ...(typeof fields.content === 'string' ? [] : [`${at}: content is no text`]),
      ...placed(`${at}.tool_calls`, fields.tool_calls).flatMap((call) =>
        isFields(fieldsOf(call.fields.function).arguments) ? [] : [`${call.at}: arguments are no object`],
      ),
    ]),
    ...pairFaults(messages),
  ]
}

function commonFaults(body: Fields, messages: readonly Placed[]): string[] {
  const tools = placed('tools', body.tools)
  const functions = tools.map(({ fields }) => fieldsOf(fields.function))
  return [
    ...(textOf(body.model) === '' ? ['model is missing'] : []),
    ...(messages.length === 0 ? ['messages is empty'] : []),
    ...(Array.isArray(body.tools) && tools.length === 0 ? ['tools is empty'] : []),
    ...repeated(
      'the tool',
      functions.map(({ name }) => name),
    ),
    ...tools.flatMap(({ at, fields }) => {
      const { name, parameters } = fieldsOf(fields.function)
      return [
        ...(fields.type === 'function' ? [] : [`${at}: type is not function`]),
        ...(TOOL_NAME.test(textOf(name)) ? [] : [`${at}: bad name`]),
        ...schemaFaults(`${at}.function.parameters`, parameters),
      ]
    }),
    ...messages.flatMap(({ at, fields }) => [
      ...(ROLES.includes(textOf(fields.role)) ? [] : [`${at}: role ${String(fields.role)}`]),
      ...(Array.isArray(fields.tool_calls) && fields.tool_calls.length === 0
        ? [`${at}: tool_calls is empty`]
        : []),
      ...placed(`${at}.tool_calls`, fields.tool_calls).flatMap((call) =>
        TOOL_NAME.test(textOf(fieldsOf(call.fields.function).name)) ? [] : [`${call.at}: bad name`],
      ),
    ]),
  ]
}

function contentFaults(at: string, { role, content, tool_calls: calls }: Fields): string[] {
  if (content === null || content === undefined) {
    return role === 'assistant' && listOf(calls).length > 0 ? [] : [`${at}: no content`]
  }
  if (typeof content === 'string') return []
  const parts = placed(`${at}.content`, content)
  if (parts.length === 0) return [`${at}: content is empty`]
  return parts.flatMap(({ at: place, fields }) =>
    ['text', 'image_url', 'refusal'].includes(textOf(fields.type)) ? [] : [`${place}: unknown type`],
  )
}

const callIds = ({ fields }: Placed): unknown[] => listOf(fields.tool_calls).map((call) => fieldsOf(call).id)

/** Behind a message with calls stand exactly the answers to them. */
function pairFaults(messages: readonly Placed[]): string[] {
  const faults: string[] = []
  let open: unknown[] = []
  for (const message of messages) {
    const { at, fields } = message
    if (fields.role === 'tool') {
      if (!open.includes(fields.tool_call_id)) {
        faults.push(`${at}: a result without the call ${String(fields.tool_call_id)}`)
      }
      open = open.filter((id) => id !== fields.tool_call_id)
      continue
    }
    faults.push(...open.map((id) => `${at}: no result for the call ${String(id)} before it`))
    open = callIds(message)
  }
  return [...faults, ...open.map((id) => `no result for the call ${String(id)}`)]
}
