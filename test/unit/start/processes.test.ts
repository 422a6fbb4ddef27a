import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { describe, expect, test } from 'vitest'
import { acquireLock } from '../../../scripts/lib-node/file-lock.mjs'
import { endLeftovers, startGroup } from '../../../scripts/lib-node/process-group.mjs'
import { isAlive, membersOfGroup } from '../../../scripts/lib-node/process-info.mjs'
import { DIE_WITH_PARENT } from '../../../scripts/lib-node/repository.mjs'
import { tempFolder } from '../../support/node/temp-folder.ts'

const IDLE = 'setInterval(() => {}, 1000)'
/** Tells its pid once all that was preloaded runs. */
const TELL_AND_IDLE = `console.log(process.pid); ${IDLE}`

/** Starts a child with `args`, which shares its output, and goes on. */
const parentOf = (args: readonly string[], detached = false) =>
  `require('node:child_process').spawn(process.execPath, ${JSON.stringify(args)}, { stdio: 'inherit', detached: ${detached} })
   ${IDLE}`

async function firstLine(child: ChildProcess): Promise<string> {
  if (child.stdout === null) throw new Error('the child has no output')
  const [line] = await once(createInterface(child.stdout), 'line')
  return line
}

const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 20))
}
const gone = (pid: number) => until(() => !isAlive(pid))
const readText = (file: string) => (existsSync(file) ? readFileSync(file, 'utf8') : '')

describe('a process that must not outlive its parent', () => {
  test('ends soon after the parent was killed', async () => {
    const parent = spawn(process.execPath, [
      '-e',
      parentOf(['--import', DIE_WITH_PARENT, '-e', TELL_AND_IDLE]),
    ])
    const pid = Number(await firstLine(parent))
    expect(isAlive(pid)).toBe(true)
    parent.kill('SIGKILL')
    await gone(pid)
  })

  test.runIf(process.platform === 'linux')('looks through the shell that npm puts in between', async () => {
    const script = path.join(tempFolder({ 'idle.mjs': TELL_AND_IDLE }), 'idle.mjs')
    const command = `${process.execPath} --import ${DIE_WITH_PARENT} ${script} & wait`
    const npm = spawn(process.execPath, [
      '-e',
      `require('node:child_process').spawn('sh', ['-c', ${JSON.stringify(command)}], { stdio: 'inherit' })
       ${IDLE}`,
    ])
    const pid = Number(await firstLine(npm))
    npm.kill('SIGKILL')
    await gone(pid)
  })
})

describe('a process group', () => {
  const place = { cwd: process.cwd(), env: process.env }

  test('is emptied when its leader is killed', async () => {
    const file = path.join(tempFolder(), 'pid')
    const script = `const child = require('node:child_process').spawn(process.execPath, ['-e', ${JSON.stringify(IDLE)}])
      require('node:fs').writeFileSync(${JSON.stringify(file)}, String(child.pid)); ${IDLE}`
    const { group, ended } = await startGroup(process.execPath, ['-e', script], place)
    await until(() => readText(file) !== '')
    expect(membersOfGroup(group)).toHaveLength(2)
    process.kill(group, 'SIGKILL')
    expect(await ended).toBe(128 + 9)
    await gone(Number(readText(file)))
  })

  test('is asked first, and ended at the second word', async () => {
    const file = path.join(tempFolder(), 'asked')
    const write = (text: string) => `require('node:fs').writeFileSync(${JSON.stringify(file)}, '${text}')`
    const stubborn = `process.on('SIGTERM', () => ${write('asked')}); ${write('ready')}; ${IDLE}`
    const { ended, stop } = await startGroup(process.execPath, ['-e', stubborn], place)
    await until(() => readText(file) === 'ready')
    stop('SIGTERM')
    await until(() => readText(file) === 'asked')
    stop('SIGTERM')
    expect(await ended).toBe(128 + 9)
  })

  test('the exit code of the leader is passed on', async () => {
    const { ended } = await startGroup(process.execPath, ['-e', 'process.exit(3)'], place)
    expect(await ended).toBe(3)
  })

  test('what a killed router left is ended, and nothing that is not known as ours', async () => {
    const parent = spawn(process.execPath, ['-e', parentOf(['-e', `${TELL_AND_IDLE} // ours`], true)])
    const group = Number(await firstLine(parent))
    const none = () => false
    await endLeftovers(group, { isManager: none, isWorker: none, patienceMs: 0 })
    expect(isAlive(group)).toBe(true)
    parent.kill('SIGKILL')
    await endLeftovers(group, {
      isManager: none,
      isWorker: (command) => command.endsWith('// ours'),
      patienceMs: 0,
    })
    await gone(group)
  })
})

describe('a lock file', () => {
  test('a living owner is waited for, and named when it does not let go', async () => {
    const file = path.join(tempFolder(), 'lock')
    const first = await acquireLock(file, { facts: { port: 1 }, waitMs: 0 })
    expect(await acquireLock(file, { waitMs: 0 })).toMatchObject({
      ok: false,
      error: { pid: process.pid, port: 1 },
    })
    const second = acquireLock(file, { waitMs: 10_000, onWait: () => first.ok && first.value.release() })
    expect(await second).toMatchObject({ ok: true })
  })

  test('a dead owner is replaced and told', async () => {
    const file = path.join(tempFolder(), 'lock')
    const child = spawn(process.execPath, ['-e', ''])
    await once(child, 'exit')
    writeFileSync(file, JSON.stringify({ pid: child.pid, group: 7 }))
    const lock = await acquireLock(file, { waitMs: 0 })
    expect(lock.ok && lock.value.previous).toEqual({ pid: child.pid, group: 7 })
  })

  test.runIf(process.platform === 'linux')(
    'an id that another process has by now holds nothing',
    async () => {
      const file = path.join(tempFolder(), 'lock')
      writeFileSync(file, JSON.stringify({ pid: process.pid, birth: 'another time' }))
      expect(await acquireLock(file, { waitMs: 0 })).toMatchObject({ ok: true })
    },
  )

  test('a dead owner whose parent has not noticed yet holds nothing', async () => {
    const file = path.join(tempFolder(), 'lock')
    // `exec sleep` never looks after the child that the shell left to it.
    const shell = spawn('sh', ['-c', 'sleep 0 & echo $!; exec sleep 60'])
    const pid = Number(await firstLine(shell))
    await gone(pid)
    writeFileSync(file, JSON.stringify({ pid }))
    expect(await acquireLock(file, { waitMs: 0 })).toMatchObject({ ok: true })
    shell.kill('SIGKILL')
  })

  test('of many that find a dead owner at once, one gets it', async () => {
    const file = path.join(tempFolder(), 'lock')
    writeFileSync(file, 'garbage')
    const all = await Promise.all(Array.from({ length: 10 }, () => acquireLock(file, { waitMs: 0 })))
    expect(all.filter(({ ok }) => ok)).toHaveLength(1)
  })
})
