import { DurableObject, env } from 'cloudflare:workers'
import { vi } from 'vitest'
import { Session } from '../../../src/session/session.ts'
import { crash } from './session-object.ts'

/** What a test needs to know of the place where an object died. */
export type Death = { point: number; place: string }

type Instance = { ctx: DurableObjectState; dead: boolean }

/** Waits that a crash ends; whoever waits looks for himself (see `hold.ts`). */
type Listener = (sessionId: string) => void

/**
 * Every place where a session can be cut off: each call into the storage of its object, each call to D1, each request to
 * a model, each piece of its answer, and the way back to the client. `arm` names the places, counted from now on, at
 * which the objects of the watched sessions die: `abort` ends the line it stands in, so nothing behind it runs, and
 * what the object had written since its last wait is lost, as on the platform.
 *
 * Between `start` and `stop` it stands in front of the class, the binding of D1 and `fetch`; only objects that come up
 * in between are watched.
 */
export class CrashPoints {
  readonly #base = Object.getPrototypeOf(Session) as object
  readonly #known = new Set<string>()
  #instances = new Map<string, Instance>()
  #armed: number[] = []
  #isCounting = false
  #asides = 0
  #passed = 0
  readonly deaths: Death[] = []
  /** What dead objects still did: nothing, if a crash is one. */
  readonly afterlife: string[] = []
  onDeath: Listener = () => {}
  /** D1 as it was before anything stood in front of it. */
  #trips: Trips = tripsOf(env.DB)

  /** How many places were passed since they were armed. */
  get passed(): number {
    return this.#passed
  }

  start(): void {
    const points = this
    this.#trips = tripsOf(env.DB)
    class Watched extends DurableObject {
      constructor(ctx: DurableObjectState, bindings: Cloudflare.Env) {
        const name = ctx.id.name ?? ''
        if (points.#known.has(name)) {
          super(ctx, bindings)
          return
        }
        const instance: Instance = { ctx, dead: false }
        points.#instances.set(name, instance)
        points.#watchStorage(name, instance)
        super(ctx, { ...bindings, DB: points.#watchedDb(name, instance) })
      }
    }
    Object.setPrototypeOf(Session, Watched)
    this.#watchWorker()
    this.#watchFetch()
  }

  /** Puts everything back but the mocks, which go with the test. */
  stop(): void {
    this.#isCounting = false
    Object.setPrototypeOf(Session, this.#base)
  }

  /** Forgets the objects so far: a new play begins. */
  reset(): void {
    this.#isCounting = false
    for (const name of this.#instances.keys()) this.#known.add(name)
    this.#instances = new Map()
    this.#armed = []
    this.#passed = 0
    this.deaths.length = 0
    this.afterlife.length = 0
    this.onDeath = () => {}
  }

  /** From here on places count, and at the n-th of each of these, from the start and then from the last death, one dies. */
  arm(places: readonly number[]): void {
    this.#armed = [...places]
    this.#passed = 0
    this.#isCounting = true
  }

  disarm(): void {
    this.#isCounting = false
  }

  /** Looks at something without being counted. */
  async aside<T>(look: () => Promise<T>): Promise<T> {
    this.#asides++
    const seen = await look()
    this.#asides--
    return seen
  }

  /** A place outside of the object. True: the object has died meanwhile, and whoever stands here must have lost it. */
  async outside(place: string): Promise<boolean> {
    if (!this.#isHere(place)) return false
    for (const [name, instance] of this.#instances) {
      await crash(name)
      instance.dead = true
      this.onDeath(name)
    }
    return true
  }

  #isHere(place: string): boolean {
    if (!this.#isCounting || this.#asides > 0) return false
    this.#passed++
    if (this.#passed !== this.#armed[0]) return false
    this.#armed.shift()
    this.deaths.push({ point: this.#passed, place })
    this.#passed = this.#armed.length > 0 ? 0 : this.#passed
    return true
  }

  /** A place inside of the object. Does not come back if it is the one. */
  #inside(name: string, instance: Instance, place: string): void {
    if (instance.dead) {
      this.afterlife.push(place)
      throw new Error(`a dead object went on: ${place}`)
    }
    if (!this.#isHere(place)) return
    instance.dead = true
    this.onDeath(name)
    instance.ctx.abort(`died at ${place}`)
    throw new Error('unreachable: abort ends the line')
  }

  #watchStorage(name: string, instance: Instance): void {
    const { storage } = instance.ctx
    const at = (place: string) => this.#inside(name, instance, place)
    const exec = storage.sql.exec.bind(storage.sql)
    const transactionSync = storage.transactionSync.bind(storage)
    const around =
      <Args extends unknown[], T>(place: string, call: (...args: Args) => Promise<T>) =>
      async (...args: Args): Promise<T> => {
        at(`before ${place}`)
        const result = await call(...args)
        at(`after ${place}`)
        return result
      }
    Object.assign(storage.sql, {
      exec: (query: string, ...values: unknown[]) => {
        at(`sql ${query.replace(/\s+/g, ' ').slice(0, 60)}`)
        return exec(query, ...values)
      },
    })
    Object.assign(storage, {
      transactionSync: <T>(work: () => T): T => {
        at('transaction begin')
        const result = transactionSync(() => {
          const done = work()
          at('transaction end')
          return done
        })
        at('transaction ended')
        return result
      },
      sync: around('sync', storage.sync.bind(storage)),
      setAlarm: around('setAlarm', storage.setAlarm.bind(storage)),
      deleteAlarm: around('deleteAlarm', storage.deleteAlarm.bind(storage)),
    })
  }

  /** The database as the object sees it. */
  #watchedDb(name: string, instance: Instance): D1Database {
    const at = (place: string) => this.#inside(name, instance, place)
    const around = async <T>(place: string, call: () => Promise<T>): Promise<T> => {
      at(`before D1 ${place}`)
      const result = await call()
      at(`after D1 ${place}`)
      return result
    }
    return makeDb(this.#trips, around)
  }

  /** What the Worker asks of D1 by itself: with the request the object is lost, too. */
  #watchWorker(): void {
    const around = async <T>(place: string, call: () => Promise<T>): Promise<T> => {
      const die = async (where: string) => {
        // Not a failure, which would be handled: nothing comes back any more.
        if (await this.outside(`${where} D1 of the Worker, ${place}`)) await new Promise(() => {})
      }
      await die('before')
      const result = await call()
      await die('after')
      return result
    }
    const watched = makeDb(this.#trips, around)
    vi.spyOn(env.DB, 'batch').mockImplementation(watched.batch)
    vi.spyOn(env.DB, 'prepare').mockImplementation(watched.prepare)
  }

  /** The models of the test, seen from the object that asks them. */
  #watchFetch(): void {
    const spy = vi.mocked(globalThis.fetch)
    const serve = spy.getMockImplementation()
    if (serve === undefined) throw new Error('no models are scripted')
    spy.mockImplementation(async (input, init) => {
      const asking = this.#asking()
      if (asking === null) return serve(input, init)
      const at = (place: string) => this.#inside(asking.name, asking.instance, place)
      const path = new URL(new Request(input).url).pathname
      at(`before fetch ${path}`)
      const response = await serve(input, init)
      at(`headers of ${path}`)
      const { body } = response
      return body === null
        ? response
        : new Response(
            watchedBody(body, () => at(`body of ${path}`)),
            response,
          )
    })
  }

  /** The object that is alive: scripts are played one at a time. */
  #asking(): { name: string; instance: Instance } | null {
    const alive = [...this.#instances].find(([, instance]) => !instance.dead)
    return alive ? { name: alive[0], instance: alive[1] } : null
  }
}

type Around = <T>(place: string, call: () => Promise<T>) => Promise<T>

type Trips = Pick<D1Database, 'batch' | 'prepare'>
const tripsOf = (db: D1Database): Trips => ({ batch: db.batch.bind(db), prepare: db.prepare.bind(db) })

/** A database with something before and after each trip to it. */
function makeDb({ batch, prepare }: Trips, around: Around): D1Database {
  const watch = (statement: D1PreparedStatement): D1PreparedStatement => {
    const bind = statement.bind.bind(statement)
    const trips = ['run', 'all', 'raw', 'first'] as const
    const calls = trips.map((trip) => {
      const call = statement[trip].bind(statement) as (...args: unknown[]) => Promise<unknown>
      return [trip, (...args: unknown[]) => around(trip, () => call(...args))] as const
    })
    return Object.assign(statement, Object.fromEntries(calls), {
      bind: (...values: unknown[]) => watch(bind(...values)),
    })
  }
  const watched = {
    prepare: (query: string) => watch(prepare(query)),
    batch: (statements: D1PreparedStatement[]) => around('batch', () => batch(statements)),
  }
  return watched as unknown as D1Database
}

function watchedBody(body: ReadableStream<Uint8Array>, onPiece: () => void): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        const { done, value } = await reader.read()
        onPiece()
        if (done) controller.close()
        else controller.enqueue(value)
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}
