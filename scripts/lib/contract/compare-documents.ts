/** Compares two OpenAPI documents by meaning: operations, what goes in and out of them, and every component. */

import { compareSchemas, type Sides } from './compare-schemas.ts'
import { type Difference, Differences, matchKeys } from './difference.ts'
import type { ContractDocument, Operation, Parameter } from './document.ts'

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'] as const

function operationsOf(document: ContractDocument): Map<string, Operation> {
  const operations = new Map<string, Operation>()
  for (const [path, item] of Object.entries(document.paths)) {
    for (const method of METHODS) {
      const operation = item[method]
      if (operation !== undefined) operations.set(`${method.toUpperCase()} ${path}`, operation)
    }
  }
  return operations
}

/** Header names are the same in any case. */
const keyOf = ({ name, in: place }: Parameter) => `${place} ${place === 'header' ? name.toLowerCase() : name}`

const securityOf = (operation: Operation, document: ContractDocument): string =>
  (operation.security ?? document.security ?? [])
    .map((schemes) => Object.keys(schemes).sort().join(' and '))
    .sort()
    .join(' or ') || 'public'

const schemeText = (scheme: object): string => JSON.stringify(Object.entries(scheme).sort())

type Content = Operation['responses'][string]['content']

const contentOf = (content: Content) =>
  new Map(Object.entries(content).map(([type, { schema }]) => [type, schema ?? {}]))

function compareOperation(sides: Sides, at: string, theirs: Operation, ours: Operation): void {
  const { differences } = sides
  const compareContent = (place: string, a: Content, b: Content) =>
    matchKeys(
      contentOf(a),
      contentOf(b),
      (type, side) => differences.one(`${place} ${type}`, 'content', side),
      (type, their, our) => compareSchemas(sides, `${place} ${type}`, their, our),
    )

  differences.compare(at, 'operation id', theirs.operationId ?? '', ours.operationId ?? '')
  differences.compare(at, 'tags', theirs.tags.join(', '), ours.tags.join(', '))

  matchKeys(
    new Map(theirs.parameters.map((parameter) => [keyOf(parameter), parameter])),
    new Map(ours.parameters.map((parameter) => [keyOf(parameter), parameter])),
    (key, side) => differences.one(`${at} ${key}`, 'parameter', side),
    (key, their, our) => {
      differences.required(`${at} ${key}`, their.required, our.required)
      compareSchemas(sides, `${at} ${key}`, their.schema, our.schema)
    },
  )

  const needsBody = ({ requestBody }: Operation) =>
    requestBody === undefined ? 'no body' : requestBody.required ? 'required' : 'optional'
  differences.compare(`${at} body`, 'body', needsBody(theirs), needsBody(ours))
  compareContent(`${at} body`, theirs.requestBody?.content ?? {}, ours.requestBody?.content ?? {})

  matchKeys(
    new Map(Object.entries(theirs.responses)),
    new Map(Object.entries(ours.responses)),
    (status, side) => differences.one(`${at} ${status}`, 'response', side),
    (status, their, our) => compareContent(`${at} ${status}`, their.content, our.content),
  )
}

/** Every difference between two documents, operations first. */
export function compareDocuments(theirs: ContractDocument, ours: ContractDocument): Difference[] {
  const differences = new Differences()
  const sides: Sides = { theirs: theirs.components.schemas, ours: ours.components.schemas, differences }
  matchKeys(
    operationsOf(theirs),
    operationsOf(ours),
    (at, side) => differences.one(at, 'operation', side),
    (at, their, our) => {
      differences.compare(at, 'security', securityOf(their, theirs), securityOf(our, ours))
      compareOperation(sides, at, their, our)
    },
  )
  matchKeys(
    new Map(Object.entries(theirs.components.securitySchemes)),
    new Map(Object.entries(ours.components.securitySchemes)),
    (name, side) => differences.one(name, 'security scheme', side),
    (name, their, our) => differences.compare(name, 'security', schemeText(their), schemeText(our)),
  )
  matchKeys(
    new Map(Object.entries(sides.theirs)),
    new Map(Object.entries(sides.ours)),
    (name, side) => differences.one(name, 'component', side),
    (name, their, our) => compareSchemas(sides, name, their, our),
  )
  return differences.list()
}
