import type { Fields } from '../shapes.ts'
import type { AttachedDevice, Outcome, SessionRef } from './device.ts'
import { fieldsOf, type Item, listOfFields } from './items.ts'
import { asking, COLOUR, READ, SHELL, type Stage, toolRequests } from './stage.ts'
import type { HttpAnswer, ModelHold, ModelLine } from './world.ts'

/** What may happen to the objects behind the wire while a schedule is played. */
export type ScheduleFault = 'hibernate' | 'close_gateway' | 'evict_session' | 'crash_session'

export type ScheduleOptions = {
  random: () => number
  /** How many actions a schedule has. */
  steps: number
  faults: readonly ScheduleFault[]
}

/** A mutation of a device, and what it was told about it, over any number of copies. */
type Mutation = {
  device: AttachedDevice
  requestId: string
  operation: Fields
  /** The prompt's mark, which its message in the transcript bears. */
  mark: string | null
  answers: Outcome[]
  /** A copy was lost with its connection. */
  lost: boolean
}

/** A prompt of the laptop, and the status it was answered with. */
type LaptopPrompt = { mark: string; status: number | null }

/** How often all is quiet between two actions. */
const QUIET = 0.1

const EMPTY_LINE: ModelLine = { pieces: ['So be it.'] }

/** What a device may be told by a gateway that has more to do than it can, and that says nothing of the request. */
const NO_DECISION = ['rate_limited', 'stale_session', 'not_found', 'owner_unavailable', 'internal']

let schedules = 0

/**
 * One session, three devices and a laptop that do things in an order that chance decides, while connections break and
 * objects come and go. The stage's devices are used again by the next schedule.
 */
export class Schedule {
  readonly #stage: Stage
  readonly #devices: readonly AttachedDevice[]
  readonly #witness: AttachedDevice
  readonly #options: ScheduleOptions
  readonly #word: string
  readonly #mutations: Mutation[] = []
  readonly #laptop: LaptopPrompt[] = []
  /** Answers that are owed to devices. */
  readonly #inFlight = new Set<Promise<unknown>>()
  /** Turns that the laptop waits for: they last as long as the model holds its answer. */
  readonly #turns = new Set<Promise<unknown>>()
  /** What was done, for a report. */
  readonly trace: string[] = []
  #session: SessionRef = { id: '', epoch: 0 }
  #hold: ModelHold
  #marks = 0
  readonly #paused = new Set<AttachedDevice>()
  /** A session died in mid-stream: numbers may be lost. */
  #crashed = false

  constructor(
    stage: Stage,
    devices: readonly AttachedDevice[],
    witness: AttachedDevice,
    options: ScheduleOptions,
  ) {
    this.#stage = stage
    this.#devices = devices
    this.#witness = witness
    this.#options = options
    this.#hold = stage.hold()
    schedules++
    this.#word = `<schedule-${schedules}>`
  }

  async play(): Promise<void> {
    this.#stage.world.script(this.#word, EMPTY_LINE)
    const id = await this.#stage.newSession('a schedule')
    await this.#stage.run(id, `${this.#word} begin`)
    await this.#ensureConnected(this.#witness)
    this.#session = await this.#stage.refOf(this.#witness, id)
    await Promise.all(
      this.#devices.map(async (device) => {
        await this.#ensureConnected(device)
        await device.attach(this.#session)
      }),
    )
    this.#stage.world.script(this.#word, ...this.#lines(), EMPTY_LINE)
    for (let step = 0; step < this.#options.steps; step++) {
      await this.#step()
      if (this.#chance(QUIET)) await this.#quiet('in between')
    }
    await this.#finish()
  }

  /** A world's faults may have closed any connection. */
  async #ensureConnected(device: AttachedDevice): Promise<void> {
    if (!device.connected) await device.connect()
  }

  #chance(probability: number): boolean {
    return this.#options.random() < probability
  }

  #pick<T>(list: readonly T[]): T {
    const found = list[Math.floor(this.#options.random() * list.length)]
    if (found === undefined) throw new Error('there is nothing to pick from')
    return found
  }

  #lines(): ModelLine[] {
    return Array.from({ length: 12 }, (): ModelLine => {
      const kind = this.#options.random()
      const pieces = Array.from(
        { length: 1 + Math.floor(this.#options.random() * 4) },
        (_, at) => `piece ${at} äé€🚦. `,
      )
      if (kind < 0.25) return { pieces }
      if (kind < 0.45) return { pieces, hold: () => this.#hold.wait(), after: ['And the rest.'] }
      if (kind < 0.6) return { pieces, calls: [SHELL, ...(this.#chance(0.5) ? [READ] : [])] }
      if (kind < 0.7) return { calls: [READ, { ...READ, arguments: { path: 'b.ts' } }] }
      if (kind < 0.85) return { pieces, calls: [asking(COLOUR)] }
      if (kind < 0.93) return { calls: [asking(COLOUR, { ...COLOUR, header: 'Once more' }), SHELL] }
      return { status: 400, error: 'the model does not want to' }
    })
  }

  async #step(): Promise<void> {
    const device = this.#pick(this.#devices)
    const actions: [number, () => Promise<void>][] = [
      [3, () => this.#prompt(device, 'submit_prompt')],
      [2, () => this.#prompt(device, 'queue')],
      [2, () => this.#prompt(device, 'steer')],
      [1, () => this.#cancel(device)],
      [4, () => this.#decide(device)],
      [4, () => this.#answer(device)],
      [3, () => this.#laptopGoesOn()],
      [1, () => this.#laptopStarts()],
      [3, () => this.#cutOrComeBack(device)],
      [2, () => this.#pauseOrRead(device)],
      [3, async () => this.#release()],
      ...this.#options.faults.map((fault): [number, () => Promise<void>] => [1, () => this.#fault(fault)]),
    ]
    const total = actions.reduce((sum, [weight]) => sum + weight, 0)
    let at = this.#options.random() * total
    for (const [weight, act] of actions) {
      at -= weight
      if (at < 0) return act()
    }
  }

  #note(what: string): void {
    this.trace.push(what)
  }

  #nameOf(device: AttachedDevice): string {
    return `device ${this.#devices.indexOf(device) + 1}`
  }

  #mark(): string {
    this.#marks++
    return `[mark-${this.#marks}]`
  }

  /** Sends a mutation, once or several times, and waits for the answers or leaves them to come. */
  async #mutate(device: AttachedDevice, operation: Fields, mark: string | null = null): Promise<void> {
    if (!device.isFollowing(this.#session)) return
    const mutation: Mutation = {
      device,
      requestId: `${device.nextRequestId()}-${schedules}`,
      operation,
      mark,
      answers: [],
      lost: false,
    }
    this.#mutations.push(mutation)
    const copies = this.#chance(0.3) ? 2 : 1
    this.#note(`${this.#nameOf(device)}: ${JSON.stringify(operation)} ×${copies} as ${mutation.requestId}`)
    for (let copy = 0; copy < copies; copy++) this.#send(mutation)
    if (this.#chance(0.6)) await this.#settleInFlight()
  }

  #send(mutation: Mutation): void {
    const sent = mutation.device
      .on(this.#session, mutation.operation, mutation.requestId)
      .then((outcome) => {
        mutation.answers.push(outcome)
      })
      .catch((error: unknown) => {
        if (/went away|was closed|is closed|not connected/.test(String(error))) mutation.lost = true
        else throw error
      })
    this.#track(this.#inFlight, sent)
  }

  #track(set: Set<Promise<unknown>>, work: Promise<unknown>): void {
    // A failure is thrown where it is waited for.
    work.catch(() => undefined)
    set.add(work)
  }

  /** Waits for every answer that is owed to a device that reads. */
  async #settleInFlight(): Promise<void> {
    if (this.#paused.size > 0) return
    const work = [...this.#inFlight]
    this.#inFlight.clear()
    await Promise.all(work)
  }

  async #prompt(device: AttachedDevice, type: string): Promise<void> {
    const mark = this.#mark()
    await this.#mutate(device, { type, prompt: `${this.#word} ${mark}` }, mark)
  }

  async #cancel(device: AttachedDevice): Promise<void> {
    const turn = device.view(this.#session).turn
    if (turn !== null) await this.#mutate(device, { type: 'cancel_turn', turn_id: turn.id })
  }

  async #decide(device: AttachedDevice): Promise<void> {
    const approval = device.view(this.#session).pendingApproval
    if (approval === null) return
    const choice = this.#chance(0.8) ? 'approve' : 'deny'
    await this.#mutate(device, { type: 'resolve_approval', batch_id: approval.batch_id, choice })
  }

  async #answer(device: AttachedDevice): Promise<void> {
    const question = device.view(this.#session).pendingQuestion
    if (question === null) return
    const id = question.question_id
    if (this.#chance(0.15)) return this.#mutate(device, { type: 'cancel_question', question_id: id })
    const answer = this.#chance(0.5)
      ? { type: 'selected', options: [this.#pick(['Blue', 'Green'])] }
      : { type: 'custom', text: `Mauve ${this.#mark()}` }
    await this.#mutate(device, { type: 'answer_question', question_id: id, answer })
  }

  /** The laptop looks at the run, and reports what it is asked for. */
  async #laptopGoesOn(): Promise<void> {
    const { status, body } = await this.#stage.currentRun(this.#session.id)
    if (status !== 200 || body.status !== 'awaiting_tool') return
    const open = toolRequests(body)
    this.#note(`laptop: results of ${open.map(({ name }) => String(name)).join(', ')}`)
    const results = open.map(({ call_id, name, requires_approval: approval, decision }) => ({
      call_id,
      content: `result of ${String(name)}`,
      is_error: false,
      ...(approval === 'ask' ? { decision: decision ?? this.#pick(['approved', 'rejected']) } : {}),
    }))
    this.#track(
      this.#turns,
      this.#stage.account.call('POST', `/sessions/${this.#session.id}/continue`, {
        type: 'tool_results',
        data: { results },
      }),
    )
    if (this.#chance(0.5)) this.#release()
  }

  async #laptopStarts(): Promise<void> {
    const prompt: LaptopPrompt = { mark: this.#mark(), status: null }
    this.#laptop.push(prompt)
    this.#note(`laptop: execute ${prompt.mark}`)
    this.#track(
      this.#turns,
      this.#stage.account
        .call(
          'POST',
          `/sessions/${this.#session.id}/execute`,
          this.#stage.task(`${this.#word} ${prompt.mark}`),
        )
        .then(({ status }) => {
          prompt.status = status
        })
        // Its object died: what became of the run is seen in the transcript.
        .catch(() => undefined),
    )
    if (this.#chance(0.5)) this.#release()
  }

  async #cutOrComeBack(device: AttachedDevice): Promise<void> {
    if (device.connected) {
      this.#note(`${this.#nameOf(device)} is cut off`)
      this.#paused.delete(device)
      device.cut()
      return
    }
    await this.#comeBack(device)
  }

  async #comeBack(device: AttachedDevice): Promise<void> {
    this.#note(`${this.#nameOf(device)} comes back`)
    const held = device.view(this.#session).snapshotId
    const { result } = await device.comeBack(this.#session)
    if (result.type === 'resumed' || this.#crashed) return
    // A state that was replaced at the very sequence of the cursor shows in a new snapshot and in no event.
    const replaced = fieldsOf(result.snapshot).snapshot_id !== held
    if (result.type === 'attached' && result.resync === 'sequence_gap' && replaced) return
    throw new Error(`coming back was answered ${JSON.stringify(result).slice(0, 300)}`)
  }

  async #pauseOrRead(device: AttachedDevice): Promise<void> {
    if (this.#paused.delete(device)) {
      this.#note(`${this.#nameOf(device)} reads again`)
      device.resumeReading()
    } else if (device.connected) {
      this.#note(`${this.#nameOf(device)} stops reading`)
      this.#paused.add(device)
      device.pauseReading()
    }
  }

  #release(): void {
    this.#hold.release()
    this.#hold = this.#stage.hold()
  }

  async #fault(fault: ScheduleFault): Promise<void> {
    const { faults } = this.#stage.world
    if (faults === null) throw new Error('nothing can be broken in this world')
    this.#note(fault)
    switch (fault) {
      case 'hibernate':
        return faults.hibernate(this.#stage.account.userId)
      case 'close_gateway':
        this.#paused.clear()
        return faults.closeGateway(this.#stage.account.userId)
      case 'evict_session':
        // Nothing may run in it: what it holds is let go on, and comes to its pause.
        await this.#rest()
        return this.#lettingGoOn(faults.evictSession(this.#session.id))
      case 'crash_session':
        this.#crashed = true
        for (const device of [...this.#devices, this.#witness]) device.allowHoles()
        return faults.crashSession(this.#session.id)
    }
  }

  /** Everyone reads, is connected, and has its answers. */
  async #gather(): Promise<void> {
    for (const device of this.#paused) device.resumeReading()
    this.#paused.clear()
    for (const device of this.#devices) if (!device.isFollowing(this.#session)) await this.#comeBack(device)
    await this.#ensureConnected(this.#witness)
  }

  /** Lets the model speak until the run waits for somebody, or is over. */
  async #rest(): Promise<HttpAnswer> {
    for (let round = 0; ; round++) {
      this.#release()
      const run = await this.#stage.currentRun(this.#session.id)
      if (run.status !== 200 || run.body.status !== 'running') return run
      if (round > 400) throw new Error('the run does not come to rest')
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }

  /** Waits for something while the model is let speak, whenever it begins to. */
  async #lettingGoOn<T>(work: Promise<T>): Promise<T> {
    let isWaiting = true
    const stop = () => {
      isWaiting = false
    }
    work.then(stop, stop)
    while (isWaiting) {
      this.#release()
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
    return work
  }

  /** Everyone is there and has its answers, and nothing goes on. Tells where the run stands. */
  async #settle(): Promise<HttpAnswer> {
    await this.#gather()
    await this.#settleInFlight()
    await this.#lettingGoOn(Promise.all(this.#turns))
    this.#turns.clear()
    return this.#rest()
  }

  /** Every view agrees with what a device sees that attaches now, and with what the laptop sees. */
  async #quiet(where: string): Promise<void> {
    this.#note(`quiet ${where}`)
    const run = await this.#settle()
    const { known, fresh } = await this.#stage.agreement(this.#session, this.#devices, this.#witness)
    for (const [index, state] of known.entries()) {
      const [left, right] = [JSON.stringify(state), JSON.stringify(fresh[index])]
      if (left !== right)
        throw new Error(`device ${index + 1} knows\n${left}\nand a fresh attach shows\n${right}`)
    }
    this.#runAgrees(run)
    await this.#transcriptAgrees()
  }

  /** What the laptop is asked for is what devices see open. */
  #runAgrees({ body }: HttpAnswer): void {
    const { turn, items } = this.#witness.view(this.#session)
    const open = items.flatMap((item) => (item.kind === 'tool' && item.state === 'open' ? [item.id] : []))
    if (turn === null && open.length > 0) throw new Error(`calls are open without a turn: ${open}`)
    if (body.status !== 'awaiting_tool') return
    if (turn === null) throw new Error('the laptop is asked for calls and devices see no turn')
    const asked = toolRequests(body).map(({ call_id: id }) => String(id))
    // Of a turn that died with its object the results are asked for again, and devices have seen them (EC 5.8).
    const isKnown = (id: string) =>
      this.#crashed ? items.some((item) => item.kind === 'tool' && item.id === id) : open.includes(id)
    const missing = asked.filter((id) => !isKnown(id))
    if (missing.length > 0) throw new Error(`the laptop is asked for ${missing}, and devices see ${open}`)
  }

  /** What the laptop reads of the conversation is what devices see of it. */
  async #transcriptAgrees(): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      const { session } = await this.#stage.must('GET', `/sessions/${this.#session.id}`)
      const seen = this.#witness.view(this.#session).items.flatMap(spoken)
      // Devices are shown the end of a long one.
      const read = listOfFields(fieldsOf(session).messages).flatMap(spokenOf).slice(-seen.length)
      const [left, right] = [JSON.stringify(seen), JSON.stringify(read)]
      if (left === right) return
      // Something that was queued may have begun in between.
      if (attempt === 3) throw new Error(`devices see\n${left}\nand the laptop reads\n${right}`)
      await this.#witness.attach(this.#session)
    }
  }

  /** Ends what is under way, and counts what became of everything that was sent. */
  async #finish(): Promise<void> {
    await this.#quiet('before the end')
    for (const mutation of this.#mutations) {
      if (mutation.answers.length === 0 || this.#chance(0.2)) this.#send(mutation)
      await this.#settleInFlight()
    }
    const [device] = this.#devices
    if (device === undefined) throw new Error('a schedule without devices')
    for (let round = 0; ; round++) {
      if (round > 60) throw new Error('the session does not end')
      await this.#settle()
      await device.drained()
      const view = device.view(this.#session)
      if (view.turn === null && view.pendingPrompts.length === 0) break
      if (view.pendingQuestion !== null) await this.#answer(device)
      else if (view.turn !== null && view.pendingApproval === null && round > 40) await this.#cancel(device)
      else {
        if (view.pendingApproval !== null) await this.#decide(device)
        await this.#laptopGoesOn()
      }
      await this.#settleInFlight()
    }
    await this.#quiet('at the end')
    this.#answersAgree()
    await this.#appliedOnce()
    for (const device of this.#devices) device.throwBreach()
    this.#witness.throwBreach()
    for (const device of [...this.#devices, this.#witness]) await device.detach(this.#session)
  }

  /** Every copy of a request was answered alike. */
  #answersAgree(): void {
    for (const { requestId, answers, operation } of this.#mutations) {
      const decided = answers.filter(({ result }) => !isUndecided(result))
      const [first, ...rest] = decided.map(({ result, receipt }) => JSON.stringify([receipt, result]))
      const other = rest.find((answer) => answer !== first)
      if (other !== undefined)
        throw new Error(`${requestId} ${JSON.stringify(operation)} was answered ${first} and ${other}`)
    }
  }

  /** What was applied is in the transcript once, and what was rejected is not. */
  async #appliedOnce(): Promise<void> {
    const prompts = await this.#promptsOfTranscript()
    const count = (mark: string) => prompts.filter((text) => text.includes(mark)).length
    for (const { mark, answers, requestId } of this.#mutations) {
      if (mark === null) continue
      const wanted = answers.some(({ receipt }) => receipt === 'applied') ? 1 : 0
      const undecided = answers.every(({ result }) => isUndecided(result))
      const found = count(mark)
      if (found > 1 || (!undecided && found !== wanted))
        throw new Error(
          `${requestId} (${mark}) was answered ${JSON.stringify(answers.at(-1))} and stands ${found} times`,
        )
    }
    for (const { mark, status } of this.#laptop) {
      const found = count(mark)
      // Whatever the laptop was told, a failure may have come after the prompt was taken.
      const wanted = status === 200 ? 1 : found
      if (found > 1 || found !== wanted)
        throw new Error(`execute ${mark} was answered ${status} and stands ${found} times`)
    }
  }

  /** The texts of all user messages, read page by page as a device does. */
  async #promptsOfTranscript(): Promise<string[]> {
    const { result } = await this.#witness.attach(this.#session)
    const snapshot = fieldsOf(result.snapshot)
    const messages = listOfFields(snapshot.transcript)
    let cursor = snapshot.history_cursor
    while (cursor !== undefined) {
      const page = (await this.#witness.on(this.#session, { type: 'get_history', cursor, limit: 40 })).result
      messages.unshift(...listOfFields(page.messages))
      cursor = page.next_cursor
    }
    return messages.filter(({ role }) => role === 'user').map(({ content }) => String(fieldsOf(content).text))
  }
}

/** Who said what. Tools have no messages of their own for the laptop. */
const spoken = (item: Item): [string, string][] => (item.kind === 'tool' ? [] : [[item.kind, item.text.head]])

function spokenOf({ role, content }: Fields): [string, string][] {
  const text = String(fieldsOf(content).plaintext)
  return role === 'assistant' && text === '' ? [] : [[String(role), text]]
}

const isUndecided = (result: Fields): boolean =>
  result.type === 'error' && NO_DECISION.includes(String(result.code))
