import { describe, expect, test } from 'vitest'
import {
  deviceKind,
  deviceName,
  hostLabel,
  platformLabel,
  stableId,
} from '../../../../src/core/gateway/labels.ts'
import { DEVICE_KINDS } from '../../../../src/protocol/remote/handshake-request.ts'

describe('[RF 5] the name of a device', () => {
  test.each([
    ['as it was sent', 'Lars’s iPhone', 'Lars’s iPhone'],
    ['control characters are dropped, not replaced', 'a\u0000b\u001b[31mc\u007f\u0085d\te', 'ab[31mcde'],
    ['runs of any white space are one space', 'a  b\u00a0\u2003c\u2028d', 'a b c d'],
    ['space around it goes', '\u3000 Ada ', 'Ada'],
    ['marks that turn the direction of text are dropped', '\u202eenohp\u2068 x\u2069', 'enohp x'],
    ['half a character is made a whole one', 'a\ud83d', 'a\ufffd'],
    ['nothing is a placeholder', '', 'Unnamed device'],
    ['what nobody can see is a placeholder', ' \u0007\u202e\n', 'Unnamed device'],
  ])('%s', (_, sent, stored) => {
    expect(deviceName(sent)).toBe(stored)
  })

  test('it is cut to 64 code points, however many bytes or string units they take', () => {
    expect(deviceName('😀'.repeat(64))).toBe('😀'.repeat(64))
    expect(deviceName('😀'.repeat(65))).toBe('😀'.repeat(64))
    expect(deviceName(`${'a'.repeat(63)}ßé`)).toBe(`${'a'.repeat(63)}ß`)
  })

  test('the stored form stays as it is when it is stored again, also where the cut fell behind a space', () => {
    const stored = deviceName(`${'a'.repeat(63)} b`)
    expect(stored).toBe('a'.repeat(63))
    expect(deviceName(stored)).toBe(stored)
  })
})

describe('[RF 1] the name of a host', () => {
  test('it is a label like a device’s, as short as it is asked for, and may be empty', () => {
    expect(hostLabel(' studio\u0000  one ', 24)).toBe('studio one')
    expect(hostLabel('x'.repeat(25), 24)).toBe('x'.repeat(24))
    expect(hostLabel(' \n', 64)).toBe('')
  })
})

describe('[RF 1] an install_id or a host_id', () => {
  test.each(['x'.repeat(16), 'x'.repeat(128), '6F9619FF-8B86-D011-B42D-00C04FC964FF', '~'.repeat(20)])(
    'is taken as it is: %j',
    (id) => {
      expect(stableId(id)).toBe(id)
    },
  )

  test.each([
    'x'.repeat(15),
    'x'.repeat(129),
    `${'x'.repeat(20)}\n`,
    `${'x'.repeat(20)}é`,
    `${'x'.repeat(20)}\u007f`,
    1234567890123456,
    null,
    undefined,
    {},
  ])('is ignored when it has another form: %j', (id) => {
    expect(stableId(id)).toBeNull()
  })
})

describe('[RF 5] the kind of a device', () => {
  test('each kind of the protocol is known', () => {
    expect(DEVICE_KINDS.map(deviceKind)).toEqual([...DEVICE_KINDS])
  })

  test.each(['watch', 'Phone', '', 'toString', '__proto__', 1, null, undefined])(
    'is phone when it is %j',
    (kind) => {
      expect(deviceKind(kind)).toBe('phone')
    },
  )
})

describe('[RF 1] the platform of a device', () => {
  test.each(['ios', 'a', 'windows-11_arm.64', 'x'.repeat(32)])('is kept: %j', (platform) => {
    expect(platformLabel(platform)).toBe(platform)
  })

  test.each(['', 'iOS', 'mac os', 'x'.repeat(33), 'ios\n', 'ïos', 5, null, undefined])(
    'is unknown when it is %j',
    (platform) => {
      expect(platformLabel(platform)).toBeNull()
    },
  )
})
