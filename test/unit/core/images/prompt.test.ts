import { describe, expect, test } from 'vitest'
import { IMAGE_TOKENS } from '../../../../src/core/image.ts'
import { promptReference } from '../../../../src/core/images/reference.ts'
import {
  MAX_SHOWN_BYTES,
  MAX_SHOWN_IMAGES,
  shownImages,
  type UploadedImage,
} from '../../../../src/core/images/shown.ts'
import { takesImages } from '../../../../src/core/images/takes-images.ts'
import { boundaryBreach } from '../../../../src/core/privacy/boundary.ts'
import { planTurn, prepareCall } from '../../../../src/core/resolve.ts'
import { chooseModel } from '../../../../src/core/select.ts'
import type { TranscriptMessage } from '../../../../src/core/transcript.ts'
import {
  EARLIER_RUN,
  LOCAL,
  makeCatalogue,
  makeFile,
  makeModel,
  makeRequest,
  makeView,
  modelSays,
  must,
  REMOTE,
  userSays,
} from '../../../support/core/builders.ts'

const image = (name: string, bytes = 1000): UploadedImage => ({
  handle: name,
  bytes,
  mediaType: 'image/png',
  base64: `content-of-${name}`,
})
const says = (text: string, names: readonly string[], fields: Partial<TranscriptMessage> = {}) =>
  userSays(`${text} ${names.map(promptReference).join(' ')}`, {
    images: names.map((name) => image(name)),
    ...fields,
  })
const EARLIER = { runId: EARLIER_RUN }

const SEEING = makeModel(REMOTE, { capabilities: { images: true } })
const BLIND = makeModel(LOCAL, { capabilities: {} })
const LOCAL_SEEING = makeModel(LOCAL, { capabilities: { images: true } })

const planOf = (said: Parameters<typeof makeView>[1], request = makeRequest()) =>
  must(planTurn(makeView(request, said)))

/** The names of the pictures that go along with each message of the user. */
const picturesIn = ({ request }: ReturnType<typeof prepareCall>) =>
  request.messages.flatMap((message) =>
    message.role === 'user'
      ? [(message.images ?? []).map(({ base64 }) => base64.replace('content-of-', ''))]
      : [],
  )

describe('[RF 27] the pictures that a prompt refers to', () => {
  test('reach the model with its words, and in later turns with the history', () => {
    const first = planOf({ said: [says('Compare', ['a', 'b'])] })
    expect(picturesIn(prepareCall(first, SEEING))).toEqual([['a', 'b']])
    const later = planOf({
      said: [says('Compare', ['a', 'b'], EARLIER), modelSays('They differ.', EARLIER), says('And', ['c'])],
    })
    const prepared = prepareCall(later, SEEING)
    expect(picturesIn(prepared)).toEqual([['a', 'b'], ['c']])
    expect(prepared.request.messages.at(-1)).toMatchObject({ text: `And ${promptReference('c')}` })
  })

  test('stay references in the text for a model that sees none', () => {
    const plan = planOf({
      said: [says('Look', ['a'], EARLIER), modelSays('A cat.', EARLIER), userSays('Sure?')],
    })
    const { request } = prepareCall(plan, BLIND)
    expect(picturesIn(prepareCall(plan, BLIND))).toEqual([[], []])
    expect(request.messages[1]).toEqual({ role: 'user', text: `Look ${promptReference('a')}` })
  })

  test('go along with every round of their run', () => {
    const plan = planOf({
      said: [
        says('Look', ['a']),
        modelSays('', {
          calls: [
            { id: 'c', name: 'read_file', arguments: {}, result: 'x', isError: false, changesFiles: false },
          ],
        }),
      ],
    })
    expect(picturesIn(prepareCall(plan, SEEING)).flat()).toEqual(['a'])
  })

  test('stand behind those that are attached as files', () => {
    const pixel = 'data:image/png;base64,iVBORw0KGgoA'
    const request = makeRequest({ attachments: { files: [makeFile('shot.png', pixel, true)] } })
    const plan = planOf({ said: [says('Look', ['a'])] }, request)
    expect(picturesIn(prepareCall(plan, SEEING))).toEqual([['iVBORw0KGgoA', 'a']])
  })

  test('[EC 8.5] of this run need a model that sees; those of earlier ones do not', () => {
    const now = planOf({ said: [says('Look', ['a'])] })
    expect(now.demands.derived).toEqual({ images: true })
    const references = [LOCAL, REMOTE]
    expect(chooseModel({ ...now.demands, references }, makeCatalogue([BLIND, SEEING]))).toMatchObject({
      k: 'use',
      reference: REMOTE,
    })
    const then = planOf({
      said: [says('Look', ['a'], EARLIER), modelSays('A cat.', EARLIER), userSays('Sure?')],
    })
    expect(then.demands.derived).toEqual({})
  })

  test('[D11] can be named by a classification rule', () => {
    const request = makeRequest({
      classification: { rules: [{ intent: 'review', requires_any_context: ['image'] }] },
    })
    expect(planOf({ said: [says('Look', ['a'])] }, request).classification.intent).toBe('review')
    const earlier = [says('Look', ['a'], EARLIER), modelSays('A cat.', EARLIER), userSays('Sure?')]
    expect(planOf({ said: earlier }, request).classification.intent).not.toBe('review')
  })

  test('are counted as pictures', () => {
    const tokens = (names: string[]) => planOf({ said: [says('Look', names)] }).demands.requiredTokens
    const words = (names: string[]) =>
      planOf({ said: [userSays(`Look ${names.map(promptReference).join(' ')}`)] }).demands.requiredTokens
    expect(tokens(['a', 'b']) - words(['a', 'b'])).toBe(2 * IMAGE_TOKENS)
  })

  test('of a message that does not fit the window are left out with it', () => {
    const small = makeModel(REMOTE, { capabilities: { images: true }, max_context_tokens: 4000 })
    const plan = planOf({
      said: [says('Old', ['a', 'b', 'c'], EARLIER), modelSays('Cats.', EARLIER), says('New', ['d'])],
    })
    const prepared = prepareCall(plan, small)
    expect(picturesIn(prepared).flat()).toEqual(['d'])
    expect(JSON.stringify(prepared.request.messages)).not.toContain('Old')
  })
})

describe('how many pictures one prompt holds', () => {
  const messages = (names: readonly string[][], bytes?: number) =>
    names.map((group, index) => ({ seq: index + 1, images: group.map((name) => image(name, bytes)) }))
  const shown = (list: ReturnType<typeof messages>) =>
    [...shownImages(list)].map(([seq, images]) => [seq, images.map(({ handle }) => handle)] as const)

  test('is sixteen, the newest ones', () => {
    const groups = Array.from({ length: 4 }, (_, n) => Array.from({ length: 5 }, (__, m) => `${n}.${m}`))
    const all = shown(messages(groups))
    expect(all.flatMap(([, handles]) => handles)).toHaveLength(MAX_SHOWN_IMAGES)
    expect(all.at(-1)).toEqual([1, ['0.0']])
    expect(all[0]).toEqual([4, ['3.0', '3.1', '3.2', '3.3', '3.4']])
  })

  test('[D39] is as many as fit in memory', () => {
    const half = MAX_SHOWN_BYTES / 2
    expect(shown(messages([['a'], ['b'], ['c']], half))).toEqual([
      [3, ['c']],
      [2, ['b']],
      [1, []],
    ])
  })

  test('does not count one that comes again', () => {
    expect(shown(messages([['a', 'b'], ['a']]))).toEqual([
      [2, ['a']],
      [1, ['b']],
    ])
  })
})

describe('[U37] pictures of what is kept with local models', () => {
  const kept = [
    says('Look', ['secret'], { ...EARLIER, localOnly: true }),
    modelSays('A cat.', { ...EARLIER, localOnly: true }),
    says('And', ['open']),
  ]

  test('go to local models only', () => {
    const plan = planOf({ said: kept })
    expect(picturesIn(prepareCall(plan, LOCAL_SEEING)).flat()).toEqual(['secret', 'open'])
    const remote = prepareCall(plan, SEEING)
    expect(picturesIn(remote).flat()).toEqual(['open'])
    expect(boundaryBreach(plan, remote)).toBeNull()
  })

  test('are found by the last look at a prompt, wherever they stand', () => {
    const plan = planOf({ said: kept })
    const remote = prepareCall(plan, SEEING)
    const messages = remote.request.messages.map((message) =>
      message.role === 'user' ? { ...message, images: [image('secret')] } : message,
    )
    const leaking = { ...remote, request: { ...remote.request, messages } }
    expect(boundaryBreach(plan, leaking)).toBe('a picture of a message that is left out is in the prompt')
  })

  test('are found where they are files, too', () => {
    const secret = 'iVBORw0KGgoAsecret'.padEnd(20, 'A')
    const request = makeRequest({
      privacy: { restricted_paths: ['private/**'] },
      attachments: {
        files: [
          makeFile('private/a.png', `data:image/png;base64,${secret}`),
          makeFile('b.png', 'data:image/png;base64,iVBORw0KGgoA'),
        ],
      },
    })
    const plan = planOf({ said: [userSays('Look')] }, request)
    const remote = prepareCall(plan, SEEING)
    expect(picturesIn(remote).flat()).toEqual(['iVBORw0KGgoA'])
    expect(boundaryBreach(plan, remote)).toBeNull()
    const messages = remote.request.messages.map((message) =>
      message.role === 'user'
        ? { ...message, images: [{ mediaType: 'image/png' as const, base64: secret }] }
        : message,
    )
    const leaking = { ...remote, request: { ...remote.request, messages } }
    expect(boundaryBreach(plan, leaking)).toBe('a picture of a private file is in the prompt')
  })
})

describe('"neither the selected model nor a configured vision fallback"', () => {
  const routing = makeRequest({
    rules: [{ name: 'docs', model: LOCAL, fallbacks: ['anthropic/other'] }],
    defaultRoute: { model: LOCAL, fallbacks: [REMOTE] },
  }).policy.routing

  test('a policy takes pictures when any model that it names does', () => {
    expect(takesImages(routing, null, makeCatalogue([BLIND, SEEING]))).toBe(true)
    expect(takesImages(routing, null, makeCatalogue([BLIND]))).toBe(false)
    const other = makeModel('anthropic/other', { capabilities: { images: true } })
    expect(takesImages(routing, null, makeCatalogue([BLIND, other]))).toBe(true)
  })

  test('a chosen model stands alone', () => {
    expect(takesImages(routing, LOCAL, makeCatalogue([BLIND, SEEING]))).toBe(false)
    expect(takesImages(routing, REMOTE, makeCatalogue([BLIND, SEEING]))).toBe(true)
  })

  test('what is not known yet may take them', () => {
    const unlisted = makeCatalogue([BLIND], { lookups: { [REMOTE]: { k: 'unlisted' } } })
    expect(takesImages(routing, null, unlisted)).toBeNull()
    expect(takesImages({ ...routing, default: null, rules: [] }, null, unlisted)).toBe(false)
  })
})
