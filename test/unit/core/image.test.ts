import { describe, expect, test } from 'vitest'
import { estimateCost } from '../../../src/core/gates.ts'
import { IMAGE_TOKENS, readImage } from '../../../src/core/image.ts'
import { planTurn, prepareCall } from '../../../src/core/resolve.ts'
import { chooseModel } from '../../../src/core/select.ts'
import {
  LOCAL,
  makeCatalogue,
  makeFile,
  makeModel,
  makeRequest,
  makeView,
  must,
  REMOTE,
} from '../../support/core/builders.ts'

const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const PICTURE = `data:image/png;base64,${PIXEL}`
const SEEING = makeModel(LOCAL, { capabilities: { images: true } })
const BLIND = makeModel(LOCAL, { capabilities: {} })

const turn = (required: boolean) =>
  must(
    planTurn(
      makeView(
        makeRequest({
          attachments: { files: [makeFile('shot.png', PICTURE, required), makeFile('a.ts', 'const a')] },
        }),
      ),
    ),
  )

describe('[EC 8.5] a picture among the attached files', () => {
  test.each([
    ['a picture', PICTURE, true],
    ['a picture under another name', `data:image/webp;base64,${PIXEL}`, true],
    ['a picture with a line end behind it', `${PICTURE}\n`, true],
    ['what is none', 'data:image/png;base64,bm90IGEgcG5n', false],
    ['half a picture in base64', PICTURE.slice(0, -3), false],
    ['a picture that no provider takes', `data:image/png;base64,iVBORw0KGgoA${'A'.repeat(8_000_000)}`, false],
    ['a drawing in text', 'data:image/svg+xml;base64,PHN2Zz4=', false],
    ['what is not base64', 'data:image/png;base64,<html>', false],
    ['a text that only mentions one', `see ${PICTURE}`, false],
    ['nothing', '', false],
  ])('%s', (_, content, shown) => {
    expect(readImage(content) !== null).toBe(shown)
  })

  test('is what it holds, whatever it is called', () => {
    expect(readImage(`data:image/webp;base64,${PIXEL}`)?.mediaType).toBe('image/png')
    expect(readImage('data:image/png;base64,/9j/4AAA')?.mediaType).toBe('image/jpeg')
    expect(readImage('data:image/png;base64,R0lGODlhAQAB')?.mediaType).toBe('image/gif')
    expect(readImage('data:image/png;base64,UklGRgECAwRXRUJQVlA4')?.mediaType).toBe('image/webp')
  })

  test('goes along with the words of the user as what it is, and not as text', () => {
    const { request } = prepareCall(turn(true), SEEING)
    const [, said] = request.messages
    expect(said).toMatchObject({ role: 'user', images: [{ mediaType: 'image/png', base64: PIXEL }] })
    expect(said?.role === 'user' && said.text).toContain('# a.ts\nconst a')
    expect(said?.role === 'user' && said.text).not.toContain('shot.png')
  })

  test('needs a model that sees', () => {
    const { demands } = turn(true)
    expect(demands.derived).toEqual({ images: true })
    const blind = makeModel(REMOTE, { capabilities: {} })
    const references = [REMOTE, LOCAL]
    const choice = chooseModel({ ...demands, references }, makeCatalogue([blind, SEEING]))
    expect(choice).toMatchObject({ k: 'use', reference: LOCAL, fallbackUsed: true })
  })

  test('that nobody asked for is left out where the model sees nothing, with the reason', () => {
    expect(turn(false).demands.derived).toEqual({})
    const { request, verdicts } = prepareCall(turn(false), BLIND)
    expect(JSON.stringify(request.messages)).not.toContain(PIXEL)
    expect(verdicts.find(({ candidate }) => candidate.path === 'shot.png')).toMatchObject({
      included: false,
      reason: 'this model sees no pictures',
    })
  })

  test('is counted and priced as a picture, not by its length', () => {
    const big = `data:image/png;base64,iVBORw0KGgoA${'A'.repeat(400_000)}`
    const view = makeView(makeRequest({ attachments: { files: [makeFile('shot.png', big, true)] } }))
    const plan = must(planTurn(view))
    expect(plan.candidates.find(({ kind }) => kind === 'image')?.tokens).toBe(IMAGE_TOKENS)
    const priced = makeModel(LOCAL, {
      capabilities: { images: true },
      input_cost_per_million_tokens: '1000000',
      output_cost_per_million_tokens: '0',
    })
    expect(Number(estimateCost(priced, prepareCall(plan, priced))?.min)).toBeLessThan(IMAGE_TOKENS + 500)
  })

  test('[D11] can be named by a classification rule', () => {
    const request = makeRequest({
      classification: { rules: [{ intent: 'review', requires_any_context: ['image'] }] },
      attachments: { files: [makeFile('shot.png', PICTURE)] },
    })
    expect(must(planTurn(makeView(request))).classification.intent).toBe('review')
  })
})
