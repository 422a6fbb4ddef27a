import { readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { MAX_FACTS_PER_SCOPE, MAX_RECALLED_CHARS, MAX_RECALLED_PER_SCOPE } from '../../src/core/memory.ts'
import { MAX_WARNINGS } from '../../src/core/policy-check.ts'
import { MAX_READ_BYTES } from '../../src/host/tools/read-file.ts'
import { MAX_WHOLE_FILE_BYTES } from '../../src/host/tools/text-file.ts'
import { MAX_MEMORY_CONTENT_CHARS } from '../../src/protocol/execution/memory.ts'
import { MAX_GLOB_CHARS, MAX_GLOB_WILDCARDS } from '../../src/protocol/glob.ts'
import { MAX_JSON_DEPTH } from '../../src/protocol/json-depth.ts'
import * as provider from '../../src/providers/bounds.ts'
import { MAX_HISTORY_MESSAGES } from '../../src/session/transcript-window.ts'
import { MAX_HELD_UNITS, MAX_PIECE_UNITS, MAX_RETIRED_UNITS } from '../../src/session/turn-channel.ts'
import * as limit from '../../src/storage/limits.ts'
import { MAX_POLICY_UNITS } from '../../src/storage/session/policies.ts'
import { MAX_ISSUES } from '../../src/worker/body-issues.ts'

const number = (value: number): string => value.toLocaleString('en')
/** A whole number of the largest binary unit that divides it. */
function binary(value: number, unit = 'B'): string {
  const [name, size] =
    value % 2 ** 20 === 0 ? ['Mi', 2 ** 20] : value % 2 ** 10 === 0 ? ['Ki', 2 ** 10] : ['', 1]
  return `${number(value / Number(size))} ${name}${unit}`
}
const characters = (value: number): string => binary(value, ' characters')
const minutes = (ms: number): string => `${ms / 60_000} min`

/** What the README has to say of each limit. */
const TABLE: readonly (readonly [what: string, limit: string])[] = [
  ['**one request**', ''],
  ['request body', `${binary(limit.MAX_BODY_BYTES)}, nested ${MAX_JSON_DEPTH} levels deep`],
  ['attached files', `${number(limit.MAX_FILES)}, ${binary(limit.MAX_FILE_BYTES)} each`],
  [
    'a path; paths that a prompt points at',
    `${number(limit.MAX_PATH_BYTES)} bytes; ${number(limit.MAX_REFERENCED_PATHS)}`,
  ],
  ['the git diff', binary(limit.MAX_DIFF_BYTES)],
  ['instructions', `${limit.MAX_INSTRUCTIONS}, ${binary(limit.MAX_INSTRUCTION_BYTES)} each`],
  [
    'skills',
    `${limit.MAX_SKILLS} that are called and ${limit.MAX_SKILLS} that can be, ${binary(limit.MAX_SKILL_BYTES)} each`,
  ],
  ['declared tools', `128, ${binary(limit.MAX_TOOL_SCHEMA_BYTES)} of parameters each`],
  [
    'rules of a policy',
    `${number(limit.MAX_RULES)} of each kind; ${number(limit.MAX_KEYWORDS)} keywords, ${limit.MAX_FALLBACKS} fallbacks each; ${number(limit.MAX_PERMISSIONS)} permissions`,
  ],
  [
    'a pattern of paths',
    `${MAX_GLOB_CHARS} characters, ${MAX_GLOB_WILDCARDS} wildcards; a longer one counts as invalid`,
  ],
  ['problems of a policy that are named at once', `${MAX_ISSUES} that refuse it, ${MAX_WARNINGS} warnings`],
  ['names of rules and skills', `${limit.MAX_NAME_BYTES} bytes`],
  [
    'tool results',
    `${number(limit.MAX_RESULTS)}, ${binary(limit.MAX_TOOL_RESULT_BYTES)} each; kept whole, and shown to the model as far as its window takes it`,
  ],
  ['decisions', `${limit.MAX_DECISIONS}, with a reason of ${binary(limit.MAX_REASON_BYTES)} each`],
  ['injected texts', `${limit.MAX_INJECTED_MESSAGES} at once`],
  ['title, scope; key id', `${number(limit.MAX_TITLE_BYTES)} bytes each; ${limit.MAX_KEY_ID_BYTES} bytes`],
  [
    'idempotency key',
    `${limit.MAX_IDEMPOTENCY_KEY_CHARS} characters, remembered for ${limit.IDEMPOTENCY_TTL_MS / 3_600_000} h`,
  ],
  ['**one turn**', ''],
  [
    'one model call',
    `${minutes(provider.CALL_TOTAL_MS)} in all; ${minutes(provider.FIRST_BYTE_MS)} to the first byte of a stream, ${minutes(provider.PATIENT_FIRST_BYTE_MS)} on a machine of yours and where a model of a compatible endpoint thinks in silence; ${minutes(provider.SILENCE_MS)} of silence in a stream that has begun, without a limit on a machine of yours`,
  ],
  [
    'one answer of a model',
    `${characters(provider.MAX_ANSWER_CHARS)} with its reasoning and calls; ${provider.MAX_CALLS_PER_ANSWER} calls, ${characters(provider.MAX_ARGUMENT_CHARS)} of arguments each; ${binary(provider.MAX_STREAMED_BYTES)} of stream, ${binary(provider.MAX_EVENT_BYTES)} per event; ${binary(provider.MAX_BUFFERED_BYTES)} if it is not streamed`,
  ],
  [
    'history that takes part in a turn',
    `the newest ${number(MAX_HISTORY_MESSAGES)} messages and ${binary(limit.MAX_HISTORY_BYTES)}, trimmed to the model's window; in an encrypted session ${binary(limit.MAX_SEALED_HISTORY_BYTES)}`,
  ],
  [
    'stream of a turn that can be resumed from memory',
    `${characters(MAX_HELD_UNITS)} and its end, held once for all readers; ${characters(MAX_RETIRED_UNITS)} once another turn has begun. A slow reader is given ${characters(MAX_PIECE_UNITS)} at a time; one that falls behind what is held gets the end`,
  ],
  ['a policy that `explain` can decide by again', binary(MAX_POLICY_UNITS)],
  ['**what piles up**', ''],
  ['what a user says in one run', binary(limit.MAX_RUN_WORDS_BYTES)],
  [
    'what a run of an encrypted session starts with',
    `${binary(limit.MAX_SEALED_BUNDLE_BYTES)}: prompt, attachments and diff`,
  ],
  ['turns of a run', number(limit.MAX_TURNS_PER_RUN)],
  ['runs of a session', number(limit.MAX_RUNS_PER_SESSION)],
  ['messages of a session', number(limit.MAX_MESSAGES_PER_SESSION)],
  ['sessions of an account', `${number(limit.MAX_SESSIONS_PER_USER)} that are not archived`],
  ['API keys of an account', number(limit.MAX_API_KEYS)],
  [
    'facts that are remembered',
    `${MAX_FACTS_PER_SCOPE} about you and ${MAX_FACTS_PER_SCOPE} per session, ${number(MAX_MEMORY_CONTENT_CHARS)} characters each; the newest ${MAX_RECALLED_PER_SCOPE} of each take part in a turn, ${MAX_RECALLED_CHARS} characters of each`,
  ],
  ['**pages**', ''],
  ['session list', `${number(limit.MAX_LISTED_SESSIONS)} per page`],
  ['trace events', `${number(limit.MAX_TRACE_EVENTS)} per page`],
  ['sessions of an export', `${limit.SESSIONS_PER_PAGE} per page`],
  ['**the command**', ''],
  ['a file to attach, edit or compare; a template, a skill', binary(MAX_WHOLE_FILE_BYTES)],
  ['one answer of `read_file`', binary(MAX_READ_BYTES)],
]

test('[D27] the README states every limit as it is', () => {
  const readme = readFileSync(path.join(import.meta.dirname, '../../README.md'), 'utf8')
  const [, section = ''] = /^## Limits\n([\s\S]*?)^## /m.exec(readme) ?? []
  const rows = section.split('\n').filter((line) => line.startsWith('| '))
  expect(rows).toEqual([
    '| what | limit |',
    '| --- | --- |',
    ...TABLE.map(([what, most]) => `| ${what} | ${most}${most === '' ? '' : ' '}|`),
  ])
})

test('[D27] no limit of storage is left out of the table, but those of how D1 and the object are written to', () => {
  const source = readFileSync(import.meta.filename, 'utf8')
  const inside = [
    'MAX_INLINE_BYTES',
    'MAX_D1_TEXT_BYTES',
    'MAX_BATCH_BYTES',
    'MAX_BATCH_STATEMENTS',
    'MAX_SCOPE_BYTES',
  ]
  const missing = Object.keys(limit).filter(
    (name) => name.startsWith('MAX_') && !inside.includes(name) && !source.includes(`limit.${name}`),
  )
  expect(missing).toEqual([])
  expect(limit.MAX_SCOPE_BYTES).toBe(limit.MAX_TITLE_BYTES)
})
