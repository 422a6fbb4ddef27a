import { FRAME_TEXTS, toldCall } from '../assemble.ts'
import { runUnits } from '../candidates.ts'
import { contextBlock } from '../context.ts'
import { readImage } from '../image.ts'
import type { PreparedCall, TurnPlan } from '../resolve.ts'
import type { TranscriptMessage } from '../transcript.ts'
import { messageConstraints } from './history.ts'

/** A shorter line may stand anywhere by chance. In characters. */
const MIN_TELLING_CHARS = 24

/**
 * The last look at a prompt before it leaves for a remote model: what in it only local models may see, or null. It trusts
 * neither the choice of the model nor the selection of the context: no line of a constrained item may stand in the finished
 * request that no permitted item holds as well. It never finds anything; if it does, the router is wrong and nothing is
 * sent, which is stronger than the strip that "Privacy and model locality" asks for.
 */
export function boundaryBreach(turn: TurnPlan, { request, verdicts, tools }: PreparedCall): string | null {
  if (request.model.local) return null
  const { view, guard, demands } = turn
  if (demands.localBecause !== null) return `the turn is bound to local models (${demands.localBecause})`
  const leaked = verdicts.find(({ candidate, included }) => included && candidate.constrained)
  if (leaked) return `${leaked.candidate.label} is among the context`
  const offered = tools.find((tool) => tool.isPrivate === true)
  if (offered) return `the private skill ${offered.name} is offered`
  const constraints = messageConstraints(view, guard)
  const kept = new Set(verdicts.flatMap(({ candidate, included }) => (included ? [candidate.key] : [])))
  const fixed = new Set(runUnits(view).fixed.map(({ message }) => message.seq))
  const isSent = ({ seq }: TranscriptMessage) => fixed.has(seq) || kept.has(`message:${seq}`)
  const hidden = view.transcript.filter(({ seq }) => constraints.has(seq))
  const told = hidden.find(isSent)
  if (told) return `a message of ${told.runId} is in the prompt`
  const picture = hiddenPicture({ request, verdicts }, view.transcript.filter(isSent))
  if (picture !== null) return picture
  const secrets = linesOf([
    ...verdicts.flatMap(({ candidate }) => (candidate.constrained ? [candidate.content] : [])),
    ...hidden.flatMap(messageTexts),
    ...turn.tools.flatMap((tool) => (tool.isPrivate === true ? [tool.description] : [])),
  ])
  if (secrets.size === 0) return null
  const permitted = linesOf([
    ...FRAME_TEXTS,
    ...verdicts.map(({ candidate: { path, label } }) => contextBlock(path ?? label, '')),
    ...verdicts.flatMap(({ candidate }) => (candidate.constrained ? [] : [candidate.content])),
    ...view.transcript
      .filter(isSent)
      .flatMap((message) => [...messageTexts(message), ...message.calls.map(toldCall)]),
    ...turn.tools.flatMap((tool) => (tool.isPrivate === true ? [] : [tool.description])),
  ])
  for (const line of linesOf(requestTexts(request))) {
    if (secrets.has(line) && !permitted.has(line)) return 'a line of private content is in the prompt'
  }
  return null
}

/** Every picture of the request belongs to a message that is sent, or to a file that may be shown. */
function hiddenPicture(
  { request, verdicts }: Pick<PreparedCall, 'request' | 'verdicts'>,
  sent: readonly TranscriptMessage[],
): string | null {
  const pictures = request.messages.flatMap((message) =>
    message.role === 'user' ? (message.images ?? []) : [],
  )
  const permitted = new Set(sent.flatMap(({ images = [] }) => images.map(({ handle }) => handle)))
  const stray = pictures.some(({ handle }) => handle !== undefined && !permitted.has(handle))
  if (stray) return 'a picture of a message that is left out is in the prompt'
  const constrained = verdicts.some(({ candidate: { kind, constrained: is } }) => kind === 'image' && is)
  if (!constrained) return null
  const files = new Set(
    verdicts.flatMap(({ candidate: { kind, constrained: is, content } }) =>
      kind === 'image' && !is ? (readImage(content)?.base64 ?? []) : [],
    ),
  )
  const leaked = pictures.some((picture) => picture.handle === undefined && !files.has(picture.base64))
  return leaked ? 'a picture of a private file is in the prompt' : null
}

/** The lines of texts that are long enough to tell where they come from, without what stands around them in a list. */
function linesOf(texts: readonly string[]): Set<string> {
  const lines = new Set<string>()
  for (const text of texts) {
    for (const line of text.split('\n')) {
      const telling = line.trim().replace(/^- /, '')
      if (telling.length >= MIN_TELLING_CHARS) lines.add(telling)
    }
  }
  return lines
}

const messageTexts = ({ text, calls }: TranscriptMessage): string[] => [
  text,
  ...calls.flatMap(({ arguments: args, result }) => [...stringsIn(args), result ?? '']),
]

/** Every text of a request, as it is before a provider's dialect writes it down. */
const requestTexts = ({ messages, tools }: PreparedCall['request']): string[] => [
  ...tools.map(({ description }) => description),
  ...messages.flatMap((message): string[] => {
    switch (message.role) {
      case 'tool':
        return message.results.map(({ content }) => content)
      case 'assistant':
        return [message.text, ...message.toolCalls.flatMap(({ arguments: args }) => stringsIn(args))]
      default:
        return [message.text]
    }
  }),
]

function stringsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(stringsIn) : []
}
