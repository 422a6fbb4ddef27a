import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { ensureInstalled, nodeProblem, whyInstall } from '../../../scripts/lib-node/ensure-installed.mjs'
import { tempFolder } from '../../support/node/temp-folder.ts'

const wanted = { lock: 'abc', platform: 'linux-x64' }
const lock = {
  packages: {
    '': { version: '0.1.0' },
    'node_modules/a': { version: '1.0.0' },
    'node_modules/for-mac': { version: '1.0.0', optional: true },
  },
}
const installed = { packages: { 'node_modules/a': { version: '1.0.0' } } }
const facts = { wanted, stamp: wanted, installed, lock, hasOwnNode: true }

describe('whether to install', () => {
  test.each([
    ['the stamp names this lock and platform', facts, undefined],
    ['nothing is there', { ...facts, installed: undefined }, 'there are none yet'],
    ['the own Node is missing', { ...facts, hasOwnNode: false }, /Node that the project runs on/],
    ['installed by hand, and right', { ...facts, stamp: undefined }, undefined],
    [
      'the lock changed, and by hand all was brought up to it',
      { ...facts, stamp: { ...wanted, lock: 'old' } },
      undefined,
    ],
    [
      'copied from another platform',
      { ...facts, stamp: { ...wanted, platform: 'darwin-arm64' } },
      /darwin-arm64/,
    ],
    [
      'another version',
      { ...facts, stamp: undefined, installed: { packages: { 'node_modules/a': { version: '2.0.0' } } } },
      /node_modules\/a has another version/,
    ],
    [
      'one missing',
      { ...facts, stamp: undefined, installed: { packages: {} } },
      /node_modules\/a is missing/,
    ],
    [
      'one too many',
      {
        ...facts,
        stamp: undefined,
        installed: { packages: { ...installed.packages, 'node_modules/b': { version: '1.0.0' } } },
      },
      /node_modules\/b is not in the lock/,
    ],
    ['npm was cut off and left no record', { ...facts, installed: 'garbage' }, 'there are none yet'],
  ])('%s', (_what, given, expected) => {
    const reason = whyInstall(given)
    if (expected instanceof RegExp) expect(reason).toMatch(expected)
    else expect(reason).toBe(expected)
  })

  test.each([
    ['18.20.4', 'Switchyard needs Node 20 or newer; this is 18.20.4'],
    ['20.0.0', undefined],
    ['24.21.0', undefined],
  ])('Node %s', (version, start) => {
    if (start === undefined) expect(nodeProblem(version)).toBeUndefined()
    else expect(nodeProblem(version)).toContain(start)
  })
})

describe('installing', () => {
  const checkout = () => tempFolder({ 'package-lock.json': JSON.stringify(lock) })
  const fakeInstall = (root: string) => {
    mkdirSync(path.join(root, 'node_modules/.bin'), { recursive: true })
    writeFileSync(path.join(root, 'node_modules/.bin/node'), '')
    writeFileSync(path.join(root, 'node_modules/.package-lock.json'), JSON.stringify(installed))
  }

  test('it installs once, leaves a stamp, and is silent the next time', async () => {
    const root = checkout()
    const said: string[] = []
    let runs = 0
    const world = {
      say: (line: string) => void said.push(line),
      runNpmCi: async () => {
        runs++
        fakeInstall(root)
        return 0
      },
    }
    expect(await ensureInstalled(root, world)).toEqual({ ok: true, value: 'installed' })
    expect(said).toEqual([expect.stringContaining('Installing packages (there are none yet)')])
    expect(existsSync(path.join(root, 'node_modules/.switchyard-install.json'))).toBe(true)
    expect(await ensureInstalled(root, world)).toEqual({ ok: true, value: 'already' })
    expect([runs, said.length]).toEqual([1, 1])
  })

  test('two at once install once: the second waits and finds all done', async () => {
    const root = checkout()
    const said: string[] = []
    let runs = 0
    let finish = () => {}
    const finished = new Promise<void>((resolve) => {
      finish = resolve
    })
    const world = {
      say: (line: string) => {
        said.push(line)
        if (line.startsWith('Another process')) finish()
      },
      runNpmCi: async () => {
        runs++
        await finished
        fakeInstall(root)
        return 0
      },
    }
    const both = await Promise.all([ensureInstalled(root, world), ensureInstalled(root, world)])
    expect(both.map((result) => result.ok && result.value).sort()).toEqual(['already', 'installed'])
    expect([runs, said.length]).toEqual([1, 2])
  })

  test('a failing npm is told with its exit code and with what to do', async () => {
    const result = await ensureInstalled(checkout(), { say: () => {}, runNpmCi: async () => 7 })
    expect(result).toEqual({
      ok: false,
      error: { exitCode: 7, message: expect.stringMatching(/exit code 7[\s\S]*npm ping[\s\S]*npm ci$/) },
    })
  })

  test('an npm that ends well and installs nothing is not believed', async () => {
    const result = await ensureInstalled(checkout(), { say: () => {}, runNpmCi: async () => 0 })
    expect(result).toMatchObject({
      ok: false,
      error: { message: expect.stringContaining('there are none yet') },
    })
  })

  test('the lock of an installer that was killed does not hold the next one up', async () => {
    const root = checkout()
    mkdirSync(path.join(root, '.wrangler'))
    // No process has this id: Linux and macOS stop far below it.
    writeFileSync(path.join(root, '.wrangler/install.lock'), JSON.stringify({ pid: 2 ** 30 }))
    const world = {
      say: () => {},
      runNpmCi: async () => {
        fakeInstall(root)
        return 0
      },
    }
    expect(await ensureInstalled(root, world)).toEqual({ ok: true, value: 'installed' })
    expect(existsSync(path.join(root, '.wrangler/install.lock'))).toBe(false)
  })

  test('a folder without a lock file is no checkout', async () => {
    expect(await ensureInstalled(tempFolder())).toMatchObject({
      ok: false,
      error: { message: expect.stringContaining('not a whole checkout') },
    })
  })

  test('this checkout is found right without starting npm', async () => {
    const world = { runNpmCi: () => Promise.reject(new Error('npm was started')) }
    expect(await ensureInstalled(undefined, world)).toEqual({ ok: true, value: 'already' })
  })

  test('the stamp holds the digest of the lock and the platform', async () => {
    const root = checkout()
    fakeInstall(root)
    await ensureInstalled(root)
    expect(
      JSON.parse(readFileSync(path.join(root, 'node_modules/.switchyard-install.json'), 'utf8')),
    ).toEqual({
      lock: expect.stringMatching(/^[0-9a-f]{64}$/),
      platform: `${process.platform}-${process.arch}`,
    })
  })
})
