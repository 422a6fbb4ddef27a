import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { KeyStore } from '../../../../src/client/crypto/key-files.ts'
import {
  generateKey,
  keyText,
  type SessionKey,
  sessionKey,
} from '../../../../src/client/crypto/session-key.ts'
import { err, ok } from '../../../../src/protocol/result.ts'
import { tempFolder } from '../../../support/node/temp-folder.ts'

let store: KeyStore
let key: SessionKey

beforeEach(async () => {
  store = new KeyStore(path.join(tempFolder(), 'config', 'keys'))
  key = await generateKey(2)
})

const fileOf = ({ keyId }: SessionKey) => path.join(store.folder, `${keyId}.json`)
const mode = (file: string): string => (statSync(file).mode & 0o777).toString(8)
const kindOf = async (keyId: string) => {
  const loaded = await store.load(keyId)
  return loaded.ok ? 'sound' : loaded.error.kind
}

describe('a key store', () => {
  test('keeps each key in a file of its own that only its owner can read', async () => {
    const other = await generateKey(1)
    const before = process.umask(0)
    try {
      expect(await store.save(key)).toEqual(ok({ created: true }))
      expect(await store.save(other)).toEqual(ok({ created: true }))
    } finally {
      process.umask(before)
    }
    expect(readdirSync(store.folder).sort()).toEqual([`${other.keyId}.json`, `${key.keyId}.json`].sort())
    expect([store.folder, path.dirname(store.folder), fileOf(key), fileOf(other)].map(mode)).toEqual([
      '700',
      '700',
      '600',
      '600',
    ])
    expect(JSON.parse(readFileSync(fileOf(key), 'utf8'))).toEqual({
      version: 1,
      key_id: key.keyId,
      key: keyText(key),
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
    })
    expect(await store.load(key.keyId)).toEqual(ok(key))
    expect(await store.findFor(other.keyId)).toEqual(ok(other))
  })

  test('closes its folder to others when it writes', async () => {
    mkdirSync(store.folder, { recursive: true, mode: 0o755 })
    await store.save(key)
    expect(mode(store.folder)).toBe('700')
  })

  test('a rest of an interrupted write is neither a key nor in the way', async () => {
    mkdirSync(store.folder, { recursive: true, mode: 0o700 })
    writeFileSync(`${fileOf(key)}.${process.pid}.tmp`, '{"version":1,"ke', { mode: 0o666 })
    expect(await store.list()).toEqual([])
    expect(await store.save(key)).toEqual(ok({ created: true }))
    expect(readdirSync(store.folder)).toEqual([`${key.keyId}.json`])
    expect(mode(fileOf(key))).toBe('600')
  })

  test('keeping a key twice changes nothing', async () => {
    await store.save(key)
    const before = readFileSync(fileOf(key), 'utf8')
    expect(await store.save(key)).toEqual(ok({ created: false }))
    expect(readFileSync(fileOf(key), 'utf8')).toBe(before)
  })

  test('what lies under the name of a key is never overwritten', async () => {
    const other = await generateKey(2)
    await store.save(other)
    renameSync(fileOf(other), fileOf(key))
    const before = readFileSync(fileOf(key), 'utf8')
    expect(await store.save(key)).toMatchObject({ error: { kind: 'damaged' } })
    expect(readFileSync(fileOf(key), 'utf8')).toBe(before)
  })

  test('[U35] a key that is not here is named', async () => {
    expect(await store.findFor(key.keyId)).toEqual(ok(null))
    expect(await store.load(key.keyId)).toEqual(
      err({ kind: 'missing', message: `key ${key.keyId} is not on this machine` }),
    )
  })

  test('an id that is none of ours never becomes the name of a file', async () => {
    await store.save(key)
    writeFileSync(path.join(store.folder, '..', 'outside.json'), readFileSync(fileOf(key)), { mode: 0o600 })
    expect(await store.findFor('../outside')).toEqual(ok(null))
    expect(await kindOf('../outside')).toBe('missing')
  })

  test('lists its keys, the oldest first, and passes over what is none', async () => {
    const [old, bound] = [await generateKey(1), await generateKey(2)]
    for (const [one, createdAt] of [
      [bound, '2026-02-01T00:00:00.000Z'],
      [old, '2026-01-01T00:00:00.000Z'],
    ] as const) {
      await store.save(one)
      const content = JSON.parse(readFileSync(fileOf(one), 'utf8'))
      writeFileSync(fileOf(one), JSON.stringify({ ...content, created_at: createdAt }))
    }
    writeFileSync(path.join(store.folder, 'notes.json'), '{}')
    writeFileSync(path.join(store.folder, `${key.keyId}.json.bak`), '{}')
    expect(await store.list()).toEqual([
      {
        keyId: old.keyId,
        version: 1,
        file: fileOf(old),
        createdAt: '2026-01-01T00:00:00.000Z',
        problem: null,
      },
      {
        keyId: bound.keyId,
        version: 2,
        file: fileOf(bound),
        createdAt: '2026-02-01T00:00:00.000Z',
        problem: null,
      },
    ])
  })

  test('without a folder there are no keys, and nothing is wrong', async () => {
    expect(await store.list()).toEqual([])
    expect(await store.folderProblem()).toBeNull()
  })
})

describe('a key file', () => {
  test.each(['644', '640', '604', '620', '611'])(
    'of mode %s is refused with the command that mends it',
    async (octal) => {
      await store.save(key)
      chmodSync(fileOf(key), Number.parseInt(octal, 8))
      const message = `others on this machine can read the key in ${fileOf(key)}: run \`chmod 600 '${fileOf(key)}'\``
      expect(await store.load(key.keyId)).toEqual(err({ kind: 'exposed', message }))
      expect(await store.save(key)).toEqual(err({ kind: 'exposed', message }))
      expect(await store.list()).toMatchObject([{ keyId: key.keyId, problem: { kind: 'exposed' } }])
      chmodSync(fileOf(key), 0o600)
      expect(await store.load(key.keyId)).toEqual(ok(key))
    },
  )

  test('in a folder that others may change is refused with the command that mends it', async () => {
    await store.save(key)
    chmodSync(store.folder, 0o777)
    const message = `others can change what is in ${store.folder}: run \`chmod 700 '${store.folder}'\``
    expect(await store.folderProblem()).toEqual({ kind: 'exposed', message })
    expect(await store.load(key.keyId)).toEqual(err({ kind: 'exposed', message }))
    expect(await store.save(await generateKey(2))).toEqual(err({ kind: 'exposed', message }))
    chmodSync(store.folder, 0o755)
    expect(await kindOf(key.keyId)).toBe('sound')
  })

  test.each([
    ['is empty', () => ''],
    ['was cut', (text: string) => text.slice(0, 40)],
    ['is another program’s', () => '{"kty":"oct"}'],
    ['has a later form', (text: string) => text.replace('"version": 1', '"version": 2')],
    ['lost a letter of its key', (text: string) => text.replace(keyText(key), keyText(key).slice(1))],
    ['holds another key', (text: string) => text.replace(keyText(key), 'A'.repeat(43))],
    ['has no time', (text: string) => text.replace('created_at', 'made_at')],
  ])('that %s is told in a sentence that gives nothing away', async (_, change) => {
    await store.save(key)
    writeFileSync(fileOf(key), change(readFileSync(fileOf(key), 'utf8')))
    const loaded = await store.load(key.keyId)
    expect(loaded).toMatchObject({
      error: { kind: 'damaged', message: expect.stringContaining(fileOf(key)) },
    })
    expect(JSON.stringify(loaded)).not.toContain(keyText(key).slice(1, 20))
    expect(await store.list()).toMatchObject([
      { keyId: key.keyId, createdAt: null, problem: { kind: 'damaged' } },
    ])
  })

  test('[D48] of a key of version 1 does not serve as one of version 2', async () => {
    const same = await sessionKey(key.bytes, 1)
    await store.save(same)
    renameSync(fileOf(same), fileOf(key))
    expect(await kindOf(key.keyId)).toBe('damaged')
  })

  test('that is a folder, and a folder that is a file, are told in sentences', async () => {
    mkdirSync(fileOf(key), { recursive: true, mode: 0o700 })
    expect(await kindOf(key.keyId)).toBe('unreadable')
    rmSync(store.folder, { recursive: true })
    writeFileSync(store.folder, 'in the way')
    expect(await store.folderProblem()).toMatchObject({ kind: 'unreadable' })
    expect(await store.save(key)).toMatchObject({ error: { kind: 'unreadable' } })
    expect(await store.list()).toEqual([])
  })

  test('that cannot be written is told in a sentence, and leaves no rest', async () => {
    const temporary = `${fileOf(key)}.${process.pid}.tmp`
    mkdirSync(path.join(temporary, 'in-the-way'), { recursive: true, mode: 0o700 })
    expect(await store.save(key)).toMatchObject({
      error: { kind: 'unwritable', message: expect.stringContaining(fileOf(key)) },
    })
    expect(readdirSync(store.folder)).toEqual([])
  })
})
