import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { OutputWindow } from '../../../src/host/tools/output-window.ts'
import { shellTool, withoutSecrets } from '../../../src/host/tools/shell.ts'
import { tempFolder } from '../../support/node/temp-folder.ts'

/** Whether a process still runs; one that is dead and was not collected by its parent does not. */
const isAlive = (pid: number): boolean => {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' })
  return stdout.trim() !== '' && !stdout.trim().startsWith('Z')
}

describe('shell', () => {
  test('runs in the workspace root, without input, and gives both streams', async () => {
    const root = tempFolder()
    const output = await shellTool(root, { command: 'pwd; cat; echo problem >&2' })
    expect(output.isError).toBe(false)
    expect(output.content.split('\n').sort()).toEqual(['', root, 'problem'].sort())
  })

  test('[EC 25.3] a non-zero exit is an error that tells the code', async () => {
    const output = await shellTool(tempFolder(), { command: 'echo no; exit 3' })
    expect(output).toEqual({ content: 'no\n\n[exit 3]', isError: true, summary: 'exit 3, 3 B' })
  })

  test('no output is said to be none', async () => {
    expect((await shellTool(tempFolder(), { command: 'true' })).content).toBe('(no output)')
  })

  test('the time limit ends the whole process group', async () => {
    const root = tempFolder()
    // The child ignores the polite request; only the group kill reaches it.
    const command = `sh -c 'trap "" TERM; echo $$ > child.pid; while :; do sleep 1; done' & wait`
    const output = await shellTool(root, { command }, { timeoutMs: 300 })
    expect(output).toMatchObject({ isError: true, summary: expect.stringContaining('time limit') })
    expect(output.content).toContain('[ended after the time limit of 0.3 s]')
    const pid = Number(await readFile(path.join(root, 'child.pid'), 'utf8'))
    expect(pid).toBeGreaterThan(0)
    await vi.waitFor(() => expect(isAlive(pid)).toBe(false))
  })

  test('the signal ends the command', async () => {
    const root = tempFolder()
    const stop = new AbortController()
    const running = shellTool(root, { command: 'touch started; sleep 60' }, { signal: stop.signal })
    await vi.waitFor(() => expect(existsSync(path.join(root, 'started'))).toBe(true))
    stop.abort()
    expect(await running).toMatchObject({ isError: true, content: '(no output)\n[stopped by the user]' })
  })

  test('a signal that comes while the command is being started ends it as well', async () => {
    const stop = new AbortController()
    const running = shellTool(tempFolder(), { command: 'sleep 60' }, { signal: stop.signal })
    stop.abort()
    expect(await running).toMatchObject({ isError: true, content: '(no output)\n[stopped by the user]' })
  })

  test('what a command leaves in the background ends with it and does not hold the answer', async () => {
    const root = tempFolder()
    const output = await shellTool(root, { command: 'sleep 60 & echo $! > bg.pid; echo done' })
    expect(output).toMatchObject({ isError: false, content: 'done\n' })
    expect(isAlive(process.pid)).toBe(true)
    const pid = Number(await readFile(path.join(root, 'bg.pid'), 'utf8'))
    expect(pid).toBeGreaterThan(0)
    await vi.waitFor(() => expect(isAlive(pid)).toBe(false))
  })

  test('a flood of output keeps its beginning and its end, and counts the rest', async () => {
    const command = 'echo first; i=0; while [ $i -lt 20000 ]; do echo "line $i"; i=$((i+1)); done; echo last'
    const { content } = await shellTool(tempFolder(), { command })
    expect(content.startsWith('first\n')).toBe(true)
    expect(content.endsWith('last\n')).toBe(true)
    expect(content).toMatch(/\[… \d+ bytes left out …\]/)
    expect(content.length).toBeLessThan(70_000)
  })

  test('keys of this program are not in the environment of a command', async () => {
    vi.stubEnv('ANTHROPIC_API_KEY', 'sk-secret')
    vi.stubEnv('SWITCHYARD_API_KEY', 'sk-secret')
    vi.stubEnv('SWITCHYARD_PROVIDER_LAB_API_KEY', 'sk-secret')
    vi.stubEnv('HARMLESS', 'shown')
    const { content } = await shellTool(tempFolder(), { command: 'env' })
    vi.unstubAllEnvs()
    expect(content).not.toContain('sk-secret')
    expect(content).toContain('HARMLESS=shown')
    expect(withoutSecrets({ OPENAI_API_KEY: 'x', PROVIDER_LAB_API_KEY: 'x', A: 'b' })).toEqual({ A: 'b' })
  })
})

describe('OutputWindow', () => {
  test('the text is whole as long as it fits, however it arrives', () => {
    const text = 'aä€😀\n'.repeat(20)
    const bytes = Buffer.from(text)
    for (const size of [1, 2, 3, 7, bytes.length]) {
      const window = new OutputWindow(bytes.length / 2)
      for (let i = 0; i < bytes.length; i += size) window.add(bytes.subarray(i, i + size))
      expect(window.text()).toBe(text)
    }
  })

  test('a cut never breaks a character, and the count of what is left out is exact', () => {
    const bytes = Buffer.from('€'.repeat(1000))
    for (const half of [31, 32, 33]) {
      const window = new OutputWindow(half)
      for (let i = 0; i < bytes.length; i += 5) window.add(bytes.subarray(i, i + 5))
      const text = window.text()
      expect(text).not.toContain('\uFFFD')
      const leftOut = Number(/… (\d+) bytes/.exec(text)?.[1])
      const kept = Buffer.byteLength(text.replace(/\n\[.*\]\n/, ''))
      expect(kept + leftOut).toBe(bytes.length)
    }
  })
})
