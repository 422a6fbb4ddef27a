/**
 * Which operations there are, which of them name a session and which have a receipt (remote protocol, "Session
 * frames", "Receipts"). Plain data: whoever only routes a request builds no schema for it.
 */

/** Of one session that is shared: `session_id` and `registration_epoch` are required beside the operation. */
export const SESSION_OPERATIONS = [
  'attach_session',
  'detach_session',
  'get_history',
  'get_content',
  'get_changes',
  'submit_prompt',
  'steer',
  'queue',
  'cancel_turn',
  'answer_question',
  'cancel_question',
  'resolve_approval',
  'set_session_settings',
  'execute_command',
  'upload_image',
] as const

/** Host-wide: nothing beside the operation is needed. */
export const HOST_OPERATIONS = [
  'list_sessions',
  'subscribe_sessions',
  'get_request_status',
  'list_directories',
  'create_session',
  'request_share',
  'list_saved_sessions',
  'resume_session',
  'get_usage',
  'get_settings',
  'set_settings',
  'pin_thread',
  'unpin_thread',
  'settle_thread',
  'unsettle_thread',
] as const

export type OperationType = (typeof SESSION_OPERATIONS)[number] | (typeof HOST_OPERATIONS)[number]

/** What changes something: the answer carries a receipt (RF 28). */
const MUTATIONS: ReadonlySet<OperationType> = new Set<OperationType>([
  'submit_prompt',
  'steer',
  'queue',
  'cancel_turn',
  'answer_question',
  'cancel_question',
  'resolve_approval',
  'set_session_settings',
  'execute_command',
  'upload_image',
  'create_session',
  'resume_session',
  'set_settings',
  'pin_thread',
  'unpin_thread',
  'settle_thread',
  'unsettle_thread',
])

const NAMES_SESSION: ReadonlySet<string> = new Set(SESSION_OPERATIONS)
const KNOWN: ReadonlySet<string> = new Set([...SESSION_OPERATIONS, ...HOST_OPERATIONS])

export const isOperationType = (type: string): type is OperationType => KNOWN.has(type)
/** Tells whether an answer to it carries a receipt. */
export const isMutation = (type: OperationType): boolean => MUTATIONS.has(type)
/** Tells whether it is one session's, as opposed to host-wide. */
export const namesSession = (type: OperationType): boolean => NAMES_SESSION.has(type)
