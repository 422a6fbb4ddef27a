import { describe, expect, test } from 'vitest'
import { compareDocuments } from '../../../scripts/lib/contract/compare-documents.ts'
import { ContractDocument } from '../../../scripts/lib/contract/document.ts'
import { judge, matchesPlace } from '../../../scripts/lib/contract/judge.ts'
import { INTENDED_DIFFERENCES } from '../../../scripts/lib/intended-differences.ts'

type Schemas = Record<string, unknown>

const makeDocument = (schemas: Schemas, operation: object = {}, rest: object = {}) =>
  ContractDocument.parse({
    openapi: '3.1.0',
    paths: { '/things': { get: { operationId: 'things', responses: {}, ...operation } } },
    components: { schemas },
    ...rest,
  })

/** Places and kinds of the differences between two sets of components. */
const compare = (theirs: Schemas, ours: Schemas) =>
  compareDocuments(makeDocument(theirs), makeDocument(ours)).map(({ at, what }) => `${at}: ${what}`)

const compareOperations = (theirs: object, ours: object) =>
  compareDocuments(makeDocument({}, theirs), makeDocument({}, ours)).map(({ at, what }) => `${at}: ${what}`)

const object = (properties: object, required: string[] = []) => ({ type: 'object', properties, required })
const text = { type: 'string' }
const number = { type: 'integer', minimum: 0 }

describe('a comparison of two contracts sees no difference in style', () => {
  test('a reference and what it refers to', () => {
    const other = object({ a: text })
    expect(compare({ Thing: object({ x: other }) }, { Thing: object({ x: other }) })).toEqual([])
    expect(
      compare(
        { Thing: object({ x: { $ref: '#/components/schemas/Other' } }), Other: other },
        { Thing: object({ x: other }), Other: other },
      ),
    ).toEqual([])
  })

  test('`allOf` and one object with all fields, under a union too', () => {
    const base = {
      oneOf: [
        object({ kind: { type: 'string', const: 'a' }, n: number }, ['kind']),
        object({ kind: { type: 'string', const: 'b' } }, ['kind']),
      ],
    }
    expect(
      compare(
        {
          Base: base,
          Thing: { allOf: [{ $ref: '#/components/schemas/Base' }, object({ more: text }, ['more'])] },
        },
        {
          Base: base,
          Thing: {
            anyOf: [
              object({ kind: { type: 'string', enum: ['b'] }, more: text }, ['more', 'kind']),
              object({ kind: { type: 'string', enum: ['a'] }, n: number, more: text }, ['kind', 'more']),
            ],
          },
        },
      ),
    ).toEqual([])
  })

  test('the ways to say that something may be null', () => {
    const Level = { type: 'string', enum: ['low', 'high'] }
    const ref = { $ref: '#/components/schemas/Level' }
    expect(
      compare(
        { Level, Thing: object({ a: { type: ['string', 'null'] }, b: { oneOf: [{ type: 'null' }, ref] } }) },
        {
          Level,
          Thing: object({ a: { anyOf: [text, { type: 'null' }] }, b: { anyOf: [ref, { type: 'null' }] } }),
        },
      ),
    ).toEqual([])
  })

  test('one enum and a union of constants, in any order', () => {
    expect(
      compare(
        { Level: { type: 'string', enum: ['low', 'high'] } },
        {
          Level: {
            anyOf: [
              { type: 'string', const: 'high' },
              { type: 'string', const: 'low' },
            ],
          },
        },
      ),
    ).toEqual([])
  })

  test('an open object said three ways, and the width of a number', () => {
    const open = [{}, { additionalProperties: true }, { additionalProperties: {}, propertyNames: text }]
    for (const way of open)
      expect(compare({ A: { type: 'object' } }, { A: { type: 'object', ...way } })).toEqual([])
    expect(compare({ A: { ...number, format: 'int32' } }, { A: number })).toEqual([])
  })

  test('the case of a header, and security of the document or of the operation', () => {
    const header = (name: string) => ({ parameters: [{ name, in: 'header', schema: text }] })
    expect(compareOperations(header('X-Thing'), header('x-thing'))).toEqual([])
    const bearer = [{ bearer: [] }]
    expect(
      compareDocuments(makeDocument({}, {}, { security: bearer }), makeDocument({}, { security: bearer })),
    ).toEqual([])
  })
})

describe('a comparison of two contracts finds', () => {
  const thing = (properties: object, required: string[] = []) => ({ Thing: object(properties, required) })

  test.each([
    ['a field too many', thing({}), thing({ a: text }), 'Thing.a: property added'],
    ['a field too few', thing({ a: text }), thing({}), 'Thing.a: property missing'],
    [
      'a field that became required',
      thing({ a: text }),
      thing({ a: text }, ['a']),
      'Thing.a: became required',
    ],
    [
      'a field that became optional',
      thing({ a: text }, ['a']),
      thing({ a: text }),
      'Thing.a: became optional',
    ],
    ['another type', thing({ a: text }), thing({ a: number }), 'Thing.a: type'],
    [
      'a null too many',
      thing({ a: text }),
      thing({ a: { type: ['string', 'null'] } }),
      'Thing.a: null added',
    ],
    [
      'a null too few',
      thing({ a: { type: ['string', 'null'] } }),
      thing({ a: text }),
      'Thing.a: null missing',
    ],
    [
      'another enum',
      thing({ a: { ...text, enum: ['x'] } }),
      thing({ a: { ...text, enum: ['x', 'y'] } }),
      'Thing.a: enum',
    ],
    ['another format', thing({ a: { ...text, format: 'uuid' } }), thing({ a: text }), 'Thing.a: format'],
    ['a pattern', thing({ a: text }), thing({ a: { ...text, pattern: '^x' } }), 'Thing.a: pattern'],
    ['another bound', thing({ a: number }), thing({ a: { ...number, minimum: 1 } }), 'Thing.a: bounds'],
    [
      'another item',
      thing({ a: { type: 'array', items: text } }),
      thing({ a: { type: 'array', items: number } }),
      'Thing.a[]: type',
    ],
    [
      'other values of a map',
      thing({ a: { type: 'object', additionalProperties: text } }),
      thing({ a: { type: 'object', additionalProperties: number } }),
      'Thing.a.*: type',
    ],
    [
      'other keys of a map',
      thing({ a: { type: 'object', propertyNames: text } }),
      thing({ a: { type: 'object', propertyNames: { ...text, pattern: '^k' } } }),
      'Thing.a keys: pattern',
    ],
    [
      'a closed object',
      thing({}),
      { Thing: { ...object({}), additionalProperties: false } },
      'Thing: unknown fields',
    ],
    ['a component too many', {}, { Thing: text }, 'Thing: component added'],
    ['a component too few', { Thing: text }, {}, 'Thing: component missing'],
  ])('%s', (_, theirs, ours, expected) => {
    expect(compare(theirs, ours)).toEqual([expected])
  })

  test('a variant too many and a field inside the right variant', () => {
    const variant = (kind: string, more: object = {}) =>
      object({ kind: { type: 'string', const: kind }, ...more }, ['kind'])
    expect(
      compare(
        { Thing: { oneOf: [variant('a'), variant('b')] } },
        { Thing: { oneOf: [variant('b', { n: number }), variant('a'), variant('c')] } },
      ),
    ).toEqual(['Thing(kind=b).n: property added', 'Thing(kind=c): variant added'])
  })

  test('what a name that only we have adds, under that name and once', () => {
    const Money = { ...text, pattern: '^\\d+$' }
    const ref = { $ref: '#/components/schemas/Money' }
    expect(
      compare(
        { Thing: object({ a: text, b: { type: ['string', 'null'] } }) },
        { Thing: object({ a: ref, b: { anyOf: [ref, { type: 'null' }] } }), Money },
      ),
    ).toEqual(['Money: pattern', 'Money: component added'])
  })

  test.each([
    ['another operation id', { operationId: 'a' }, { operationId: 'b' }, 'GET /things: operation id'],
    ['other tags', { tags: ['a'] }, { tags: ['b'] }, 'GET /things: tags'],
    ['a route that became public', { security: [{ bearer: [] }] }, {}, 'GET /things: security'],
    [
      'a body that need not be there',
      { requestBody: { required: true, content: {} } },
      { requestBody: { content: {} } },
      'GET /things body: body',
    ],
    [
      'another type of content',
      { responses: { 200: { content: { 'application/json': {} } } } },
      { responses: { 200: {} } },
      'GET /things 200 application/json: content missing',
    ],
    [
      'another answer',
      { responses: { 200: { content: { 'application/json': { schema: text } } } } },
      { responses: { 200: { content: { 'application/json': { schema: number } } } } },
      'GET /things 200 application/json: type',
    ],
    ['a status too few', { responses: { 404: {} } }, {}, 'GET /things 404: response missing'],
    [
      'a parameter too many',
      {},
      { parameters: [{ name: 'q', in: 'query', schema: text }] },
      'GET /things query q: parameter added',
    ],
    [
      'a parameter that became required',
      { parameters: [{ name: 'q', in: 'query' }] },
      { parameters: [{ name: 'q', in: 'query', required: true }] },
      'GET /things query q: became required',
    ],
  ])('%s', (_, theirs, ours, expected) => {
    expect(compareOperations(theirs, ours)).toEqual([expected])
  })

  test('an operation that is missing and another that was added', () => {
    const at = (path: string) =>
      ContractDocument.parse({
        openapi: '3.1.0',
        paths: { [path]: { put: { responses: {} } } },
        components: { schemas: {} },
      })
    expect(compareDocuments(at('/a'), at('/b')).map(({ at, what }) => `${at}: ${what}`)).toEqual([
      'PUT /a: operation missing',
      'PUT /b: operation added',
    ])
  })
})

describe('the list of intended differences', () => {
  test('excuses a place only for the kind of difference that it names', () => {
    const list = [{ what: 'response added', at: ['* 400'], reason: 'r' }] as const
    const difference = { theirs: '', ours: '' }
    const added = { ...difference, at: 'GET /things 400', what: 'response added' } as const
    const missing = { ...difference, at: 'GET /things 400', what: 'response missing' } as const
    expect(judge([added, missing], list)).toEqual({
      intended: [{ difference: added, reason: 'r' }],
      unintended: [missing],
      stale: [],
    })
  })

  test('is told where it excuses what is not there', () => {
    const list = [{ what: 'property added', at: ['A.x', 'B.y'], reason: 'r' }] as const
    const difference = { at: 'A.x', what: 'property added', theirs: '', ours: '' } as const
    expect(judge([difference], list).stale).toEqual([{ at: 'B.y', what: 'property added' }])
  })

  test('gives a reason for each, and names no place twice', () => {
    const places = INTENDED_DIFFERENCES.flatMap(({ what, at }) => at.map((place) => `${place}: ${what}`))
    expect(new Set(places).size).toBe(places.length)
    expect(INTENDED_DIFFERENCES.filter(({ reason }) => reason.length < 20)).toEqual([])
  })

  test('a `*` stands for any text, and everything else for itself', () => {
    expect(matchesPlace('* 400', 'GET /a 400')).toBe(true)
    expect(matchesPlace('* 400', 'GET /a 4000')).toBe(false)
    expect(matchesPlace('a*b*c', 'a--b--c')).toBe(true)
    expect(matchesPlace('a*b*c', 'a--c--b')).toBe(false)
    expect(matchesPlace('ab*bc', 'abc')).toBe(false)
    expect(matchesPlace('T(type=*).x', 'T(type=usage).x')).toBe(true)
    expect(matchesPlace('T.x', 'Txx')).toBe(false)
  })
})
