// Preloaded (`node --import`) into processes that must not outlive the one that started them. A parent that is killed
// with SIGKILL cannot tell its children; they notice by a changed parent id and end as if asked to (SIGTERM), so that
// wrangler also stops the runtime that it started.
import { commandLine, parentOf } from './process-info.mjs'

/** Below a second, so that a restart right after a kill finds the port free again; a look costs microseconds. */
const CHECK_EVERY_MS = 250

const parent = process.ppid
// npm starts its scripts through `sh -c`, which goes on waiting when npm is killed: look through it.
const shellsParent = /^\S*sh -c /.test(commandLine(parent)) ? parentOf(parent) : undefined

setInterval(() => {
  const orphaned =
    process.ppid !== parent || (shellsParent !== undefined && parentOf(parent) !== shellsParent)
  if (orphaned) process.kill(process.pid, 'SIGTERM')
}, CHECK_EVERY_MS).unref()
