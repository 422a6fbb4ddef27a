/** The release that `GET /status` reports; a test holds it equal to package.json. */
export const ROUTER_VERSION = '0.6.0'

/**
 * One line per change of the execution wire, oldest first, with the SHA-256 of what is published for requests and for
 * responses. A test compares the last line with the types, so that nobody changes the wire by accident. A line that a
 * release went out with is never edited: whoever changes the wire after it adds one.
 */
export const EXECUTION_WIRE_HISTORY = [
  {
    version: 1,
    since: '0.1.0',
    change: 'the contract, declared tools, `GET …/run`, decisions and epochs on calls, interrupted messages',
    requests: 'e01e3824e4dcac9a2430acde1f76278856d844b0ecf97bfc23927461f843535e',
    responses: 'c73e67b6c5749819d7892347152e2d783cf7d9a9b2abb3ec8c62b7f8739dcdec',
  },
  {
    version: 2,
    since: '0.2.0',
    change:
      'memory, API keys, account deletion, exports, endings of answers, cache writes, prices of cached input',
    requests: '3bf9b2146c322a0df5315747a0121a3130f2a3f0af5ab2ee2a9fabf4731dc4d6',
    responses: '774eaee3aa034a1f7deae436feb3723a31acf8cb944a0170707cab61a925d050',
  },
  {
    version: 3,
    since: '0.3.0',
    change:
      'why context was left out, what decisions were made from, policies beside the trace, warnings about policies, grants, paths of skills',
    requests: '2febaa5e44ae05cbe50424c76b9aa95c91e090983e51f6e591b1aa0e0a365d57',
    responses: '413bf5cc0f757c2588e2f7f458a4397690c17f88e6dab29afd6efa95dea33bd7',
  },
  {
    version: 4,
    since: '0.4.0',
    change:
      'encrypted sessions: ciphertext with injects and breaks, lost texts, ids of sealed content, sealed exports',
    requests: '838e3b6348785b9c2cc7770f540b39d4f11ee65fc46e627fb94aaf045618a142',
    responses: '13853f5c54325fe2a69e1af69fc06b40b2f9d3ef68c5f2eaefcd0caa8f3b1a50',
  },
  {
    version: 5,
    since: '0.5.0',
    change: 'pairing, devices, connection requests, sessions that are shared',
    requests: 'aaedd4313845130d34604cefbee034972236a4dac75e4fa9de82c1affecde2dc',
    responses: '3b9ca54974259d0823d0a5fa670d294e6f4dd75b05701b353f5b603613f0ca6e',
  },
  {
    version: 6,
    since: '0.6.0',
    change: 'decisions of devices on calls and gates, events of a session, the default policy, `ask_user`',
    requests: '2dca8ed4d7c03b544b4be6fae213fcd15b56db6aa075dc97b5e5146bcc0eba43',
    responses: 'b6380f7b5697a2e6ce3aaafa00b050d448bb8c48f449e7974ca7de3934ed2254',
  },
] as const

/** The same for the remote protocol. A phone updates late, so each line adds to the one before. */
export const REMOTE_WIRE_HISTORY = [
  {
    version: 1,
    since: '0.5.0',
    change: 'the contract, `host` in rows, `url` in QR codes',
    requests: 'f903ecb252be5d21c57305198a5b143a89bc5cc4d262c2651cd888e76b5eb058',
    responses: '6b07a33fa6a80742205b6430501f07f9f41868f242e832f6f7cdf550d14ab403',
  },
  {
    version: 2,
    since: '0.6.0',
    change:
      'how far a decision has come, keys of encrypted messages, what calls were given, how much a device has read',
    requests: 'f7214e7346c22bee5a15faa0cf3a703ea8bbd663f6e75d19341f12d0d9debe62',
    responses: '14744b6099fd343a71e5e9a78ca5651d7295cff008b117d430c3aeeadc70e5c0',
  },
] as const
