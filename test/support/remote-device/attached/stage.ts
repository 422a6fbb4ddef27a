import type { Fields } from '../shapes.ts'
import { Coverage } from './coverage.ts'
import { AttachedDevice, type SessionRef } from './device.ts'
import { fieldsOf, listOfFields } from './items.ts'
import { comparable, type ShownState } from './reducer.ts'
import type { Account, HttpAnswer, ModelHold, ModelLine, ModelReply, World } from './world.ts'

/** A call that asks before it runs, and one that does not. */
export const SHELL = { name: 'shell', arguments: { command: 'npm test' } }
export const READ = { name: 'read_file', arguments: { path: 'src/a.ts' } }

/** A call of the reserved tool by which a model asks the user. */
export const asking = (...questions: Fields[]) => ({ name: 'ask_user', arguments: { questions } })
export const COLOUR = {
  header: 'Colour',
  text: 'Which colour?',
  options: [{ label: 'Blue' }, { label: 'Green', description: 'like grass' }],
}

let words = 0

/** Where one test plays: an account of its own with devices, sessions and a laptop that speaks HTTP. */
export class Stage {
  readonly world: World
  readonly account: Account
  readonly coverage: Coverage
  readonly #devices: AttachedDevice[] = []

  static async open(world: World, coverage = new Coverage()): Promise<Stage> {
    return new Stage(world, await world.account(), coverage)
  }

  private constructor(world: World, account: Account, coverage: Coverage) {
    this.world = world
    this.account = account
    this.coverage = coverage
  }

  /** A device that has been paired and is connected. */
  async device(names: 'session' | 'thread' = 'session'): Promise<AttachedDevice> {
    const phone = await this.world.pair(this.account, names)
    const device = new AttachedDevice(phone, this.coverage, `d${this.#devices.length}`)
    this.#devices.push(device)
    await device.connect()
    return device
  }

  /** For the end of a test: throws what any device noticed. */
  close(): void {
    for (const device of this.#devices) {
      const { connected } = device
      if (connected) device.cut()
      device.throwBreach()
    }
  }

  /** A word that nobody used before, and what the model says to prompts that hold it. */
  script(...lines: ModelLine[]): string {
    words++
    const word = `<w${words}>`
    this.world.script(word, ...lines)
    return word
  }

  hold(): ModelHold {
    return this.world.hold()
  }

  async must(method: string, path: string, body?: object): Promise<Fields> {
    const answer = await this.account.call(method, path, body)
    if (answer.status < 200 || answer.status > 299)
      throw new Error(`${method} ${path} was answered ${answer.status}: ${JSON.stringify(answer.body)}`)
    return answer.body
  }

  async newSession(title = 'a session'): Promise<string> {
    const { session } = await this.must('POST', '/sessions', { title })
    return String(fieldsOf(session).id)
  }

  /** The laptop starts a run, and waits for its pause or its end. */
  run(sessionId: string, prompt: string, changes: Fields = {}): Promise<Fields> {
    return this.must('POST', `/sessions/${sessionId}/execute`, { ...this.task(prompt), ...changes })
  }

  /** The smallest run of the execution protocol. */
  task(prompt: string, model = this.world.model): Fields {
    return {
      input: { text: prompt },
      workspace: { root: '/home/ada/project', referenced_paths: [] },
      policy: {
        version: 1,
        source: 'merged',
        classification: {},
        routing: { rules: [], default: { model } },
        tools: { permissions: { read_file: 'allow', shell: 'ask', ask_user: 'allow' } },
        privacy: {},
      },
      local_preferences: { auto_apply: false, local_only: false, no_network: false },
      attachments: { files: [], instructions: [], invoked_skills: [], available_skills: [] },
    }
  }

  /** The laptop reports results of the calls that an envelope asks for; with a decision where one was asked for. */
  results(sessionId: string, envelope: Fields, decision?: 'approved' | 'rejected'): Promise<HttpAnswer> {
    const calls = toolRequests(envelope)
    const results = calls.map(({ call_id, requires_approval: approval, name }) => ({
      call_id,
      content: `result of ${String(name)}`,
      is_error: false,
      ...(decision !== undefined && approval === 'ask' ? { decision } : {}),
    }))
    return this.account.call('POST', `/sessions/${sessionId}/continue`, {
      type: 'tool_results',
      data: { results },
    })
  }

  /** What the laptop sees of the run. */
  currentRun(sessionId: string): Promise<HttpAnswer> {
    return this.account.call('GET', `/sessions/${sessionId}/run`)
  }

  /** The row of a session in the live list, as a device sees it. */
  async refOf(device: AttachedDevice, sessionId: string): Promise<SessionRef> {
    const thread = device.phone.names === 'thread'
    const { result } = await device.ask({ type: thread ? 'list_threads' : 'list_sessions' })
    const rows = listOfFields(thread ? result.threads : result.sessions)
    const row = rows.find((one) => one[thread ? 'thread_id' : 'session_id'] === sessionId)
    if (row === undefined) throw new Error(`${sessionId} is not listed`)
    return { id: sessionId, epoch: Number(row.registration_epoch) }
  }

  /** A session that has run once, with a device attached to it. */
  async attached(
    reply: ModelReply = { pieces: ['Hello.'] },
    model = this.world.model,
  ): Promise<{ device: AttachedDevice; session: SessionRef }> {
    const device = await this.device()
    const id = await this.newSession()
    await this.run(id, '', this.task(`${this.script(reply)} first`, model))
    const session = await this.refOf(device, id)
    await device.attach(session)
    return { device, session }
  }

  /** A run that waits in the middle of its answer, with a device attached: `release` lets it go on. */
  async streaming(
    reply: ModelReply = {},
  ): Promise<{ device: AttachedDevice; session: SessionRef; hold: ModelHold; running: Promise<Fields> }> {
    const device = await this.device()
    const id = await this.newSession()
    const hold = this.hold()
    const word = this.script(
      { pieces: ['One ', 'two '], hold: hold.wait, after: ['three.'], ...reply },
      { pieces: ['End.'] },
    )
    const running = this.run(id, `${word} go on`)
    running.catch(() => undefined)
    await hold.reached()
    const session = await this.refOf(device, id)
    await device.attach(session)
    return { device, session, hold, running }
  }

  /** A run of the laptop that waits for a decision about a command, with a device attached. */
  async awaitingApproval(): Promise<{
    device: AttachedDevice
    session: SessionRef
    envelope: Fields
    batchId: string
  }> {
    const device = await this.device()
    const id = await this.newSession()
    const word = this.script({ pieces: ['I will test. '], calls: [SHELL] }, { pieces: ['Tested.'] })
    const envelope = await this.run(id, `${word} test it`)
    const session = await this.refOf(device, id)
    await device.attach(session)
    const { pendingApproval } = device.view(session)
    return { device, session, envelope, batchId: String(pendingApproval?.batch_id) }
  }

  /** A run that a device started and that asks it something. */
  async awaitingAnswer(...questions: Fields[]): Promise<{ device: AttachedDevice; session: SessionRef }> {
    const { device, session } = await this.attached()
    const word = this.script(
      { pieces: ['Let me ask. '], calls: [asking(...(questions.length === 0 ? [COLOUR] : questions))] },
      { pieces: ['Understood.'] },
    )
    await device.on(session, { type: 'submit_prompt', prompt: `${word} ask me` })
    await device.until(session, ({ pendingQuestion }) => pendingQuestion !== null, 'a question')
    return { device, session }
  }

  /** Another device, attached to the same session. */
  async follower(session: SessionRef): Promise<AttachedDevice> {
    const device = await this.device()
    await device.attach(session)
    return device
  }

  /**
   * What every follower knows is what a device sees that attaches now; each waits until it has got as far. Both states,
   * for a comparison that shows where they differ.
   */
  async agreement(
    session: SessionRef,
    followers: readonly AttachedDevice[],
    witness: AttachedDevice,
  ): Promise<{ known: ShownState[]; fresh: ShownState[] }> {
    const attachNow = async (): Promise<ShownState> => {
      const { result } = await witness.attach(session)
      if (result.type !== 'attached') throw new Error(`a fresh attach was answered ${JSON.stringify(result)}`)
      return witness.view(session).shown()
    }
    const first = await attachNow()
    const reached = async (follower: AttachedDevice, { cursor }: ShownState): Promise<ShownState> => {
      await follower.until(session, (view) => view.cursor >= cursor, `sequence ${cursor}`)
      await follower.drained()
      return follower.view(session).shown()
    }
    const states = await Promise.all(followers.map((follower) => reached(follower, first)))
    const pairs: { known: ShownState; fresh: ShownState }[] = []
    for (const [index, follower] of followers.entries()) {
      let fresh = first
      let known = states[index] ?? (await reached(follower, first))
      const hasMoved = () => known.cursor !== fresh.cursor || known.snapshotId !== fresh.snapshotId
      // Something happened in between.
      for (let attempt = 0; attempt < 5 && hasMoved(); attempt++) {
        fresh = await attachNow()
        known = await reached(follower, fresh)
      }
      pairs.push(comparable(known, fresh))
    }
    return { known: pairs.map(({ known }) => known), fresh: pairs.map(({ fresh }) => fresh) }
  }
}

export function toolRequests(envelope: Fields): Fields[] {
  const { data } = envelope
  const requests =
    typeof data === 'object' && data !== null && 'tool_requests' in data ? data.tool_requests : undefined
  return Array.isArray(requests) ? requests.map(fieldsOf) : []
}

/** A continuation that stops the run. */
export const BREAK = { type: 'break' }
