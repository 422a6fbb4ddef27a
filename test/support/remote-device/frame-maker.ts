import { namesOf, type WireNames } from './frame-shapes.ts'
import type { Fields } from './shapes.ts'

/** Frames that a device might send, and many that none would. */
export type FrameMaker = {
  /** For an authenticated connection. */
  request(names: WireNames): string | Uint8Array
  /** As the first frame of a connection. */
  first(): string | Uint8Array
}

/** How often a frame is left as it is, is changed, or is noise; the rest is binary or too long. */
const VALID_SHARE = 0.3
const MUTATED_SHARE = 0.6
const NOISE_SHARE = 0.095

/** Values that somebody forgot. */
const ODD_VALUES: readonly unknown[] = [
  ...[null, true, false, 0, -1, 1, 1.5, 2, 2 ** 31, 2 ** 53, -(2 ** 53), 1e308],
  ...[
    '',
    ' ',
    '/',
    '\u0000',
    'null',
    '__proto__',
    'constructor',
    'toString',
    '\ud800',
    '💥',
    '<b>',
    "' OR 1=1 --",
  ],
  ...[
    [],
    {},
    [[]],
    [null],
    { type: 'ping' },
    { __proto__: null },
    'x'.repeat(129),
    'x'.repeat(5000),
    ['x', 'y'],
  ],
]

const NOISE = '{}[]",:\\ntrfalse0123456789eE+-.\u0000\u00e9💥 type"protocol_version'

export function makeFrameMaker(random: () => number, devices: readonly Fields[]): FrameMaker {
  const below = (limit: number): number => Math.floor(random() * limit)
  const pick = <T>(list: readonly T[]): T => {
    const one = list[below(list.length)]
    if (one === undefined) throw new Error('there is nothing to pick from')
    return one
  }
  const hex = (length: number): string => Array.from({ length }, () => below(16).toString(16)).join('')
  const word = (): string =>
    pick(['x', 'turn:x', 'm1', '0@h1', 'h1', hex(16), `r-${below(50)}`, '/status', 'é💥'])
  let made = 0

  const operations = (names: WireNames): Fields[] => {
    const name = namesOf(names)
    return [
      ...[name.list, name.subscribe, name.detach, 'get_usage', 'get_settings', 'get_changes'].map((type) => ({
        type,
      })),
      { type: name.attach, resume: { gateway_id: hex(32), instance_id: hex(32), last_sequence: below(500) } },
      { type: 'get_history', limit: below(60), cursor: word() },
      { type: 'get_content', content_id: word(), offset: below(9), max_bytes: below(70_000) },
      ...['submit_prompt', 'steer', 'queue'].map((type) => ({ type, prompt: word() })),
      { type: 'cancel_turn', turn_id: word() },
      { type: 'answer_question', question_id: word(), answer: { type: 'selected', options: [word()] } },
      { type: 'answer_question', question_id: word(), answer: { type: 'custom', text: word() } },
      { type: 'cancel_question', question_id: word() },
      { type: 'resolve_approval', batch_id: word(), choice: pick(['approve', 'deny']) },
      { type: 'execute_command', command: word() },
      { type: name.settings, model: word(), reasoning_effort: 'high' },
      { type: 'get_request_status', target_request_id: word() },
      { type: name.saved, limit: below(120), query: word() },
      { type: name.resume, [name.id]: word() },
      { type: name.create, path: word() },
      { type: 'list_directories', path: word() },
      { type: 'set_settings', settings: { model: word() } },
      { type: pick(['pin_thread', 'unpin_thread', 'settle_thread', 'unsettle_thread']), [name.id]: word() },
      {
        type: 'upload_image',
        attachment_id: word(),
        mime_type: 'image/png',
        offset: 0,
        total_bytes: 9,
        data_base64: 'AAAA',
      },
      { type: word() },
    ]
  }

  const envelope = (names: WireNames): Fields => ({
    protocol_version: 1,
    request_id: `f-${made++}`,
    ...(random() < 0.7 ? { [namesOf(names).id]: word(), registration_epoch: below(9) } : {}),
    operation: pick(operations(names)),
  })

  const firstFrame = (): Fields => {
    const known = pick(devices)
    return pick<Fields>([
      {
        type: 'pair',
        protocol_version: 1,
        method: 'code',
        secret: `${below(10_000)}-${below(10_000)}`,
        device_name: word(),
      },
      {
        type: 'pair',
        protocol_version: 1,
        method: 'credential',
        secret: hex(43),
        device_name: word(),
        install_id: hex(20),
      },
      { type: 'authenticate', protocol_version: 1, device_id: known.device_id, token: hex(43) },
      { type: 'authenticate', protocol_version: 1, device_id: known.device_id, refresh_token: hex(43) },
      { type: 'authenticate', protocol_version: 1, device_id: hex(16), access_token: hex(43) },
      { type: 'authenticate', protocol_version: 1, device_id: known.device_id, token: known.token },
      {
        type: 'connect_request',
        protocol_version: 1,
        device_name: word(),
        platform: 'ios',
        device_kind: 'desktop',
      },
      { type: 'token_ack', rotation_id: hex(16) },
      envelope('session'),
      { type: 'ping' },
    ])
  }

  /** Changes one place of a value. */
  const mutated = (value: unknown): unknown => {
    if (Array.isArray(value))
      return value.length === 0 ? pick(ODD_VALUES) : value.map((entry) => entry).concat(pick(ODD_VALUES))
    if (typeof value !== 'object' || value === null) return pick(ODD_VALUES)
    const entries = Object.entries(value)
    if (entries.length === 0) return pick(ODD_VALUES)
    const at = below(entries.length)
    const [name, entry] = entries[at] ?? ['', null]
    switch (below(5)) {
      case 0:
        return Object.fromEntries(entries.filter((_, index) => index !== at))
      case 1:
        return Object.fromEntries([...entries, [word(), pick(ODD_VALUES)]])
      case 2:
        return Object.fromEntries(entries.map((one, index) => (index === at ? [`${name}x`, entry] : one)))
      case 3:
        return { ...value, [name]: pick(ODD_VALUES) }
      default:
        return { ...value, [name]: mutated(entry) }
    }
  }

  /** Changes the text itself: it is seldom JSON any more. */
  const garbled = (content: string): string => {
    const at = below(content.length + 1)
    switch (below(4)) {
      case 0:
        return content.slice(0, at)
      case 1:
        return content.slice(0, at) + pick([...NOISE]) + content.slice(at)
      case 2:
        return content.slice(0, at) + content.slice(at + 1 + below(5))
      default:
        return content + content.slice(at)
    }
  }

  const noise = (): string => Array.from({ length: below(300) }, () => pick([...NOISE])).join('')

  const make = (valid: () => Fields): string | Uint8Array => {
    const draw = random()
    if (draw < VALID_SHARE) return JSON.stringify(valid())
    if (draw < VALID_SHARE + MUTATED_SHARE) {
      let frame: unknown = valid()
      for (let n = below(3); n >= 0; n--) frame = mutated(frame)
      const content = JSON.stringify(frame)
      return random() < 0.2 ? garbled(content) : content
    }
    if (draw < VALID_SHARE + MUTATED_SHARE + NOISE_SHARE) return noise()
    return pick([
      Uint8Array.from({ length: below(64) }, () => below(256)),
      new TextEncoder().encode(JSON.stringify(valid())),
      JSON.stringify({ ...valid(), padding: 'x'.repeat(300_000) }),
      JSON.stringify({ ...valid(), padding: 'x'.repeat(1_100_000) }),
      '['.repeat(50_000),
      '{"a":'.repeat(20_000),
      `{"protocol_version":1,"request_id":"deep","later":${'['.repeat(9_000)}${']'.repeat(9_000)}}`,
    ])
  }

  return { request: (names) => make(() => envelope(names)), first: () => make(firstFrame) }
}
