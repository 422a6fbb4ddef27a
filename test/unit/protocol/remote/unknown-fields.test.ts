import { describe, expect, test } from 'vitest'
import { REMOTE_DOCUMENTS } from '../../../../src/protocol/remote/json-schemas.ts'
import { isObject, type Json } from '../support/schema-walk.ts'
import { goldens } from './support/documents.ts'

const UNKNOWN = 'field_of_a_later_version'

/** Every variant of a value with one more field in one of its objects, and where that object is. */
function* grown(value: Json, at = ''): Generator<{ at: string; value: Json }> {
  if (Array.isArray(value)) {
    for (const [i, item] of value.entries())
      for (const inner of grown(item, `${at}/${i}`)) yield { at: inner.at, value: value.with(i, inner.value) }
  } else if (isObject(value)) {
    yield { at, value: { ...value, [UNKNOWN]: { any: ['thing'] } } }
    for (const [key, member] of Object.entries(value))
      for (const inner of grown(member, `${at}/${key}`))
        yield { at: inner.at, value: { ...value, [key]: inner.value } }
  }
}

const cases = goldens.flatMap(({ path, document, wire }) =>
  [...grown(JSON.parse(JSON.stringify(wire)))].map((one) => ({ ...one, path, document, wire })),
)
const isClosed = (one: (typeof cases)[number]) =>
  one.path.endsWith('/set_settings.json') && one.at === '/operation/settings'

describe('[RF 29] an unknown field', () => {
  test.each(goldens)('is ignored anywhere in $path', ({ path, document, wire }) => {
    const parsed = REMOTE_DOCUMENTS[document].parse(wire)
    const here = cases.filter((one) => one.path === path && !isClosed(one))
    expect(here.length).toBeGreaterThan(0)
    for (const { at, value } of here)
      expect([at, REMOTE_DOCUMENTS[document].parse(value)]).toEqual([at, parsed])
  })

  test('is refused in the settings alone, where it would be one that devices may not write', () => {
    const closed = cases.filter(isClosed)
    expect(closed).toHaveLength(1)
    for (const { document, value } of closed)
      expect(REMOTE_DOCUMENTS[document].safeParse(value).success).toBe(false)
  })
})
