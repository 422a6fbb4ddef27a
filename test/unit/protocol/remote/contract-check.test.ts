import { describe, expect, test } from 'vitest'
import {
  compareRemote,
  type Direction,
  frameProblems,
} from '../../../../scripts/lib/contract/compare-remote.ts'
import { REMOTE_INTENDED_DIFFERENCES } from '../../../../scripts/lib/remote-intended-differences.ts'
import { documents, goldens } from './support/documents.ts'

const text = { type: 'string' }
const object = (properties: object, required: string[] = []) => ({ type: 'object', properties, required })
const tagged = (type: string, more: object = {}, required: string[] = []) =>
  object({ type: { ...text, const: type }, ...more }, ['type', ...required])

const compare = (direction: Direction, theirs: object, ours: object) =>
  compareRemote('doc', direction, theirs, ours).map(({ at, what }) => `${at}: ${what}`)

const both = ['request', 'answer'] as const

describe('a comparison with an older reference', () => {
  test.each(both)('of a %s sees no difference in style', (direction) => {
    const theirs = {
      oneOf: [
        {
          $ref: '#/$defs/Body',
          properties: { kind: { ...text, const: 'a' } },
          required: ['kind'],
          type: 'object',
        },
        object({ kind: { ...text, const: 'b' } }, ['kind']),
      ],
      $defs: {
        Body: object(
          { code: { $ref: '#/$defs/Code' }, version: { type: 'integer', minimum: 0, format: 'uint32' } },
          ['code'],
        ),
        Code: {
          oneOf: [
            { ...text, enum: ['x', 'y'] },
            { ...text, const: 'z' },
          ],
        },
      },
    }
    const ours = {
      oneOf: [{ $ref: '#/$defs/A' }, { $ref: '#/$defs/B' }],
      $defs: {
        A: object(
          {
            kind: { ...text, const: 'a' },
            code: { ...text, enum: ['z', 'y', 'x'] },
            version: { type: 'integer', minimum: 0 },
          },
          ['kind', 'code'],
        ),
        B: object({ kind: { ...text, const: 'b' } }, ['kind']),
      },
    }
    expect(compare(direction, theirs, ours)).toEqual([])
  })

  test.each(both)('of a %s lets it grow: fields, variants and values', (direction) => {
    const theirs = { oneOf: [tagged('a', { code: { ...text, enum: ['x'] } }), tagged('b')] }
    const ours = {
      oneOf: [tagged('a', { code: { ...text, enum: ['x', 'y'] }, more: text }), tagged('b'), tagged('c')],
    }
    expect(compare(direction, theirs, ours)).toEqual([])
  })

  test.each(both)('of a %s finds what is missing or another thing', (direction) => {
    const at = (properties: object, required: string[] = []) => tagged('a', properties, required)
    expect(compare(direction, at({ x: text }), at({}))).toEqual(['doc.x: property missing'])
    expect(
      compare(
        direction,
        { oneOf: [tagged('a'), tagged('b'), tagged('c')] },
        { oneOf: [tagged('a'), tagged('b')] },
      ),
    ).toEqual(['doc(type=c): variant missing'])
    expect(
      compare(direction, at({ x: { ...text, enum: ['a', 'b'] } }), at({ x: { ...text, enum: ['b', 'c'] } })),
    ).toEqual(['doc.x: enum'])
    expect(compare(direction, at({ x: text }), at({ x: { type: 'integer' } }))).toEqual(['doc.x: type'])
    expect(
      compare(
        direction,
        at({ x: { type: 'array', items: text } }),
        at({ x: { type: 'array', items: { type: 'integer' } } }),
      ),
    ).toEqual(['doc.x[]: type'])
  })

  test('looks under the names that both have, wherever they are used', () => {
    const withDef = (Part: object) => ({ ...object({ part: { $ref: '#/$defs/Part' } }), $defs: { Part } })
    expect(compare('answer', withDef(object({ x: text })), withDef(object({})))).toEqual([
      'Part.x: property missing',
    ])
  })

  test('asks of a request that it takes all that was taken, and of an answer that it gives all that was promised', () => {
    const optional = object({ x: { type: ['string', 'null'] } })
    const required = object({ x: text }, ['x'])
    expect(compare('request', optional, required)).toEqual(['doc.x: became required', 'doc.x: null missing'])
    expect(compare('answer', optional, required)).toEqual([])
    expect(compare('request', required, optional)).toEqual([])
    expect(compare('answer', required, optional)).toEqual(['doc.x: became optional', 'doc.x: null added'])

    const any = object({ x: text })
    const listed = object({ x: { ...text, enum: ['a'] } })
    expect(compare('request', any, listed)).toEqual(['doc.x: enum'])
    expect(compare('answer', any, listed)).toEqual([])
    expect(compare('request', listed, any)).toEqual([])
    expect(compare('answer', listed, any)).toEqual(['doc.x: enum'])

    const bounded = object({ x: { ...text, minLength: 1 } })
    expect(compare('request', any, bounded)).toEqual(['doc.x: bounds'])
    expect(compare('answer', any, bounded)).toEqual([])
    expect(compare('request', bounded, any)).toEqual([])
    expect(compare('answer', bounded, any)).toEqual(['doc.x: bounds'])
  })

  test.each(Object.entries(documents))('finds nothing between %s and itself', (name, document) => {
    expect(both.flatMap((direction) => compareRemote(name, direction, document, document))).toEqual([])
  })
})

describe('an example frame', () => {
  test('of our own is read, decoded and written again', () => {
    expect(goldens.flatMap(frameProblems)).toEqual([])
  })

  const problems = (document: 'request' | 'frame' | 'handshake-request', wire: unknown) =>
    frameProblems({ path: 'it', document, wire })

  test('that our types refuse is named with the place', () => {
    expect(
      problems('request', { protocol_version: 1, request_id: 'r', operation: { type: 'teleport' } }),
    ).toEqual(['it: refused at /operation/type'])
  })

  test('with a field that they do not know is read as something else', () => {
    const frame = { kind: 'sessions', protocol_version: 1, gateway_id: 'g', sessions: [] }
    expect(problems('frame', frame)).toEqual([])
    expect(problems('frame', { ...frame, more: 1 })).toEqual(['it: read as something else'])
  })

  test('of a session operation without its session is not decoded', () => {
    const request = { protocol_version: 1, request_id: 'r', operation: { type: 'detach_session' } }
    expect(problems('request', request)).toEqual(['it: not decoded'])
  })
})

test('each intended difference has a reason, and no place is listed twice', () => {
  const places = REMOTE_INTENDED_DIFFERENCES.flatMap(({ what, at }) => at.map((place) => `${place}: ${what}`))
  expect(new Set(places).size).toBe(places.length)
  expect(REMOTE_INTENDED_DIFFERENCES.filter(({ reason }) => reason.length < 20)).toEqual([])
})
