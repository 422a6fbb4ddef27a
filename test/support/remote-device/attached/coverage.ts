import { isFields } from '../shapes.ts'

/**
 * Which words of the contract a suite has met: `operation:submit_prompt`, `result:prompt_accepted`, `event:text_delta`,
 * `error:busy`, `resync:lagged`, `receipt:applied`, `disposition:queued`, `closed:owner_exited`, … in the names of
 * version 1.
 */
export class Coverage {
  readonly met = new Set<string>()

  sent(operation: unknown): void {
    if (isFields(operation)) this.met.add(`operation:${v1(String(operation.type))}`)
  }

  received(frame: unknown): void {
    if (!isFields(frame)) return
    if (frame.kind === 'response') {
      if (frame.receipt !== undefined) this.met.add(`receipt:${String(frame.receipt)}`)
      this.#result(frame.result)
    }
    if (frame.kind === 'event' && isFields(frame.event)) {
      const { type, reason, timing, decision } = frame.event
      this.met.add(`event:${v1(String(type))}`)
      if (type === 'resync_required') this.met.add(`resync_required:${String(reason)}`)
      if (String(type).endsWith('_closed')) this.met.add(`closed:${String(reason)}`)
      if (isFields(timing) && timing.outcome !== undefined) this.met.add(`outcome:${String(timing.outcome)}`)
      if (isFields(decision)) this.met.add(`decision:${String(decision.state)}`)
    }
  }

  #result(result: unknown): void {
    if (!isFields(result)) return
    const type = v1(String(result.type))
    if (type === 'error') this.met.add(`error:${v1(String(result.code))}`)
    else this.met.add(`result:${type}`)
    if (result.resync !== undefined) this.met.add(`resync:${String(result.resync)}`)
    if (result.disposition !== undefined) this.met.add(`disposition:${String(result.disposition)}`)
    if (type === 'request_status') this.met.add(`status:${String(result.receipt)}`)
  }
}

const THREAD_WORDS: Readonly<Record<string, string>> = {
  threads: 'sessions',
  saved_threads: 'saved_sessions',
  stale_thread: 'stale_session',
  thread_closed: 'session_closed',
  thread_resumed: 'session_resumed',
  thread_settings_updated: 'session_settings_updated',
  attach_thread: 'attach_session',
  detach_thread: 'detach_session',
  list_threads: 'list_sessions',
  subscribe_threads: 'subscribe_sessions',
  list_saved_threads: 'list_saved_sessions',
  resume_thread: 'resume_session',
  set_thread_settings: 'set_session_settings',
}

const v1 = (word: string): string => (Object.hasOwn(THREAD_WORDS, word) ? (THREAD_WORDS[word] ?? word) : word)
