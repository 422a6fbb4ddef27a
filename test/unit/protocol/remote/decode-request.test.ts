import { describe, expect, test } from 'vitest'
import { type Decoded, decodeRequest } from '../../../../src/protocol/remote/decode-request.ts'
import { RemoteResponse } from '../../../../src/protocol/remote/frame.ts'
import { MAX_REQUEST_BYTES } from '../../../../src/protocol/remote/limits.ts'
import { HOST_OPERATIONS, SESSION_OPERATIONS } from '../../../../src/protocol/remote/operation-kinds.ts'
import { RemoteRequest } from '../../../../src/protocol/remote/request.ts'
import { goldensOf } from './support/documents.ts'

const list = { protocol_version: 1, request_id: 'r-1', operation: { type: 'list_sessions' } }
const cancel = {
  protocol_version: 1,
  request_id: 'r-2',
  session_id: 's',
  registration_epoch: 7,
  operation: { type: 'cancel_turn', turn_id: 't' },
}

const textOf = (frame: unknown) => (typeof frame === 'string' ? frame : JSON.stringify(frame))
const decode = (frame: unknown): Decoded => decodeRequest(textOf(frame), 'session')

/** `code request_id` of a refusal, or what else the frame is. */
function outcome(frame: unknown): string {
  const decoded = decode(frame)
  if (decoded.k !== 'refused') return decoded.k
  const { result, request_id } = decoded.response
  return result.type === 'error' ? `${result.code} ${request_id}`.trimEnd() : result.type
}

const operationOf = (operation: unknown) => {
  const decoded = decode({ ...cancel, operation })
  if (decoded.k !== 'request') throw new Error(JSON.stringify(decoded))
  return decoded.request.operation
}

/** The text of a frame with another text in the place of one value. */
const withText = (frame: object, key: string, text: string) =>
  JSON.stringify({ ...frame, [key]: '@' }).replace(`"${key}":"@"`, `"${key}":${text}`)

describe('[RF 9] a request', () => {
  test.each([
    ['nothing', ''],
    ['no JSON', '{"request_id":"r-1"'],
    ['a list', '[]'],
    ['null', 'null'],
    ['text', '"list_sessions"'],
    ['half a character in a text', withText(list, 'request_id', '"r\\udc00"')],
  ])('that is %s is refused without an id', (_, text) => {
    expect(outcome(text)).toBe('invalid_request')
  })

  test.each([
    ['a field nobody knows', withText(list, 'later', '"\\uD83D"')],
    ['a name', JSON.stringify(list).replace('{', '{"\\ud83d x":1,')],
  ])('with half a character in %s is refused under its id: its sender waits', (_, text) => {
    expect(outcome(text)).toBe('invalid_request r-1')
  })

  test('may write characters beyond the first plane by two escapes, and backslashes before a u', () => {
    const text = (escaped: string) => withText(list, 'request_id', `"${escaped}"`)
    expect(decodeRequest(text('\\ud83e\\udd14'), 'session')).toMatchObject({ request: { requestId: '🤔' } })
    expect(decodeRequest(text('\\\\ud800'), 'session')).toMatchObject({ request: { requestId: '\\ud800' } })
    expect(outcome(text('\\\\\\ud800'))).toBe('invalid_request')
    expect(outcome(text('\\ud83e\\ud83e\\udd14'))).toBe('invalid_request')
  })

  test.each([
    ['2', 'incompatible_version r-1'],
    ['0', 'incompatible_version r-1'],
    ['1e300', 'incompatible_version r-1'],
    ['1.5', 'invalid_request r-1'],
    ['-1', 'invalid_request r-1'],
    ['1e400', 'invalid_request r-1'],
    ['"1"', 'invalid_request r-1'],
    ['null', 'invalid_request r-1'],
    ['{}', 'invalid_request r-1'],
    ['1.0', 'request'],
  ])('with the version %s: %s', (version, expected) => {
    expect(outcome(withText(list, 'protocol_version', version))).toBe(expected)
  })

  test('without a version is refused under its id', () => {
    expect(outcome({ ...list, protocol_version: undefined })).toBe('invalid_request r-1')
  })

  test('of another version hears which versions there are, even for unknown operations and without an id', () => {
    for (const frame of [
      { ...list, protocol_version: 2, operation: { type: 'teleport' } },
      { protocol_version: 2 },
      { protocol_version: 2, request_id: 5, operation: 7 },
    ]) {
      const decoded = decode(frame)
      expect(decoded.k === 'refused' && decoded.response.result).toMatchObject({
        code: 'incompatible_version',
        supported_versions: [1],
      })
    }
  })

  test.each([
    ['absent', undefined],
    ['null', null],
    ['a number', 5],
    ['empty', ''],
    ['of 129 bytes', 'x'.repeat(129)],
    ['of 43 characters of three bytes', '€'.repeat(43)],
    ['of 33 characters of four bytes', '🤔'.repeat(33)],
  ])('whose id is %s is refused without an id, before its operation is looked at', (_, request_id) => {
    expect(outcome({ ...list, request_id, operation: { type: 'teleport' } })).toBe('invalid_request')
  })

  test.each(['x', 'x'.repeat(128), '€'.repeat(42), '🤔'.repeat(32), ' ', '\u0000'])(
    'may have the id %j',
    (request_id) => {
      expect(decode({ ...list, request_id })).toMatchObject({ request: { requestId: request_id } })
    },
  )

  test.each(['teleport', '', 'List_sessions', 'list_threads', '__proto__', 'constructor', 'toString'])(
    'for the operation %j is not supported',
    (type) => {
      expect(outcome({ ...list, operation: { type } })).toBe('unsupported_operation r-1')
    },
  )

  test.each([
    ['no operation', undefined],
    ['null', null],
    ['a text', 'list_sessions'],
    ['a list', [{ type: 'list_sessions' }]],
    ['no type', {}],
    ['a type that is a number', { type: 5 }],
    ['a type that is null', { type: null }],
    ['a missing field', { type: 'cancel_turn' }],
    ['a null field', { type: 'cancel_turn', turn_id: null }],
    ['a field of another type', { type: 'cancel_turn', turn_id: 12 }],
    ['a negative number', { type: 'get_history', limit: -1 }],
    ['half a number', { type: 'get_history', limit: 1.5 }],
    ['a number as text', { type: 'get_history', limit: '20' }],
    [
      'a number that a double cannot hold',
      { type: 'get_content', content_id: 'c', offset: 2 ** 53, max_bytes: 4 },
    ],
    ['another choice', { type: 'resolve_approval', batch_id: 'b', choice: 'approve_all' }],
    ['another answer', { type: 'answer_question', question_id: 'q', answer: { type: 'skip' } }],
    [
      'an answer of no option',
      { type: 'answer_question', question_id: 'q', answer: { type: 'selected', options: [1] } },
    ],
    ['a cursor without a sequence', { type: 'attach_session', resume: { gateway_id: 'g' } }],
    ['a page too large', { type: 'list_saved_sessions', limit: 101 }],
    ['a page of nothing', { type: 'list_saved_sessions', limit: 0 }],
    ['a setting that devices may not write', { type: 'set_settings', settings: { approval_mode: 'yolo' } }],
    ['no settings', { type: 'set_settings' }],
  ])('with %s is invalid', (_, operation) => {
    expect(outcome({ ...cancel, operation })).toBe('invalid_request r-2')
  })

  test('whose number is beyond all numbers is invalid', () => {
    const text = JSON.stringify({ ...cancel, operation: { type: 'get_history', limit: 0 } })
    expect(outcome(text.replace('"limit":0', '"limit":1e400'))).toBe('invalid_request r-2')
    expect(outcome(text.replace('"limit":0', '"limit":40.0'))).toBe('request')
    expect(outcome(withText(cancel, 'registration_epoch', '1e400'))).toBe('invalid_request r-2')
  })

  test.each(SESSION_OPERATIONS)('%s needs its session and the epoch', (type) => {
    const golden = goldensOf('request').find(({ wire }) => RemoteRequest.parse(wire).operation.type === type)
    const request = RemoteRequest.parse(golden?.wire)
    const refused = `invalid_request ${request.request_id}`
    expect(outcome(request)).toBe('request')
    for (const key of ['session_id', 'registration_epoch']) {
      expect(outcome({ ...request, [key]: undefined })).toBe(refused)
      expect(outcome({ ...request, [key]: null })).toBe(refused)
    }
  })

  test.each(HOST_OPERATIONS)('%s needs neither, and may name them', (type) => {
    const golden = goldensOf('request').find(({ wire }) => RemoteRequest.parse(wire).operation.type === type)
    const { operation } = RemoteRequest.parse(golden?.wire)
    expect(outcome({ ...list, operation })).toBe('request')
    expect(outcome({ ...list, session_id: null, registration_epoch: null, operation })).toBe('request')
    expect(decode({ ...list, session_id: 's', registration_epoch: 7, operation })).toMatchObject({
      request: { sessionId: 's', registrationEpoch: 7 },
    })
  })

  test.each([
    ['session_id', 5],
    ['session_id', {}],
    ['registration_epoch', '7'],
    ['registration_epoch', -1],
    ['registration_epoch', 7.5],
    ['registration_epoch', 2 ** 53],
  ])('is invalid where %s is %j, also for an operation that needs none', (key, value) => {
    expect(outcome({ ...cancel, [key]: value })).toBe('invalid_request r-2')
    expect(outcome({ ...list, [key]: value })).toBe('invalid_request r-1')
  })

  test('is told of an unknown operation before a missing session', () => {
    expect(outcome({ ...list, operation: { type: 'teleport', session_id: 5 } })).toBe(
      'unsupported_operation r-1',
    )
  })

  test('reads null as absent where a field is optional', () => {
    expect(operationOf({ type: 'attach_session', resume: null })).toEqual({ type: 'attach_session' })
    expect(operationOf({ type: 'get_history', cursor: null, limit: 4 })).toEqual({
      type: 'get_history',
      limit: 4,
    })
    const resume = { gateway_id: 'g', instance_id: null, last_sequence: 0, snapshot_id: null }
    expect(operationOf({ type: 'attach_session', resume })).toEqual({
      type: 'attach_session',
      resume: { gateway_id: 'g', last_sequence: 0 },
    })
  })

  test('keeps null apart from absent in the settings, where leaving out keeps the value', () => {
    expect(operationOf({ type: 'set_settings', settings: { model: null } })).toEqual({
      type: 'set_settings',
      settings: { model: null },
    })
  })

  test('refuses a setting by whatever name it hides', () => {
    const text = JSON.stringify({ ...list, operation: { type: 'set_settings', settings: {} } })
    expect(outcome(text)).toBe('request')
    expect(outcome(text.replace('"settings":{}', '"settings":{"__proto__":{"approval_mode":"yolo"}}'))).toBe(
      'invalid_request r-1',
    )
  })

  test('is not changed by fields that are named like parts of an object', () => {
    const hidden = JSON.stringify(list).replace('{', '{"__proto__":{"session_id":"s"},"constructor":{},')
    expect(decode(hidden)).toEqual(decode(list))
    expect(outcome('{"__proto__":{"type":"token_ack","rotation_id":"a"}}')).toBe('invalid_request')
  })

  test('counts the last of two fields of one name', () => {
    expect(decode(JSON.stringify(list).replace(/}$/, ',"request_id":"r-9"}'))).toMatchObject({
      request: { requestId: 'r-9' },
    })
  })

  test('as large and as deep as a frame may be is read like any other', () => {
    const depth = MAX_REQUEST_BYTES / 2 - 200
    const deep = `${'['.repeat(depth)}${']'.repeat(depth)}`
    expect(outcome(withText(list, 'later', deep))).toBe('request')
    expect(outcome(withText(list, 'operation', deep))).toBe('invalid_request r-1')
    expect(outcome(withText(list, 'later', `${'{"a":'.repeat(40_000)}1${'}'.repeat(40_000)}`))).toBe(
      'request',
    )
    const many = JSON.stringify(Array.from({ length: 100_000 }, () => 1))
    expect(outcome(withText(list, 'later', many))).toBe('request')
    const options = Array.from({ length: 50_000 }, () => 'a')
    const answer = { type: 'answer_question', question_id: 'q', answer: { type: 'selected', options } }
    expect(outcome({ ...cancel, operation: answer })).toBe('request')
  })

  test('is never quoted in a refusal, nor has a refusal a receipt', () => {
    const secret = 'TOP-SECRET'
    const frames = [
      `{"secret":"${secret}"`,
      { ...list, protocol_version: secret },
      { ...list, protocol_version: 3, operation: { type: secret } },
      { ...list, operation: { type: secret } },
      { ...list, operation: { type: 'resume_session', session_id: [secret] } },
      { ...list, operation: { type: 'set_settings', settings: { [secret]: secret } } },
      { ...cancel, operation: { type: 'resolve_approval', batch_id: 'b', choice: secret } },
      { ...cancel, operation: { type: 'submit_prompt', prompt: { [secret]: secret } } },
      { ...cancel, session_id: [secret] },
    ]
    for (const frame of frames) {
      const decoded = decode(frame)
      expect(decoded.k).toBe('refused')
      expect(JSON.stringify(decoded)).not.toContain(secret)
      expect(JSON.stringify(decoded)).not.toContain('"receipt"')
    }
  })

  test('that is refused has an answer which fits the frame type', () => {
    for (const frame of ['', { protocol_version: 2 }, { ...list, operation: { type: 'x' } }]) {
      const decoded = decode(frame)
      expect(decoded.k === 'refused' && RemoteResponse.parse(decoded.response)).toEqual(
        decoded.k === 'refused' && decoded.response,
      )
    }
  })
})

describe('[D35] a frame that says how much was read', () => {
  const said = (bytes?: unknown, acknowledges = true) =>
    decodeRequest(JSON.stringify({ type: 'flow_ack', bytes }), 'session', acknowledges)

  test('names bytes, from none on', () => {
    expect(said(0)).toEqual({ k: 'flow_ack', bytes: 0 })
    expect(said(524_288)).toEqual({ k: 'flow_ack', bytes: 524_288 })
    expect(decodeRequest('{"type":"flow_ack","bytes":1,"later":1}', 'thread', true).k).toBe('flow_ack')
  })

  test.each([undefined, null, '1', -1, 0.5, 2 ** 60, {}])('is bad where it says %j', (bytes) => {
    expect(said(bytes)).toEqual({ k: 'bad_flow_ack' })
  })

  test.each([1, -1])('is an unknown frame where the capability was not named (%j)', (bytes) => {
    expect(said(bytes, false)).toMatchObject({ response: { result: { code: 'invalid_request' } } })
  })
})

describe('[RF 3] a frame tagged as an acknowledgement', () => {
  test('names a rotation', () => {
    expect(decode({ type: 'token_ack', rotation_id: 'c2a96e0d41f7835b' })).toEqual({
      k: 'token_ack',
      rotationId: 'c2a96e0d41f7835b',
    })
    expect(decodeRequest('{"type":"token_ack","rotation_id":"a","later":1}', 'thread').k).toBe('token_ack')
  })

  test.each([undefined, null, 5, {}, ['a']])('is bad where its rotation is %j', (rotation_id) => {
    expect(decode({ type: 'token_ack', rotation_id })).toEqual({ k: 'bad_token_ack' })
  })

  test('is none of another spelling', () => {
    expect(outcome({ type: 'TOKEN_ACK', rotation_id: 'a' })).toBe('invalid_request')
    expect(outcome({ ...list, type: 'request' })).toBe('request')
  })
})

describe('[D37] on a connection with thread names', () => {
  const decodeThread = (frame: unknown) => decodeRequest(textOf(frame), 'thread')
  const threadCancel = {
    protocol_version: 1,
    request_id: 'r-2',
    thread_id: 's',
    registration_epoch: 7,
    operation: cancel.operation,
  }

  test('a request is read as the one of version 1', () => {
    expect(decodeThread(threadCancel)).toEqual(decode(cancel))
    expect(decodeThread({ ...list, operation: { type: 'list_threads' } })).toEqual(decode(list))
  })

  test('a name of version 1 is an invalid request', () => {
    for (const frame of [cancel, list, { ...threadCancel, session_id: 's' }])
      expect(decodeThread(frame)).toMatchObject({
        k: 'refused',
        response: { result: { code: 'invalid_request' } },
      })
  })

  test('the version, the id and unknown operations are looked at as ever', () => {
    const codeOf = (frame: unknown) => decodeThread(frame)
    expect(codeOf({ ...cancel, protocol_version: 2 })).toMatchObject({
      response: { result: { code: 'incompatible_version' } },
    })
    expect(codeOf({ ...cancel, request_id: '' })).toMatchObject({ response: { request_id: '' } })
    expect(codeOf({ ...threadCancel, operation: { type: 'teleport' } })).toMatchObject({
      response: { result: { code: 'unsupported_operation' } },
    })
  })

  test('a refusal speaks of threads', () => {
    const { thread_id, ...rest } = threadCancel
    const messages = [rest, { ...threadCancel, thread_id: 5 }].map((frame) => {
      const decoded = decodeThread(frame)
      return (
        decoded.k === 'refused' && decoded.response.result.type === 'error' && decoded.response.result.message
      )
    })
    expect(messages).toEqual([
      'The operation needs thread_id and registration_epoch.',
      'thread_id is missing or of a wrong form.',
    ])
  })
})

describe('[D37] on a connection without them', () => {
  test('a thread name is an operation or a field that nobody knows', () => {
    expect(outcome({ ...list, operation: { type: 'list_threads' } })).toBe('unsupported_operation r-1')
    const { session_id, ...rest } = cancel
    expect(outcome({ ...rest, thread_id: session_id })).toBe('invalid_request r-2')
  })
})
