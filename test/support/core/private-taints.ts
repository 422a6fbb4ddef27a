/**
 * What each marker betrays, followed from prompt to answer over the runs of a session by looking for markers in what
 * models get. Nothing of the router takes part in it.
 */

/** Content that was shown: of which files it tells, and whether it was said where no remote model was to hear it. */
type Taint = { files: Set<string>; local: boolean; runId: number }

const MARKER = /<<\w+>>/g

export class Taints {
  readonly #taints = new Map<string, Taint>()
  readonly #ofFiles = new Map<string, string>()

  /** The marker that stands in a file. */
  ofFile(file: string): string {
    const known = this.#ofFiles.get(file)
    if (known !== undefined) return known
    const marker = this.#add({ files: new Set([file]), local: false, runId: -1 })
    this.#ofFiles.set(file, marker)
    return marker
  }

  /** Words of the user in a run. */
  ofWords(runId: number, local: boolean): string {
    return this.#add({ files: new Set(), local, runId })
  }

  /** Words of a model that was shown `prompt`: they may repeat all of it. */
  ofAnswer(runId: number, prompt: string, local: boolean): string {
    const shown = this.shownIn(prompt).map((marker) => this.#of(marker))
    return this.#add({
      files: new Set(shown.flatMap(({ files }) => [...files])),
      local: local || shown.some((taint) => taint.local),
      runId,
    })
  }

  /** The user wants nothing of this run to leave, what has been said included. */
  keepLocal(runId: number): void {
    for (const taint of this.#taints.values()) if (taint.runId === runId) taint.local = true
  }

  shownIn = (prompt: string): string[] => [...new Set(prompt.match(MARKER) ?? [])]

  /** Why only local models may see a marker, by the policy of now. */
  secretOf(marker: string, isSecret: (file: string) => boolean): string | null {
    const { files, local, runId } = this.#of(marker)
    if (local) return `${marker} of run ${runId} stays local`
    const file = [...files].find(isSecret)
    return file === undefined ? null : `${marker} of run ${runId} tells of ${file}`
  }

  #add(taint: Taint): string {
    const marker = `<<m${this.#taints.size + 1}>>`
    this.#taints.set(marker, taint)
    return marker
  }

  #of(marker: string): Taint {
    const taint = this.#taints.get(marker)
    if (taint === undefined) throw new Error(`nobody knows ${marker}`)
    return taint
  }
}
