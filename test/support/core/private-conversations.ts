/** What was said before a turn, with calls that read files and answers that repeat what they read. */

import type { TranscriptCall, TranscriptMessage } from '../../../src/core/transcript.ts'
import { makeCall, modelSays, RUN, userSays } from './builders.ts'
import { FILES, type Place, spelled } from './private-project.ts'
import { attributed, callOn } from './private-texts.ts'
import type { Random } from './random.ts'

type Said = Omit<TranscriptMessage, 'seq'>

export class Conversation {
  /** What calls of the current run name in an argument of its own, which routing reads as well; as it is spelled. */
  readonly namedNow: string[] = []
  /** Files that calls of the current run name in any way, or whose text their results bring. */
  readonly touchedNow: string[] = []
  readonly #random: Random
  readonly #place: Place
  readonly #isSecret: (file: string) => boolean
  readonly #mark: (isHidden: boolean) => string

  constructor(truth: {
    random: Random
    place: Place
    isSecret: (file: string) => boolean
    mark: (isHidden: boolean) => string
  }) {
    this.#random = truth.random
    this.#place = truth.place
    this.#isSecret = truth.isSecret
    this.#mark = truth.mark
  }

  /** An earlier run from its prompt to its answer. */
  run(runId: string): Said[] {
    const random = this.#random
    // Everything said in it stays with local models, for whatever reason.
    const local = random.chance(0.15)
    // Its prompts held these files, which the policy of that time let pass.
    const seen = random.chance(0.3) ? random.list(2, () => random.pick(FILES)) : []
    const rounds = this.rounds(runId, local, seen)
    const hidden = local || seen.some(this.#isSecret) || rounds.some(({ text }) => text.startsWith('hidden'))
    return [
      userSays(`asked ${this.#mark(local)}`, { runId, ...(local ? { localOnly: true } : {}) }),
      ...rounds,
      modelSays(`answer ${this.#mark(hidden)}`, {
        runId,
        ...(local ? { localOnly: true } : {}),
        // What earlier messages of the run tell is not told again.
        ...(rounds.length === 0 ? this.#seen(seen) : {}),
      }),
    ]
  }

  /** Rounds of calls; once one has read a secret, so has everything after it. */
  rounds(runId: string, local = false, seen: readonly string[] = []): Said[] {
    let hidden = local || seen.some(this.#isSecret)
    return this.#random.list(3, (index) => {
      // The model speaks before it calls, and its words and arguments may repeat what it saw until then.
      const before = hidden
      const made = this.#random.list(2, (ordinal) =>
        this.#call(`${runId}-${index}-${ordinal}`, before, runId),
      )
      hidden ||= made.some(({ touched }) => touched.some(this.#isSecret))
      return modelSays(`${hidden ? 'hidden' : 'plain'} ${this.#mark(before)}`, {
        runId,
        calls: made.map(({ call }) => call),
        ...(local ? { localOnly: true } : {}),
        ...(index === 0 ? this.#seen(seen) : {}),
      })
    })
  }

  #seen(files: readonly string[]): Pick<Said, 'seen'> {
    const spellings = files.map((file) => spelled(file, this.#place, this.#random))
    return files.length === 0
      ? {}
      : { seen: { under: 'an earlier policy', root: this.#place.root, files: spellings } }
  }

  #call(id: string, before: boolean, runId: string): { call: TranscriptCall; touched: string[] } {
    const random = this.#random
    const file = random.pick(FILES)
    const isSearch = random.chance(0.3)
    const touched = isSearch ? [file, ...random.list(1, () => random.pick(FILES))] : [file]
    const made = isSearch
      ? { name: 'search', arguments: { query: `words ${this.#mark(before)}` } }
      : callOn(file, this.#place, `written ${this.#mark(before || this.#isSecret(file))}`, random)
    const result = isSearch
      ? touched
          .map((one) =>
            attributed(one, `hit ${this.#mark(this.#isSecret(one) || before)}`, this.#place, random),
          )
          .join('\n')
      : `result ${this.#mark(before || this.#isSecret(file))}`
    if (runId === RUN) {
      this.touchedNow.push(...touched)
      for (const name of ['path', 'file_path']) {
        const value: unknown = Object.entries(made.arguments).find(([key]) => key === name)?.[1]
        if (typeof value === 'string') this.namedNow.push(value)
      }
    }
    return { call: makeCall({ ...made, id }, result), touched }
  }
}
