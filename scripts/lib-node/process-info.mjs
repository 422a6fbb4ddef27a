// What can be learned about other processes by their id, without a package.
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

/** @param {number} pid */
export function isAlive(pid) {
  try {
    process.kill(pid, 0)
    // A dead process that its parent has not taken away still has its id; in a container nobody may ever do that.
    return statFields(pid)?.[0] !== 'Z'
  } catch (error) {
    // EPERM: it exists and belongs to somebody else.
    return /** @type {NodeJS.ErrnoException} */ (error).code === 'EPERM'
  }
}

/**
 * The fields of /proc/<pid>/stat after the command name, which may itself hold spaces and brackets.
 * @param {number | string} pid
 * @returns {string[] | undefined} undefined where the process or /proc is missing
 */
function statFields(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')
  } catch {
    return undefined
  }
}

/**
 * A mark that tells a process from a later one with the same id (its start time in clock ticks).
 * @param {number} pid
 * @returns {string | undefined} undefined where the system does not say
 */
export function birthOf(pid) {
  return statFields(pid)?.[19]
}

/**
 * @param {number} pid
 * @returns {number | undefined} undefined where the system does not say
 */
export function parentOf(pid) {
  const parent = statFields(pid)?.[1]
  return parent === undefined ? undefined : Number(parent)
}

/**
 * @param {number | string} pid
 * @returns {string} its command and arguments, joined by spaces; empty where the system does not say
 */
export function commandLine(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
  } catch {
    return ''
  }
}

/**
 * @param {number} group a process group id
 * @returns {{ pid: number, command: string }[]} its living members; empty where the system does not say
 */
export function membersOfGroup(group) {
  return process.platform === 'linux' ? membersFromProc(group) : membersFromPs(group)
}

/** @param {number} group */
function membersFromProc(group) {
  /** @type {{ pid: number, command: string }[]} */
  const members = []
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const fields = statFields(name)
    if (fields?.[2] !== String(group) || fields[0] === 'Z') continue
    members.push({ pid: Number(name), command: commandLine(name) })
  }
  return members
}

/** @param {number} group */
function membersFromPs(group) {
  try {
    const rows = execFileSync('ps', ['-A', '-o', 'pid=,pgid=,command='], { encoding: 'utf8' }).split('\n')
    return rows.flatMap((row) => {
      const [, pid, pgid, command] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(row) ?? []
      return Number(pgid) === group ? [{ pid: Number(pid), command: command ?? '' }] : []
    })
  } catch {
    return []
  }
}
