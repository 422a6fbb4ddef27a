import {
  type Fields,
  fieldsOf,
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
  'contents',
  'systemInstruction',
  'tools',
  'toolConfig',
  'generationConfig',
  'safetySettings',
  'cachedContent',
  'labels',
]
/** A part holds exactly one of them. */
const DATA = ['text', 'inlineData', 'functionCall', 'functionResponse', 'fileData']
/** The subset of OpenAPI that `parameters` may use. */
const SCHEMA = [
  ...['type', 'format', 'title', 'description', 'nullable', 'enum', 'default', 'example'],
  ...['items', 'minItems', 'maxItems', 'properties', 'required', 'minProperties', 'maxProperties'],
  ...['propertyOrdering', 'anyOf', 'minLength', 'maxLength', 'pattern', 'minimum', 'maximum'],
]
const TOOL_NAME = /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$/
/** `bytes` travel so, with the usual or the URL alphabet. */
const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/

/** What `generateContent` would refuse. */
export function geminiFaults(body: Fields): string[] {
  const contents = placed('contents', body.contents)
  const declared = placed('tools', body.tools).flatMap(({ at, fields }) =>
    placed(`${at}.functionDeclarations`, fields.functionDeclarations),
  )
  return [
    ...unknownKeys('body', body, BODY),
    ...nullFields('body', body, ['args', 'response', 'parameters', 'parametersJsonSchema']),
    ...(body.systemInstruction === undefined
      ? []
      : partFaults(placed('systemInstruction.parts', fieldsOf(body.systemInstruction).parts))),
    ...roleFaults(contents),
    ...contents.flatMap(({ at, fields }) => partFaults(placed(`${at}.parts`, fields.parts), at)),
    ...pairFaults(contents),
    ...repeated(
      'the tool',
      declared.map(({ fields }) => fields.name),
    ),
    ...declared.flatMap(({ at, fields }) => [
      ...(TOOL_NAME.test(textOf(fields.name)) ? [] : [`${at}: bad name`]),
      ...(fields.parameters === undefined ? [] : parameterFaults(`${at}.parameters`, fields.parameters)),
      ...(fields.parametersJsonSchema === undefined
        ? []
        : schemaFaults(`${at}.parametersJsonSchema`, fields.parametersJsonSchema)),
    ]),
  ]
}

function roleFaults(contents: readonly Placed[]): string[] {
  if (contents.length === 0) return ['contents is empty']
  const roleOf = (content: Placed | undefined) =>
    content?.fields.role === 'function' ? 'user' : content?.fields.role
  return contents.flatMap((content, index) => [
    ...(roleOf(content) === 'user' || roleOf(content) === 'model'
      ? []
      : [`${content.at}: role ${String(content.fields.role)}`]),
    ...(index === 0 && roleOf(content) !== 'user' ? [`${content.at} is not the user's`] : []),
    // Behind results the user may speak in a turn of his own.
    ...(index > 0 &&
    roleOf(content) === roleOf(contents[index - 1]) &&
    callsIn(contents[index - 1], 'functionResponse').length === 0
      ? [`${content.at} has the role of the one before`]
      : []),
    ...(index === contents.length - 1 && roleOf(content) === 'model'
      ? [`${content.at}: the last word is the model's`]
      : []),
  ])
}

function partFaults(parts: readonly Placed[], of = 'systemInstruction'): string[] {
  if (parts.length === 0) return [`${of}: no parts`]
  return parts.flatMap(({ at, fields }) => {
    const faults: string[] = []
    if (DATA.filter((key) => key in fields).length !== 1)
      faults.push(`${at} holds not exactly one kind of data`)
    faults.push(...unknownKeys(at, fields, [...DATA, 'thought', 'thoughtSignature']))
    if (fields.text === '') faults.push(`${at}: the text is empty`)
    if ('functionCall' in fields) {
      const call = fieldsOf(fields.functionCall)
      if (textOf(call.name) === '') faults.push(`${at}: a call without a name`)
      if (call.args !== undefined && !isFields(call.args)) faults.push(`${at}: args is no object`)
    }
    if ('functionResponse' in fields) {
      const response = fieldsOf(fields.functionResponse)
      if (textOf(response.name) === '') faults.push(`${at}: a result without a name`)
      if (!isFields(response.response)) faults.push(`${at}: response is no object`)
    }
    if ('thoughtSignature' in fields && !BASE64.test(textOf(fields.thoughtSignature))) {
      faults.push(`${at}: thoughtSignature is not base64`)
    }
    return faults
  })
}

type Call = { name: unknown; id: unknown }
const callsIn = (content: Placed | undefined, kind: 'functionCall' | 'functionResponse'): Call[] =>
  listOf(content?.fields.parts)
    .map((part) => fieldsOf(part)[kind])
    .filter(isFields)
    .map(({ name, id }) => ({ name, id }))

/** The turn behind a turn of calls answers all of them, by name and, where there are ids, by id. */
function pairFaults(contents: readonly Placed[]): string[] {
  return contents.flatMap((content, index) => {
    const { at } = content
    const asked = callsIn(contents[index - 1], 'functionCall')
    const answered = callsIn(content, 'functionResponse')
    const faults: string[] = []
    if (asked.length !== answered.length) {
      faults.push(`${at}: ${answered.length} results for ${asked.length} calls`)
    } else {
      const key = ({ name, id }: Call) => `${String(name)}#${String(id)}`
      const open = asked.map(key)
      for (const one of answered.map(key)) {
        if (open.includes(one)) open.splice(open.indexOf(one), 1)
        else faults.push(`${at}: no call ${one}`)
      }
    }
    if (index === contents.length - 1 && callsIn(content, 'functionCall').length > 0) {
      faults.push(`${at}: its calls have no results`)
    }
    return faults
  })
}

function parameterFaults(at: string, schema: unknown): string[] {
  const isEmpty = Object.keys(fieldsOf(fieldsOf(schema).properties)).length === 0
  return [
    ...schemaFaults(at, schema),
    ...(isEmpty ? [`${at}.properties is empty`] : []),
    ...foreignKeywords(at, schema),
  ]
}

function foreignKeywords(at: string, schema: unknown): string[] {
  const fields = fieldsOf(schema)
  return [
    ...unknownKeys(at, fields, SCHEMA),
    ...Object.entries(fieldsOf(fields.properties)).flatMap(([name, property]) =>
      foreignKeywords(`${at}.${name}`, property),
    ),
    ...(fields.items === undefined ? [] : foreignKeywords(`${at}.items`, fields.items)),
    ...listOf(fields.anyOf).flatMap((option, index) => foreignKeywords(`${at}.anyOf[${index}]`, option)),
  ]
}
