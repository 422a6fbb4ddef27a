import { describe, expect, test } from 'vitest'
import { decodeHandshake } from '../../../../src/protocol/remote/decode-handshake.ts'

const pair = {
  type: 'pair',
  protocol_version: 1,
  method: 'code',
  secret: '0042-7319',
  device_name: 'Phone',
}
const authenticate = { type: 'authenticate', protocol_version: 1, device_id: '7be0512fc84a9d36' }

const decode = (frame: unknown) => decodeHandshake(typeof frame === 'string' ? frame : JSON.stringify(frame))
const codeOf = (frame: unknown) => {
  const decoded = decode(frame)
  return decoded.ok ? 'accepted' : decoded.error.code
}
const requestOf = (frame: unknown) => {
  const decoded = decode(frame)
  if (!decoded.ok) throw new Error(decoded.error.message)
  return decoded.request
}

describe('[RF 3] a first frame', () => {
  test.each([
    ['nothing', ''],
    ['no JSON', '{"type":"pair"'],
    ['two values', '{}{}'],
    ['no object', '[1]'],
    ['null', 'null'],
    ['a number', '1'],
    [
      'half a character',
      '{"type":"pair","protocol_version":1,"method":"code","secret":"\\ud800","device_name":"a"}',
    ],
  ])('that is %s is an invalid frame', (_, text) => {
    expect(codeOf(text)).toBe('invalid_frame')
  })

  test.each([
    ['2', 'unsupported_version'],
    ['0', 'unsupported_version'],
    ['2.0', 'unsupported_version'],
    ['4294967296', 'unsupported_version'],
    ['9007199254740993', 'unsupported_version'],
    ['1.5', 'invalid_frame'],
    ['-1', 'invalid_frame'],
    ['1e400', 'invalid_frame'],
    ['"1"', 'invalid_frame'],
    ['null', 'invalid_frame'],
    ['true', 'invalid_frame'],
    ['[1]', 'invalid_frame'],
    ['{}', 'invalid_frame'],
    ['1', 'accepted'],
    ['1.0', 'accepted'],
    ['1e0', 'accepted'],
  ])('with the version %s: %s', (version, outcome) => {
    expect(
      codeOf(JSON.stringify(pair).replace('"protocol_version":1', `"protocol_version":${version}`)),
    ).toBe(outcome)
  })

  test('without a version is an invalid frame', () => {
    expect(codeOf({ ...pair, protocol_version: undefined })).toBe('invalid_frame')
  })

  test('of another version hears which versions there are, whatever else it holds', () => {
    for (const frame of [{ protocol_version: 2 }, { protocol_version: 2, type: 7, secret: [] }]) {
      const decoded = decode(frame)
      expect(decoded.ok || decoded.error).toMatchObject({
        code: 'unsupported_version',
        supported_versions: [1],
      })
    }
  })

  test('names the versions with no other code', () => {
    const decoded = decode({ protocol_version: 1 })
    expect(decoded.ok || Object.keys(decoded.error)).toEqual(['code', 'message'])
  })

  test.each([
    ['no type', { ...pair, type: undefined }],
    ['an unknown type', { ...pair, type: 'hello' }],
    ['a request', { protocol_version: 1, request_id: 'r', operation: { type: 'list_sessions' } }],
    ['an acknowledgement', { type: 'token_ack', protocol_version: 1, rotation_id: 'a' }],
    ['no secret', { ...pair, secret: undefined }],
    ['a null secret', { ...pair, secret: null }],
    ['a secret that is a number', { ...pair, secret: 427319 }],
    ['another method', { ...pair, method: 'magic' }],
    ['no name', { ...pair, device_name: undefined }],
    ['a name that is a list', { ...pair, device_name: ['Phone'] }],
    ['no device', { ...authenticate, device_id: undefined }],
    ['a token that is no text', { ...authenticate, token: 5 }],
    ['a refresh token that is no text', { ...authenticate, refresh_token: {} }],
    ['an access token that is no text', { ...authenticate, access_token: false }],
    ['a connection request without a name', { type: 'connect_request', protocol_version: 1 }],
  ])('with %s is an invalid frame', (_, frame) => {
    expect(codeOf(frame)).toBe('invalid_frame')
  })

  test('may hold fields that nobody knows, even ones named like parts of an object', () => {
    expect(requestOf({ ...pair, later: { deep: [1] }, constructor: 'x' })).toEqual(requestOf(pair))
    const text = JSON.stringify(pair).replace('{', '{"__proto__":{"device_kind":"cli"},')
    expect(requestOf(text)).toEqual(requestOf(pair))
    expect('device_kind' in requestOf(text)).toBe(false)
  })

  test('of a version of its own does not hide behind a prototype', () => {
    expect(codeOf('{"__proto__":{"protocol_version":1,"type":"authenticate","device_id":"a"}}')).toBe(
      'invalid_frame',
    )
  })

  test('counts the last of two fields of one name', () => {
    const text = JSON.stringify(pair).replace('}', ',"secret":"1111-1111"}')
    expect(requestOf(text)).toMatchObject({ secret: '1111-1111' })
  })

  test('that is nested as deep as fits into it is read like any other', () => {
    const deep = `${'['.repeat(4000)}${']'.repeat(4000)}`
    expect(codeOf(JSON.stringify(pair).replace('}', `,"later":${deep}}`))).toBe('accepted')
    expect(codeOf(JSON.stringify(pair).replace('"Phone"', deep))).toBe('invalid_frame')
  })

  test('is never quoted in a refusal', () => {
    const secret = 'TOP-SECRET'
    const frames = [
      `{"secret":"${secret}"`,
      { protocol_version: secret },
      { protocol_version: 2, type: secret },
      { ...pair, type: secret },
      { ...pair, method: secret },
      { ...pair, secret: { [secret]: secret } },
      { ...pair, device_name: [secret] },
      { ...authenticate, token: [secret], [secret]: secret },
    ]
    for (const frame of frames) {
      const decoded = decode(frame)
      expect(decoded.ok).toBe(false)
      expect(JSON.stringify(decoded)).not.toContain(secret)
    }
  })
})

describe('[RF 1] labels of a first frame', () => {
  test('may have a form that whoever stores them throws away', () => {
    const labels = {
      device_kind: 'toaster',
      platform: 'Amiga OS!',
      install_id: 'short',
      host_id: '',
      wire_names: 'conversation',
    }
    expect(requestOf({ ...pair, ...labels })).toMatchObject(labels)
    const request = { type: 'connect_request', protocol_version: 1, device_name: 'Phone', platform: '?' }
    expect(requestOf(request)).toMatchObject({ platform: '?' })
  })

  test.each(['device_kind', 'platform', 'install_id', 'host_id', 'wire_names'])(
    '%s that is no text is as good as absent',
    (label) => {
      for (const value of [null, 5, [], {}, false])
        expect(JSON.stringify(requestOf({ ...pair, [label]: value }))).toBe(JSON.stringify(requestOf(pair)))
    },
  )

  test('such as capabilities are a list, of which unknown ones mean nothing', () => {
    const capabilities = ['token_rotation', 'telepathy', 7]
    expect(requestOf({ ...pair, capabilities })).toMatchObject({
      capabilities: expect.arrayContaining(['token_rotation', 'telepathy']),
    })
    expect(requestOf({ ...pair, capabilities: null })).toEqual(
      requestOf({ ...pair, capabilities: undefined }),
    )
    expect(codeOf({ ...pair, capabilities: 'token_rotation' })).toBe('invalid_frame')
  })

  test('and tokens that are null count as absent', () => {
    const nothing = { token: null, refresh_token: null, access_token: null }
    expect(JSON.stringify(requestOf({ ...authenticate, ...nothing }))).toBe(JSON.stringify(authenticate))
  })
})
