import type { RemoteAnswer } from '../protocol/remote/operations.ts'
import type { OfferedTool } from './prompt.ts'

/** The router's own tool by which a model asks the user (D08). */
export const ASK_USER_TOOL_NAME = 'ask_user'

export const MAX_QUESTIONS = 8
export const MAX_OPTIONS = 8
/** Longest texts of a question, in UTF-16 units: a question goes to each device in one piece, and has to fit a frame. */
const MAX_HEADER_CHARS = 200
const MAX_TEXT_CHARS = 4_000
const MAX_LABEL_CHARS = 200
const MAX_DESCRIPTION_CHARS = 1_000
/** Of an answer in own words: those of a whole chain are kept with the state of the run. */
export const MAX_ANSWER_CHARS = 16_384

const text = (description: string) => ({ type: 'string', description })

export const ASK_USER_TOOL: OfferedTool = {
  name: ASK_USER_TOOL_NAME,
  description:
    `Asks the user 1 to ${MAX_QUESTIONS} questions, one after the other, and waits for the answers. For what only the ` +
    'user can decide. A question may have options to choose from; the user may always answer in own words instead.',
  parameters: {
    type: 'object',
    properties: {
      questions: {
        type: 'array',
        minItems: 1,
        maxItems: MAX_QUESTIONS,
        items: {
          type: 'object',
          properties: {
            header: text('A word or two that name the question.'),
            text: text('The question itself.'),
            options: {
              type: 'array',
              maxItems: MAX_OPTIONS,
              description: 'What can be chosen; the labels differ from each other. Empty for a free answer.',
              items: {
                type: 'object',
                properties: {
                  label: text('What is chosen.'),
                  description: text('What choosing it means.'),
                },
                required: ['label'],
                additionalProperties: false,
              },
            },
            multiple: { type: 'boolean', description: 'More than one option may be chosen.' },
          },
          required: ['header', 'text', 'options'],
          additionalProperties: false,
        },
      },
    },
    required: ['questions'],
    additionalProperties: false,
  },
}

/** One question as the model asked it. A free answer is accepted beside the options (RF 18). */
export type AskedUser = {
  header: string
  text: string
  options: { label: string; description?: string | undefined }[]
  multiple: boolean
}

/** The questions of a call, in their order; null for arguments that are none. */
export function parseQuestions(args: Readonly<Record<string, unknown>>): AskedUser[] | null {
  const { questions } = args
  if (!Array.isArray(questions) || questions.length === 0 || questions.length > MAX_QUESTIONS) return null
  const parsed = questions.map(parseQuestion)
  const good = parsed.filter((question) => question !== null)
  return good.length === parsed.length ? good : null
}

/** What the model is told whose arguments are none. */
export const NOT_QUESTIONS =
  `The arguments do not fit. \`questions\` is a list of 1 to ${MAX_QUESTIONS} objects with \`header\` (up to ` +
  `${MAX_HEADER_CHARS} characters), \`text\` (up to ${MAX_TEXT_CHARS}), \`options\` (up to ${MAX_OPTIONS} objects with a ` +
  `\`label\` of up to ${MAX_LABEL_CHARS} characters, each another one, and maybe a \`description\` of up to ` +
  `${MAX_DESCRIPTION_CHARS}) and maybe \`multiple\`, a boolean.`

function parseQuestion(value: unknown): AskedUser | null {
  if (!isObject(value)) return null
  const { header, text: asked, options = [], multiple = false } = value
  if (!isText(header, MAX_HEADER_CHARS) || !isText(asked, MAX_TEXT_CHARS)) return null
  if (typeof multiple !== 'boolean') return null
  if (!Array.isArray(options) || options.length > MAX_OPTIONS) return null
  const parsed = options.map(parseOption).filter((option) => option !== null)
  if (parsed.length !== options.length) return null
  // An answer names options by their labels.
  if (new Set(parsed.map(({ label }) => label)).size !== parsed.length) return null
  return { header, text: asked, options: parsed, multiple }
}

function parseOption(value: unknown): AskedUser['options'][number] | null {
  if (!isObject(value)) return null
  const { label, description } = value
  if (!isText(label, MAX_LABEL_CHARS)) return null
  if (description === undefined || description === null) return { label }
  return typeof description === 'string' && description.length <= MAX_DESCRIPTION_CHARS
    ? { label, description }
    : null
}

const isText = (value: unknown, maxChars: number): value is string =>
  typeof value === 'string' && value.trim() !== '' && value.length <= maxChars

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Whether an answer is one to this question, in the order in which its faults are told (RF 18), and what it says. */
export function checkAnswer(
  { options, multiple }: Pick<AskedUser, 'options' | 'multiple'>,
  answer: RemoteAnswer,
): { ok: string } | { invalid: string } {
  if (answer.type === 'custom') {
    const said = answer.text.trim()
    if (said === '') return { invalid: 'the answer is empty' }
    return said.length > MAX_ANSWER_CHARS
      ? { invalid: `an answer may have ${MAX_ANSWER_CHARS} characters` }
      : { ok: said }
  }
  const chosen = answer.options
  if (chosen.length === 0) return { invalid: 'no option is chosen' }
  if (chosen.length > 1 && !multiple) return { invalid: 'only one option may be chosen' }
  const seen = new Set<string>()
  for (const label of chosen) {
    if (!options.some((option) => option.label === label))
      return { invalid: 'an option is chosen that the question does not have' }
    if (seen.has(label)) return { invalid: 'an option is chosen twice' }
    seen.add(label)
  }
  return { ok: chosen.join(', ') }
}

/**
 * What the model is told of one question of a chain of this length (RF 18). `answer`: as `checkAnswer` gave it; null for a
 * question that was left out.
 */
export function toldOf(
  { header, text: asked }: Pick<AskedUser, 'header' | 'text'>,
  chainLength: number,
  answer: string | null,
): string {
  const value = answer ?? '(skipped)'
  return chainLength === 1 ? `User selected: ${value}` : `[${header}] ${asked} → ${value}`
}

/** The result of a call: what is told of each of its questions, in their order (RF 18). */
export const resultOf = (questions: readonly AskedUser[], answers: readonly (string | null)[]): string =>
  joinTold(questions.map((question, index) => toldOf(question, questions.length, answers[index] ?? null)))

export const joinTold = (told: readonly string[]): string => told.join('\n')
