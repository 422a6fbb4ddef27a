import {
  anything,
  byteLength,
  type Check,
  count,
  type Fields,
  flag,
  isFields,
  listOf,
  matching,
  object,
  oneOf,
  someText,
  text,
  time,
} from '../shapes.ts'

/**
 * What follows an attach: snapshots, events, and the results of the operations of one session ("Attaching, ordering and
 * resuming", "Size", "Operations"). `row` is the check of a row of the live list, in the names of the connection.
 */

/** "Size": a cut text says where it stands in the whole, in UTF-8 bytes. */
export const boundedText =
  (maxBytes: number, { named }: { named: 'must' | 'may' | 'never' }): Check =>
  (value, at) => {
    const faults = object(
      {
        text,
        truncated: flag,
        offset: count,
        total_bytes: count,
        ...(named === 'must' ? { content_id: someText } : {}),
      },
      named === 'may' ? { content_id: someText } : {},
    )(value, at)
    if (faults.length > 0 || !isFields(value)) return faults
    const bytes = byteLength(String(value.text))
    const [offset, total] = [Number(value.offset), Number(value.total_bytes)]
    if (bytes > maxBytes) faults.push(`${at}.text is longer than ${maxBytes} bytes`)
    if (offset + bytes > total) faults.push(`${at} reaches behind its end`)
    if (value.truncated !== bytes < total) faults.push(`${at}.truncated is ${String(value.truncated)}`)
    return faults
  }

const MESSAGE_BYTES = 4096
const LABEL_BYTES = 512
const LIVE_BYTES = 32 * 1024

const turnId = matching(/^turn:[0-9a-f-]{36}$/)

const timing = (value: unknown, at: string): string[] => {
  const faults = object(
    { turn_id: turnId },
    {
      started_at: time,
      ended_at: time,
      elapsed_work_ms: count,
      outcome: oneOf('completed', 'cancelled', 'failed'),
    },
  )(value, at)
  if (isFields(value) && 'ended_at' in value !== 'outcome' in value)
    faults.push(`${at} has one of ended_at and outcome`)
  return faults
}

const thoughts = { thought_time_ms: count, thought_tokens: count, thought_tokens_estimated: flag }

const origin = object({ kind: oneOf('user', 'system') })

const tool = object(
  { id: someText, name: someText, state: oneOf('preparing', 'running', 'succeeded', 'failed') },
  { detail: text },
)

const message: Check = (value, at) => {
  const role = isFields(value) ? value.role : undefined
  return object(
    {
      message_id: someText,
      role: oneOf('user', 'assistant', 'tool', 'system'),
      // What is locked has nothing more to fetch.
      content: boundedText(MESSAGE_BYTES, {
        named: isFields(value) && 'sealed' in value ? 'may' : 'must',
      }),
      ...(role === 'tool'
        ? {
            tool: object(
              { name: someText, success: flag, pending: flag },
              { call_id: someText, detail: text, arguments_id: someText },
            ),
          }
        : {}),
      ...(role === 'user' ? { origin } : {}),
    },
    {
      timestamp: time,
      ...(role === 'assistant' ? { response_time_ms: count, ...thoughts } : {}),
      ...(role === 'system' ? { origin } : {}),
      completed_at: time,
      turn: timing,
      sealed: object({ key_id: someText }),
    },
  )(value, at)
}

const question = object({
  question_id: someText,
  header: text,
  text,
  options: listOf(object({ label: text }, { description: text })),
  multiple: flag,
  position: count,
  chain_length: count,
})

const approval = object({
  batch_id: someText,
  actions: listOf(
    object({
      tool_name: someText,
      summary: someText,
      risk: someText,
      details: boundedText(32 * 1024, { named: 'must' }),
    }),
  ),
})

const decision = object(
  {
    batch_id: someText,
    choice: oneOf('approve', 'deny'),
    state: oneOf('stored', 'delivered', 'acted_on'),
    stored_at: time,
  },
  { delivered_at: time, acted_on_at: time },
)

const settings = object({
  models: listOf(object({ id: someText, model: text, reasoning_efforts: listOf(someText) })),
  selected_model: someText,
  reasoning_effort: someText,
  can_change: flag,
})

const atMost =
  (most: number, check: Check): Check =>
  (value, at) => [
    ...check(value, at),
    ...(Array.isArray(value) && value.length > most ? [`${at} has more than ${most} entries`] : []),
  ]

/** A snapshot. `one` is what the connection calls its row. */
export const snapshot = (one: string, row: Check): Check =>
  object(
    {
      [one]: row,
      snapshot_id: someText,
      sequence: count,
      generation: count,
      transcript: atMost(40, listOf(message)),
      history_revision: someText,
      pending_prompts: atMost(
        32,
        listOf(object({ kind: oneOf('steer', 'queue'), text: boundedText(LABEL_BYTES, { named: 'never' }) })),
      ),
      subagents: atMost(0, listOf(anything)),
      background_tasks: atMost(0, listOf(anything)),
      omitted: object({ tools: count, subagents: count, pending_prompts: count, background_tasks: count }),
    },
    {
      capabilities: listOf(oneOf('cancel_question', 'execute_command', 'upload_image', 'host_threads')),
      commands: listOf(
        object({
          name: someText,
          description: text,
          insertion: text,
          action: oneOf(
            ...['new_session', 'model_picker', 'session_picker', 'copy_response', 'execute', 'terminal'],
          ),
        }),
      ),
      settings,
      turn: object(
        {
          turn_id: turnId,
          live_response: boundedText(LIVE_BYTES, { named: 'must' }),
          tools: atMost(32, listOf(tool)),
          can_steer: flag,
        },
        { timing, ...thoughts },
      ),
      last_turn: timing,
      history_cursor: someText,
      pending_question: question,
      pending_approval: approval,
      approval_decision: decision,
    },
  )

const resync = oneOf('gateway_restarted', 'lagged', 'sequence_gap')

/** What an event of an attached session looks like; the reserved ones are none (D37). */
export function sessionEvent(names: 'session' | 'thread', row: Check): Check {
  const known: Readonly<Record<string, Check>> = {
    turn_started: object(
      { type: anything, turn_id: turnId, prompt: boundedText(MESSAGE_BYTES, { named: 'never' }) },
      { origin, timing },
    ),
    text_delta: object({ type: anything, text }, { timing, ...thoughts }),
    tool_started: object({ type: anything, tool }),
    tool_finished: object({
      type: anything,
      id: someText,
      success: flag,
      pending: flag,
      content: boundedText(MESSAGE_BYTES, { named: 'may' }),
    }),
    approval_requested: object({ type: anything, approval }),
    approval_resolved: object({ type: anything, batch_id: someText }),
    approval_decision: object({ type: anything, decision }),
    question_requested: object({ type: anything, question }),
    question_resolved: object({ type: anything, question_id: someText }),
    turn_finished: object({ type: anything, turn_id: turnId, timing }),
    turn_cancelled: object({ type: anything, turn_id: turnId, timing }),
    snapshot: object({ type: anything, snapshot: snapshot(names, row) }),
    resync_required: object({ type: anything, reason: resync }),
    [`${names}_closed`]: object({ type: anything, reason: oneOf('sharing_disabled', 'owner_exited') }),
  }
  return (value, at) => {
    const type = isFields(value) ? String(value.type) : ''
    const check = Object.hasOwn(known, type) ? known[type] : undefined
    return check === undefined ? [`${at} is no event: ${type}`] : check(value, at)
  }
}

const gateway = (id: Check) => ({ gateway_id: id, instance_id: id })

const usage = object(
  { turns: count },
  {
    input_tokens: count,
    output_tokens: count,
    cached_tokens: count,
    cache_write_tokens: count,
    cost_usd: anything,
  },
)
const date = matching(/^\d{4}-\d\d-\d\d$/)

/** The results beyond the list, by their type. `id` names the field of a session's id, `hex` checks a gateway's. */
export function sessionResults(
  names: 'session' | 'thread',
  id: string,
  row: Check,
  hex: Check,
): Readonly<Record<string, Check>> {
  const type = anything
  return {
    attached: object({ type, ...gateway(hex), snapshot: snapshot(names, row) }, { resync }),
    resumed: object({ type, ...gateway(hex), next_sequence: count }),
    history: object(
      { type, history_revision: someText, messages: atMost(40, listOf(message)) },
      { next_cursor: someText },
    ),
    content: (value, at) => {
      const faults = object(
        { type, content_id: someText, offset: count, text, total_bytes: count },
        { next_offset: count },
      )(value, at)
      return isFields(value) && faults.length === 0 ? [...faults, ...contentFaults(value, at)] : faults
    },
    prompt_accepted: object({ type, disposition: oneOf('started', 'queued', 'steered') }),
    turn_cancelled: object({ type, turn_id: turnId }),
    question_answered: object({ type, question_id: someText }),
    question_cancelled: object({ type, question_id: someText }),
    approval_resolved: object({ type, batch_id: someText, choice: oneOf('approve', 'deny') }),
    [`${names}_settings_updated`]: object({ type, settings }),
    command_executed: object({ type, command: matching(/^\/[a-z_]+$/), title: someText, output: text }),
    image_uploaded: object(
      { type, attachment_id: someText, next_offset: count, total_bytes: count, complete: flag },
      { prompt_reference: someText },
    ),
    [`${names}_resumed`]: object({ type, [names]: row }),
    [`saved_${names}s`]: object(
      {
        type,
        [`${names}s`]: listOf(
          object(
            {
              [id]: someText,
              title: text,
              updated_at: time,
              message_count: count,
              state: oneOf('saved', 'shared'),
            },
            { project: someText, workspace: someText },
          ),
        ),
      },
      { next_cursor: someText },
    ),
    usage: object({
      type,
      since: date,
      until: date,
      totals: usage,
      by_day: listOf(object({ day: date, usage })),
      by_harness: listOf(object({ harness: someText, usage })),
      by_model: listOf(object({ harness: someText, model: someText, usage })),
    }),
    settings: object({ type }, { harness: someText, model: someText, effort: someText }),
    thread_pinned: object({ type, [id]: someText, pinned: flag }),
    thread_settled: object({ type, [id]: someText, settled: flag }),
  }
}

/** "Size": chunks of at most 64 KiB; `next_offset` is absent at the end. */
function contentFaults(value: Fields, at: string): string[] {
  const bytes = byteLength(String(value.text))
  const end = Number(value.offset) + bytes
  const atEnd = end === Number(value.total_bytes)
  return [
    ...(bytes > 64 * 1024 ? [`${at}.text is over 64 KiB`] : []),
    ...(atEnd === 'next_offset' in value ? [`${at}.next_offset is wrong at ${end}`] : []),
    ...('next_offset' in value && value.next_offset !== end ? [`${at}.next_offset is not the end`] : []),
  ]
}
