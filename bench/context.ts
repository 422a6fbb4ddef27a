import { selectContext } from '../src/core/context.ts'
import { planTurn, prepareCall, type TurnPlan } from '../src/core/resolve.ts'
import { promptBudget } from '../src/core/select.ts'
import type { TranscriptMessage } from '../src/core/transcript.ts'
import type { RunInput, TurnView } from '../src/core/turn-view.ts'
import { ExecuteRequest } from '../src/protocol/execution/execute.ts'
import type { ModelDescriptor } from '../src/protocol/execution/models.ts'
import { type Bench, figure, ms } from './lib/bench.ts'

const SMALL_MESSAGES = 1_000
const LARGE_MESSAGES = 10_000
const ROUNDS = 15
/** What a call of a coding session gives back, as a rule: a page of a file. */
const RESULT = 'export const track = (wagon) => wagon.kind // and so on, as files are\n'.repeat(20)
const NOW = 'run-now'

const MODEL: ModelDescriptor = {
  provider: 'anthropic',
  model: 'bench',
  display_name: null,
  local: false,
  auth: 'api_key',
  capabilities: { tools: true, streaming: true },
  max_context_tokens: 200_000,
  max_output_tokens: 8_000,
  input_cost_per_million_tokens: '0',
  output_cost_per_million_tokens: '0',
  default_parameters: {},
}

const RUN_INPUT: RunInput = ExecuteRequest.parse({
  input: { text: 'go on' },
  workspace: { root: '/code', referenced_paths: [] },
  policy: {
    version: 1,
    source: 'merged',
    classification: {},
    routing: {
      rules: [{ name: 'by folder', paths: ['services/**'], model: 'anthropic/bench' }],
      default: { model: 'anthropic/bench' },
    },
    tools: { permissions: {} },
    privacy: { restricted_paths: ['**/.env', 'secrets/**', '*.pem'], remote: { mode: 'allow' } },
  },
  local_preferences: { auto_apply: false, local_only: false, no_network: false },
  attachments: { files: [], instructions: [] },
})

/** Who said what: one user message for each so many answers, each with a call and its result. */
type Shape = { what: string; answersPerRun: number }

const SHAPES: readonly Shape[] = [
  { what: 'many short runs', answersPerRun: 3 },
  { what: 'one long run', answersPerRun: Number.POSITIVE_INFINITY },
]

/** A conversation of so many messages. The last run is the current one; each answer read one file more. */
function makeView(messages: number, { answersPerRun }: Shape): TurnView {
  const perRun = Math.min(messages, answersPerRun + 1)
  const runs = Math.ceil(messages / perRun)
  const transcript = Array.from({ length: messages }, (_, index): TranscriptMessage => {
    const run = Math.floor(index / perRun)
    const runId = run === runs - 1 ? NOW : `run-${run}`
    const asked = index % perRun === 0
    const path = `src/area-${index % 40}/part-${index}.ts`
    return {
      seq: index + 1,
      role: asked ? 'user' : 'assistant',
      text: asked
        ? 'Have a look at the next part, please.'
        : 'I read it; the next thing to see is what calls it.',
      runId,
      interrupted: false,
      ...(asked
        ? {}
        : { provider: 'anthropic', model: 'bench', seen: { under: 'bench', root: '/code', files: [path] } }),
      calls: asked
        ? []
        : [
            {
              id: `call-${index}`,
              name: 'read_file',
              arguments: { path },
              result: RESULT,
              isError: false,
              changesFiles: false,
            },
          ],
    }
  })
  return {
    runInput: RUN_INPUT,
    runId: NOW,
    firstTurn: false,
    planning: false,
    planApproved: false,
    remoteDeclined: false,
    transcript,
    olderMessages: 0,
    memories: [],
  }
}

function planned(view: TurnView): TurnPlan {
  const plan = planTurn(view)
  if (!plan.ok) throw new Error(plan.error.message)
  return plan.value
}

/** The same messages as other objects: what is remembered of one that has been looked at does not count. */
const copyOf = (view: TurnView): TurnView => ({
  ...view,
  transcript: view.transcript.map((message) => ({
    ...message,
    calls: message.calls.map((call) => ({ ...call })),
  })),
})

/** What is measured of a view: each gives a function to time. */
const MEASURED: readonly { what: string; of(view: TurnView): () => unknown }[] = [
  {
    what: 'a turn is planned for the first time (classify, route, gather)',
    of: (view) => () => planned(copyOf(view)),
  },
  { what: 'the next turn is planned over the same messages', of: (view) => () => planned(view) },
  {
    what: 'context is selected',
    of: (view) => {
      const { candidates } = planned(view)
      return () =>
        selectContext(candidates, { budgetTokens: promptBudget(MODEL), local: false, images: false })
    },
  },
  {
    what: 'a call is prepared (select, assemble, report)',
    of: (view) => {
      const plan = planned(view)
      return () => prepareCall(plan, MODEL)
    },
  },
]

/** The fastest of some rounds: nothing here waits, so whatever else the machine does can only add. */
function time(action: () => unknown): number {
  action()
  const measured = Array.from({ length: ROUNDS }, () => {
    const startedAt = performance.now()
    action()
    return performance.now() - startedAt
  })
  return Math.min(...measured)
}

export const context: Bench = {
  name: 'context',
  what: `deciding on a transcript of ${LARGE_MESSAGES} messages against one of ${SMALL_MESSAGES}`,
  run: async (print) => {
    for (const shape of SHAPES) {
      const small = makeView(SMALL_MESSAGES, shape)
      const large = makeView(LARGE_MESSAGES, shape)
      for (const { what, of } of MEASURED) {
        const smallMs = time(of(small))
        const largeMs = time(of(large))
        const nsPerMessage = (largeMs * 1e6) / LARGE_MESSAGES
        const growth = nsPerMessage / ((smallMs * 1e6) / SMALL_MESSAGES)
        print(figure(`${shape.what}: ${what}`, ms(largeMs)))
        print(
          `    ${nsPerMessage.toFixed(0)} ns per message, ${growth.toFixed(2)} × that of ${SMALL_MESSAGES} (${ms(smallMs)}; 1 = linear)`,
        )
      }
    }
  },
}
