import { z } from 'zod'
import { nearest } from '../core/suggest.ts'
import { PermissionMode } from '../protocol/execution/policy.ts'
import { wrongName, wrongReference } from '../protocol/execution/unknown-names.ts'
import { whyNotAModel } from './model-reference.ts'
import type { KeyPath } from './toml-position.ts'

/** What is wrong at one place of a document. */
export type PlacedMessage = { at: KeyPath; message: string }

/** The table of a table that has nothing else. */
const PERMISSIONS = 'permissions'

/**
 * The issues of a document that is no `schema`, in words of somebody who writes TOML. They must carry their input. What
 * is missing because its key is misspelt is told once, with the misspelt key.
 */
export function sayIssues(issues: readonly z.core.$ZodIssue[], schema: z.core.$ZodType): PlacedMessage[] {
  const unknown = issues.flatMap((issue) =>
    issue.code === 'unrecognized_keys' ? aboutUnknownKeys(issue, keysAt(schema, issue.path)) : [],
  )
  const meant = new Set(unknown.flatMap(({ meant }) => (meant === undefined ? [] : [placeKey(meant)])))
  const others = issues.filter(
    (issue) => issue.code !== 'unrecognized_keys' && !(isMissing(issue) && meant.has(placeKey(issue.path))),
  )
  return [
    ...unknown.map(({ at, message }) => ({ at, message })),
    ...others.map((issue) => ({ at: issue.path, message: explain(issue) })),
  ]
}

/** `meant`: the place of the key that was meant. */
type UnknownKey = PlacedMessage & { meant?: KeyPath }

function aboutUnknownKeys(
  { keys, path, input }: z.core.$ZodIssueUnrecognizedKeys,
  known: readonly string[],
): UnknownKey[] {
  const values: Record<string, unknown> = Object(input)
  const modes = known.includes(PERMISSIONS) ? keys.filter((key) => isMode(values[key])) : []
  const found = keys
    .filter((key) => !modes.includes(key))
    .map((key): UnknownKey => {
      const at = [...path, key]
      const name = nearest(key, known)
      if (name === undefined) return { at, message: 'no such setting' }
      return { at, message: `no such setting; did you mean \`${name}\`?`, meant: [...path, name] }
    })
  const [first] = modes
  if (first === undefined) return found
  const inner = modes.map((key) => `${tomlKey(key)} = ${JSON.stringify(values[key])}`).join(', ')
  const message = `permissions have a table of their own: write \`${String(path.at(-1))} = { ${PERMISSIONS} = { ${inner} } }\``
  return [...found, { at: [...path, first], message, meant: [...path, PERMISSIONS] }]
}

const isMode = (value: unknown): boolean => PermissionMode.safeParse(value).success

const tomlKey = (key: string): string => (/^[A-Za-z0-9_-]+$/.test(key) ? key : JSON.stringify(key))

const placeKey = (at: KeyPath): string => JSON.stringify(at.map(String))

/** The keys that a table of the document may have; none where there is no table. */
function keysAt(schema: z.core.$ZodType, [key, ...rest]: KeyPath): string[] {
  if (schema instanceof z.ZodOptional) return keysAt(schema.unwrap(), key === undefined ? [] : [key, ...rest])
  if (schema instanceof z.ZodArray) return keysAt(schema.element, rest)
  if (!(schema instanceof z.ZodObject)) return []
  if (key === undefined) return Object.keys(schema.shape)
  const next: z.core.$ZodType | undefined = schema.shape[String(key)]
  return next === undefined ? [] : keysAt(next, rest)
}

/** TOML has no value that would be read as undefined. */
const isMissing = (issue: z.core.$ZodIssue): boolean => issue.input === undefined

function explain(issue: z.core.$ZodIssue): string {
  if (isMissing(issue))
    return issue.code === 'invalid_value' ? `is missing: it is ${oneOf(issue.values)}` : 'is missing'
  const reference = wrongReference(issue)
  if (reference !== undefined) return whyNotAModel(reference)
  if (issue.path.at(-1) === 'cost_limit') return 'write the amount as text, such as "0.50"'
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${TOML_TYPES[issue.expected] ?? issue.expected}`
    case 'invalid_value':
      return `must be ${oneOf(issue.values)}${meantName(issue)}`
    case 'too_small':
      return issue.minimum === 1 && issue.origin !== 'number'
        ? 'must not be empty'
        : `must be at least ${issue.minimum}`
    case 'too_big':
      return `must be at most ${issue.maximum}`
    default:
      return issue.message
  }
}

const oneOf = (values: readonly unknown[]): string =>
  `one of ${values.map((value) => JSON.stringify(value)).join(', ')}`

function meantName(issue: z.core.$ZodIssue): string {
  const wrong = wrongName(issue)
  const name = wrong && nearest(wrong.word, wrong.names)
  return name === undefined ? '' : `; did you mean ${JSON.stringify(name)}?`
}

/** What a TOML file calls the types of the schema. */
const TOML_TYPES: Readonly<Record<string, string>> = {
  string: 'a text in quotes',
  boolean: 'true or false',
  number: 'a number',
  int: 'a whole number',
  array: 'a list',
  object: 'a table',
  record: 'a table',
}
