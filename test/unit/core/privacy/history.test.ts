import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { makePrivacyGuard } from '../../../../src/core/privacy/guard.ts'
import { messageConstraints, seenIn } from '../../../../src/core/privacy/history.ts'
import { formatRanges, parseRanges } from '../../../../src/core/privacy/seq-ranges.ts'
import { ANY_FILE, type Seen, type TranscriptMessage } from '../../../../src/core/transcript.ts'
import {
  EARLIER_RUN,
  makeCall,
  makePrivacy,
  makeRequest,
  makeView,
  modelSays,
  RUN,
  userSays,
} from '../../../support/core/builders.ts'

type Said = Omit<TranscriptMessage, 'seq'>
type ViewFields = Parameters<typeof makeView>[1]

const ROOT = '/code'
const guardOf = (...restricted: string[]) =>
  makePrivacyGuard(makePrivacy({ restricted_paths: restricted }), [], ROOT)
const SECRETS = guardOf('secrets/**')
const CONFIG = guardOf('secrets/**', 'config/**')
const OPEN = guardOf()

/** What an answer’s prompt held, judged by the policy about secrets. */
const held = (fields: Partial<Seen>): { seen: Seen } => ({
  seen: { under: SECRETS.key, root: ROOT, ...fields },
})

const reads = (path: string, fields: Partial<Said> = {}): Said =>
  modelSays('let me see', {
    runId: EARLIER_RUN,
    calls: [makeCall({ name: 'read_file', arguments: { path } })],
    ...fields,
  })
const before = { runId: EARLIER_RUN }
const between = { runId: 'run-between' }

/** The numbers of the messages that only local models may see. */
const hidden = (said: Said[], guard = SECRETS, fields: ViewFields = {}): number[] => [
  ...messageConstraints(makeView(makeRequest(), { said, ...fields }), guard).keys(),
]

describe('[U37] which messages only local models may see', () => {
  test('from the call that touched a private file on, what the model said in that run', () => {
    const said = [
      userSays('go', before),
      reads('a.ts'),
      reads('secrets/key'),
      modelSays('It is 42.', before),
      userSays('and now?'),
      modelSays('Hello.'),
    ]
    expect(hidden(said)).toEqual([3, 4])
    expect(hidden(said, OPEN)).toEqual([])
  })

  test('what was answered over a file that a policy made private only later, and what repeats that', () => {
    const said = [
      userSays('go', before),
      modelSays('It says 42.', { ...before, ...held({ files: ['src/a.ts', 'config/prod.json'] }) }),
      modelSays('Anything else?', { ...before, ...held({}) }),
      userSays('and?', between),
      modelSays('As I said, 42.', { ...between, ...held({ messages: '1-3' }) }),
      userSays('now'),
    ]
    expect(hidden(said)).toEqual([])
    expect(hidden(said, CONFIG)).toEqual([2, 3, 5])
    expect(hidden(said, OPEN)).toEqual([])
  })

  test('not what was said without the message that became private', () => {
    const said = [
      userSays('go', before),
      modelSays('It says 42.', { ...before, ...held({ files: ['config/prod.json'] }) }),
      userSays('hello', between),
      modelSays('Good day.', { ...between, ...held({ messages: '1,3' }) }),
    ]
    expect(hidden(said, CONFIG)).toEqual([2])
  })

  test('what was answered over files that nothing names, under any other policy than the one of then', () => {
    const said = [
      userSays('go', before),
      modelSays('So it is.', { ...before, ...held({ files: [ANY_FILE] }) }),
    ]
    expect(hidden(said)).toEqual([])
    expect(hidden(said, CONFIG)).toEqual([2])
    expect(hidden(said, OPEN)).toEqual([])
  })

  test('what builds on messages that are out of sight, under any other policy than the one of then', () => {
    const said = [
      userSays('go', between),
      modelSays('As I said.', { ...between, ...held({ messages: '1-12' }) }),
      userSays('now'),
    ]
    const view = makeView(makeRequest(), { said, olderMessages: 10 })
    const late = {
      ...view,
      transcript: view.transcript.map((message) => ({ ...message, seq: message.seq + 10 })),
    }
    expect([...messageConstraints(late, SECRETS).keys()]).toEqual([])
    expect([...messageConstraints(late, CONFIG).keys()]).toEqual([12])
  })

  test('what a run says that began out of sight, under any other policy than the one of then', () => {
    const said = [modelSays('So it is.', { ...between, ...held({}) }), userSays('now')]
    expect(hidden(said, SECRETS, { olderMessages: 3 })).toEqual([])
    expect(hidden(said, CONFIG, { olderMessages: 3 })).toEqual([1])
    expect(hidden(said, CONFIG)).toEqual([])
  })

  test('what was said where no remote model was to hear it, the user’s words included', () => {
    const said = [
      userSays('among us', { ...before, localOnly: true }),
      modelSays('of course', { ...before, localOnly: true }),
      userSays('now'),
    ]
    expect(hidden(said, OPEN)).toEqual([1, 2])
  })

  test('what was read or shown in another workspace, by where it lay', () => {
    const vault = { root: '/home/u/vault' }
    const absolute = guardOf('/home/u/vault/**')
    const shown = modelSays('It says 42.', { ...before, ...held({ ...vault, files: ['/home/u/vault/k'] }) })
    expect(hidden([userSays('go', before), shown], absolute)).toEqual([2])
    expect(hidden([userSays('go', before), reads('k', held(vault))], absolute)).toEqual([2])
    expect(hidden([userSays('go', before), reads('k', held({}))], absolute)).toEqual([])
    const below = held({ root: '/code/secrets' })
    expect(hidden([userSays('go', before), reads('k', below)], SECRETS)).toEqual([2])
  })

  test('what a run says whose private call is not in the transcript any more', () => {
    const pastCalls = [makeCall({ name: 'read_file', arguments: { path: 'secrets/key' } }, '')]
    expect(hidden([modelSays('It is 42.', before), userSays('now')], SECRETS, { pastCalls })).toEqual([1])
  })
})

describe('[U37] what an answer keeps of its prompt', () => {
  const all = () => true
  const seen = (said: Said[], shown: string[], included: (message: TranscriptMessage) => boolean = all) =>
    seenIn(makeView(makeRequest(), { said }), SECRETS, shown, included)

  test('the files that its context showed and the messages that were in it', () => {
    const said = [userSays('go', before), modelSays('done', before), userSays('now')]
    expect(seen(said, ['a.ts', 'b.ts', 'a.ts'])).toEqual({
      under: SECRETS.key,
      root: ROOT,
      files: ['/code/a.ts', '/code/b.ts'],
      messages: '1-3',
    })
    expect(seen(said, [], ({ role }) => role === 'user')).toEqual({
      under: SECRETS.key,
      root: ROOT,
      messages: '1,3',
    })
  })

  test('once in a run: nothing that an earlier answer of it tells', () => {
    const said = [
      userSays('go', before),
      userSays('now'),
      modelSays('one', held({ files: ['/code/a.ts'], messages: '1-2' })),
      modelSays('two', held({ files: ['/code/b.ts'], messages: '3' })),
    ]
    expect(seen(said, ['a.ts', 'b.ts'], ({ seq }) => seq < 4)).toEqual({ under: SECRETS.key, root: ROOT })
    expect(seen(said, ['a.ts', 'c.ts'])).toEqual({
      under: SECRETS.key,
      root: ROOT,
      files: ['/code/c.ts'],
      messages: '4',
    })
    const underAnother = said.map((message) =>
      message.seen === undefined ? message : { ...message, seen: { ...message.seen, under: 'another' } },
    )
    expect(seen(underAnother, ['a.ts'])).toMatchObject({ files: ['/code/a.ts'], messages: '1-4' })
  })

  test('files without names when they are too many', () => {
    const many = Array.from({ length: 501 }, (_, n) => `src/${n}.ts`)
    expect(seen([userSays('now')], many)).toMatchObject({ files: [ANY_FILE] })
    const later = [userSays('now'), modelSays('one', { runId: RUN, ...held({ files: [ANY_FILE] }) })]
    expect(seen(later, ['new.ts']).files).toBeUndefined()
  })

  test('numbers of messages in ranges, and gets them back', () => {
    expect(formatRanges([1, 2, 3, 7, 9, 10])).toBe('1-3,7,9-10')
    expect(parseRanges('')).toEqual([])
    fc.assert(
      fc.property(fc.uniqueArray(fc.nat(60)), (numbers) => {
        const rising = numbers.toSorted((a, b) => a - b)
        const back = parseRanges(formatRanges(rising)).flatMap(([from, to]) =>
          Array.from({ length: to - from + 1 }, (_, n) => from + n),
        )
        expect(back).toEqual(rising)
      }),
      { seed: 1 },
    )
  })
})
