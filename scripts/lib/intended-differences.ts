/**
 * Where our execution API differs from the contract on purpose. Data only: whatever is not listed here fails
 * `npm run check:contract`, and so does an entry that no difference answers to any more.
 */

import type { DifferenceKind } from './contract/difference.ts'

/** `at` are places as the check prints them; `*` stands for anything in one. */
export type IntendedDifference = { what: DifferenceKind; at: readonly string[]; reason: string }

const USAGE_FIELDS = [
  'input_tokens',
  'output_tokens',
  'cached_tokens',
  'reasoning_tokens',
  'total_tokens',
  'currency',
]

export const INTENDED_DIFFERENCES: readonly IntendedDifference[] = [
  // Routes and headers that we add. A client of the contract never meets them.
  {
    what: 'operation added',
    at: ['GET /api/v1/sessions/{session_id}/run'],
    reason: 'a run belongs to the session and not to a connection: where it stands can be asked (D19)',
  },
  {
    what: 'operation added',
    at: ['POST /api/v1/sessions/{session_id}/stream'],
    reason: 'execute for clients that cannot set Accept; the protocol text still speaks of `stream`',
  },
  {
    what: 'operation added',
    at: ['GET /api/v1/openapi.json'],
    reason: 'the router serves its own description',
  },
  {
    what: 'operation added',
    at: ['GET /api/v1/memory', 'PUT /api/v1/memory/{memory_id}', 'DELETE /api/v1/memory/{memory_id}'],
    reason: 'what is remembered can be seen, corrected and forgotten (D50)',
  },
  {
    what: 'operation added',
    at: [
      'GET /api/v1/auth/keys',
      'POST /api/v1/auth/keys',
      'DELETE /api/v1/auth/keys/{key_id}',
      'DELETE /api/v1/auth/me',
      'GET /api/v1/export',
      'GET /api/v1/sessions/{session_id}/export',
    ],
    reason: 'an account that can be made can be rotated, taken along and deleted',
  },
  {
    what: 'operation added',
    at: ['DELETE /api/v1/sessions/{session_id}/grants/{grant_id}'],
    reason: 'what was allowed for the rest of a run can be taken back (U23)',
  },
  {
    what: 'operation added',
    at: [
      'POST /api/v1/pairing',
      'GET /api/v1/devices',
      'PUT /api/v1/devices/{device_id}',
      'DELETE /api/v1/devices/{device_id}',
      'GET /api/v1/connect-requests',
      'POST /api/v1/connect-requests/listen',
      'POST /api/v1/connect-requests/{request_id}/accept',
      'POST /api/v1/connect-requests/{request_id}/deny',
    ],
    reason: 'devices of the remote protocol are paired and looked after by their owner (U31, U32)',
  },
  {
    what: 'operation added',
    at: ['GET /api/v1/sessions/{session_id}/events'],
    reason: 'scripts follow a session without a socket (D38, U46)',
  },
  {
    what: 'operation added',
    at: ['GET /api/v1/settings/policy', 'PUT /api/v1/settings/policy'],
    reason: 'a device that prompts a session without a run needs a policy (D07)',
  },
  {
    what: 'property added',
    at: [
      'PendingApproval.decision',
      'PendingApproval.decision_state',
      'PendingApproval.decided_at',
      'PendingApproval.delivered_at',
      'ToolRequest.decision_state',
      'ToolRequest.decided_at',
      'ToolRequest.delivered_at',
    ],
    reason: 'what a device has decided, and how far that has come (D05, D10, U19)',
  },
  {
    what: 'property added',
    at: ['SessionSummary.pinned', 'SessionSummary.settled'],
    reason: 'marks that devices set and show',
  },
  {
    what: 'component added',
    at: ['PolicySettingResponse', 'PutPolicyRequest', 'SessionEvent', 'SessionEventsResponse'],
    reason: 'the shapes of the additions for devices',
  },
  {
    what: 'component added',
    at: [
      'AcceptConnectRequestResponse',
      'ConnectRequestSummary',
      'DenyConnectRequestResponse',
      'DeviceSummary',
      'ListConnectRequestsResponse',
      'ListDevicesResponse',
      'ListenResponse',
      'OpenPairingResponse',
      'PairingQr',
      'RenameDeviceRequest',
      'RenameDeviceResponse',
      'RevokeDeviceResponse',
    ],
    reason: 'the shapes of what owners do with devices',
  },
  {
    what: 'parameter added',
    at: [
      'POST /api/v1/sessions header idempotency-key',
      'POST /api/v1/sessions/{session_id}/execute header idempotency-key',
      'POST /api/v1/sessions/{session_id}/continue header idempotency-key',
    ],
    reason: 'a request whose answer was lost can be repeated (D20)',
  },
  {
    what: 'parameter added',
    at: ['POST /api/v1/auth/bootstrap header x-smista-bootstrap-token'],
    reason: 'a public deployment must not mint accounts for strangers (D43)',
  },
  {
    what: 'parameter added',
    at: ['GET /api/v1/sessions query limit', 'GET /api/v1/sessions query after'],
    reason: 'the list has pages for those who ask (D52)',
  },
  {
    what: 'parameter added',
    at: ['* header x-smista-provider-*-api-key'],
    reason: 'the contract has these headers in its text (EC 1.1) and leaves them out of its parameters',
  },

  // Refusals that the contract has in its text (EC 1.2, 1.4, 1.5, 2) and leaves out of these lists.
  {
    what: 'response added',
    at: ['* 400'],
    reason: 'credentials in the query are refused everywhere (EC 1.2)',
  },
  {
    what: 'response added',
    at: ['POST /api/v1/auth/bootstrap 403'],
    reason: 'what a closed bootstrap answers (EC 2.2, D43)',
  },
  {
    what: 'response added',
    at: ['POST /api/v1/sessions/{session_id}/execute 409'],
    reason: 'a turn may be being served already (EC 2.11, 5.3)',
  },
  { what: 'response added', at: ['* 413'], reason: 'bodies have a size limit (EC 1.5, D49)' },
  { what: 'response added', at: ['* 415'], reason: 'bodies are JSON (EC 1.4, D49)' },
  {
    what: 'response added',
    at: ['POST /api/v1/sessions 422', 'PUT /api/v1/sessions/{session_id} 422'],
    reason: 'JSON of another shape is refused, such as a session without a title (EC 1.4, 2.6)',
  },
  {
    what: 'response added',
    at: ['* 429'],
    reason: 'every route is rate limited (EC 1.5), and providers are, too',
  },
  { what: 'response added', at: ['* 500'], reason: 'anything unexpected, on any route (EC 2, 3)' },

  // Fields that we add. Readers ignore fields they do not know, and writers may leave them out.
  {
    what: 'property added',
    at: ['ContextOutcome.exclusions', 'PreviewResponse.exclusions'],
    reason: 'why each thing was left out of a prompt',
  },
  {
    what: 'property added',
    at: ['PreviewResponse.effort', 'PreviewResponse.approval', 'PreviewResponse.warnings'],
    reason: 'a preview tells everything that execute would decide, and what is amiss in the policy (EC 24.2)',
  },
  {
    what: 'property added',
    at: [
      'Payload(type=classification).inputs',
      'Payload(type=routing_decision).inputs',
      'Payload(type=routing_decision).failure',
      'Payload(type=approval).kind',
      'RoutingDecisionPayload.inputs',
      'RoutingDecisionPayload.failure',
      'ApprovalPayload.kind',
      'TraceEvent.run_id',
      'TraceEvent.turn_id',
      'Trace.policies',
    ],
    reason: 'a trace tells enough to decide its turns again',
  },
  {
    what: 'property added',
    at: ['Skill.path'],
    reason: 'a skill is a file, and files may be private',
  },
  {
    what: 'component added',
    at: [
      'ClassificationInputs',
      'ConsideredModel',
      'ContextExclusion',
      'Grant',
      'LocalReason',
      'PolicyWarning',
      'PreviewedApproval',
      'RevokeGrantResponse',
      'RoutingInputs',
    ],
    reason: 'the shapes of these additions',
  },
  {
    what: 'property added',
    at: ['ToolRequest.decision', 'ToolRequest.driver_epoch', 'ToolResult.driver_epoch'],
    reason: 'devices decide, drivers execute, and an older driver is fenced out (D05)',
  },
  {
    what: 'property added',
    at: ['Attachments.tools'],
    reason: 'tools beyond the four of the contract are declared by the client that has them (D08)',
  },
  {
    what: 'property added',
    at: ['SessionSummary.shared', 'UpdateSessionRequest.shared'],
    reason: 'a session is listed live on the devices of its user, or not (D03)',
  },
  {
    what: 'property added',
    at: ['SessionMessageDetail.interrupted'],
    reason: 'a message that was cut short is kept and says so (EC 15, D24)',
  },
  {
    what: 'property added',
    at: [
      '*(status=idle*).data.ended',
      '*(status=awaiting_encrypt*).data.ended',
      'ContinueRequest(type=break).data',
    ],
    reason: 'a stop names its target and reports what it ended (U26)',
  },
  {
    what: 'property added',
    at: ['CompletedTurn.ending'],
    reason: 'a truncated or refused answer says so (U42)',
  },
  {
    what: 'property added',
    at: ['ContinueRequest(type=inject).data.encrypted'],
    reason: 'new words at a pause may bring along the ciphertext of what it asked to seal',
  },
  {
    what: 'property added',
    at: ['SessionMessageDetail.id', 'TraceEvent.id'],
    reason: 'envelopes of version 2 are bound to the name of their content (D48)',
  },
  {
    what: 'property added',
    at: ['*.sealed_count'],
    reason:
      'the amounts of an encrypted session are in its sealed trace; it is told how many calls those are',
  },
  {
    what: 'property added',
    at: ['*.cache_write_tokens', '*.unknown_count', 'CostPayload.*_tokens', 'Payload(type=cost).*_tokens'],
    reason: 'cache reads and writes and reasoning are told apart wherever tokens are (U43)',
  },
  {
    what: 'property added',
    at: [
      'ModelDescriptor.cached_input_cost_per_million_tokens',
      'ModelDescriptor.cache_write_cost_per_million_tokens',
      'ModelDescriptor.prices_as_of',
      'ModelDescriptor.prices_up_to_input_tokens',
    ],
    reason: 'what the cache gives and takes has prices of its own, and prices have a date (EC 21)',
  },
  {
    what: 'component added',
    at: [
      'AnswerEnding',
      'ApiKeySummary',
      'CreateApiKeyResponse',
      'DeleteAccountResponse',
      'DeleteMemoryResponse',
      'EndedRun',
      'ExportRecord',
      'ExportedToolCall',
      'ListApiKeysResponse',
      'ListMemoryResponse',
      'MemoryRecord',
      'MemoryScope',
      'PlanStatus',
      'PutMemoryRequest',
      'PutMemoryResponse',
      'RevokeApiKeyResponse',
    ],
    reason: 'the shapes of the additions',
  },
  {
    what: 'component added',
    at: ['RunResponse', 'RunningTurn', 'DeclaredTool'],
    reason: 'the shapes of the additions above',
  },
  {
    what: 'component added',
    at: ['ContentRef', 'Decimal', 'Timestamp', 'Uuid'],
    reason: 'names for what the contract writes out as strings; their formats are compared all the same',
  },

  // Requests: we take more than the contract lists.
  {
    what: 'null added',
    at: [
      'ClassificationConfig.default_intent',
      'ClassificationRule.priority',
      'ContinueRequest(type=*).data.encrypted',
      'PrivacyPolicy.local',
      'PrivacyPolicy.remote',
      'RoutingRule.cost_limit',
      'RoutingRule.effort',
      'RoutingRule.local_only',
      'RoutingRule.priority',
      'RoutingRule.required_permissions',
      'ToolResult.is_error',
      'ToolsConfig.permissions',
    ],
    reason: 'a request may send null for any optional field (EC 1), which the schemas do not repeat',
  },
  {
    what: 'null missing',
    at: ['GET /api/v1/llm/models header x-smista-timeout-ms'],
    reason: 'a header cannot be null; leaving it out is what is meant',
  },

  // Requests: rules that the contract has in its text and not in its schemas.
  {
    what: 'pattern',
    at: ['ContentRef', 'Decimal', 'ModelReference', 'Provider'],
    reason: 'the forms that EC 1 and EC 4 give these strings in words',
  },
  {
    what: 'bounds',
    at: ['ContinueRequest(type=inject).data.messages'],
    reason: 'an inject without a message has nothing to inject, and would stop the turn for nothing',
  },

  // Answers: we promise more than the contract lists.
  {
    what: 'became required',
    at: ['SessionSummary.title', 'ModelDescriptor.display_name', 'ModelDescriptor.max_output_tokens'],
    reason: 'the three fields that are always there, if only as null (EC 1, omission rules)',
  },
  {
    what: 'null missing',
    at: ['Usage', 'ModelUsage', 'TaskTypeUsage', 'TurnEvent(type=usage)'].flatMap((shape) =>
      USAGE_FIELDS.map((field) => `${shape}.${field}`),
    ),
    reason: 'what is unknown is left out, not sent as null (EC 1, U43)',
  },
]
