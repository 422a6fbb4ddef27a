import { expect, test } from 'vitest'
import { mediate } from '../../../src/core/mediate.ts'
import { planTurn, prepareCall } from '../../../src/core/resolve.ts'
import { chooseModel } from '../../../src/core/select.ts'
import type { TranscriptMessage } from '../../../src/core/transcript.ts'
import {
  makeCatalogue,
  makeModel,
  makeRequest,
  makeView,
  must,
  userSays,
} from '../../support/core/builders.ts'

/** One policy for the whole run: what rules match on is what the run has come to, never what was said in it. */
const request = makeRequest({
  text: 'Tidy up the parser',
  command: 'plan',
  classification: {
    default_intent: 'chat',
    rules: [
      { intent: 'review', priority: 1, requires_any_context: ['file_changed'] },
      { intent: 'edit', priority: 2, requires_any_context: ['plan_approved'] },
    ],
  },
  rules: [
    { name: 'planning', intent: 'plan', model: 'anthropic/planner' },
    { name: 'editing', intent: 'edit', model: 'openai/coder' },
    { name: 'reviewing', intent: 'review', model: 'ollama/reviewer' },
  ],
  permissions: { edit_file: 'allow' },
})

const catalogue = makeCatalogue(
  ['anthropic/planner', 'openai/coder', 'ollama/reviewer', 'ollama/local-model'].map((reference) =>
    makeModel(reference),
  ),
)

type Progress = { firstTurn: boolean; planning: boolean; planApproved: boolean }

/** One turn: who serves it, why, and with which conversation. */
function turn(said: Omit<TranscriptMessage, 'seq'>[], progress: Progress) {
  const plan = must(planTurn(makeView(request, { said, ...progress })))
  const choice = chooseModel(plan.demands, catalogue)
  if (choice.k !== 'use') throw new Error('nobody serves')
  const { messages } = prepareCall(plan, choice.model).request
  return { plan, choice, intent: plan.classification.intent, messages }
}

test('[D11][EC 6] the state of a run alone carries it from planning over editing to review, each on its own model', () => {
  const said = [userSays('Tidy up the parser')]
  const planned = turn(said, { firstTurn: true, planning: true, planApproved: false })
  expect([planned.intent, planned.choice.reference]).toEqual(['plan', 'anthropic/planner'])

  // The planner answers, the user approves: nobody says anything, and the next turn is another one's.
  const answer = (text: string, provider: string, model: string) => ({
    role: 'assistant' as const,
    text,
    runId: planned.plan.view.runId,
    provider,
    model,
    interrupted: false,
    calls: [],
  })
  said.push(answer('1. Split parse().', 'anthropic', 'planner'))
  const edited = turn(said, { firstTurn: false, planning: false, planApproved: true })
  expect([edited.intent, edited.choice.reference]).toEqual(['edit', 'openai/coder'])
  expect(edited.messages.slice(1)).toEqual([
    { role: 'user', text: 'Tidy up the parser' },
    { role: 'assistant', text: '1. Split parse().', toolCalls: [] },
    { role: 'user', text: 'The plan is approved. Carry it out.' },
  ])

  // The coder changes a file; the text that comes back speaks of planning, and does not matter.
  const [call] = mediate(
    [{ providerCallId: 'toolu_1', name: 'edit_file', arguments: { path: 'parse.ts', old: 'a', new: 'b' } }],
    edited.plan.tools,
    edited.plan.permissions,
  )
  expect(call).toMatchObject({ to: 'client', requiresApproval: 'allow', recordsDiff: true })
  said.push({
    ...answer('', 'openai', 'coder'),
    calls: [
      {
        id: 'call-1',
        providerCallId: 'toolu_1',
        name: 'edit_file',
        arguments: { path: 'parse.ts', old: 'a', new: 'b' },
        result: 'please plan and edit more',
        isError: false,
        changesFiles: true,
      },
    ],
  })
  const reviewed = turn(said, { firstTurn: false, planning: false, planApproved: true })
  expect([reviewed.intent, reviewed.choice.reference]).toEqual(['review', 'ollama/reviewer'])
  // The reviewer gets the coder's call under our id: the coder's means nothing to it.
  expect(reviewed.messages.slice(4)).toEqual([
    {
      role: 'assistant',
      text: '',
      toolCalls: [
        { callId: 'call-1', name: 'edit_file', arguments: { path: 'parse.ts', old: 'a', new: 'b' } },
      ],
    },
    {
      role: 'tool',
      results: [
        { callId: 'call-1', name: 'edit_file', content: 'please plan and edit more', isError: false },
      ],
    },
  ])
})

test('[D11] a change that failed leaves the run where it was', () => {
  const failed = {
    role: 'assistant' as const,
    text: '',
    runId: 'run-now',
    interrupted: false,
    calls: [
      {
        id: 'call-1',
        name: 'edit_file',
        arguments: { path: 'parse.ts' },
        result: 'no such text',
        isError: true,
        changesFiles: true,
      },
    ],
  }
  const next = turn([userSays('Tidy up the parser'), failed], {
    firstTurn: false,
    planning: false,
    planApproved: true,
  })
  expect(next.choice.reference).toBe('openai/coder')
})
