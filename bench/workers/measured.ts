import { DurableObject } from 'cloudflare:workers'
import type { Env } from '../../src/worker/env.ts'
import app, { Gateway as RouterGateway, Session as RouterSession } from '../../src/worker/main.ts'

/**
 * The router as it is, with doors that only benches have: `/bench/bare` passes a request on to the upstream as the
 * smallest possible Worker would, in the same isolate; `/bench/stored` tells what was stored since it was last asked;
 * `/bench/fill` gives a session a long past, `/bench/fill-events` events that nobody has seen; `/bench/fan-out` tells a
 * gateway of events as a session would; `/bench/echo` is a socket to an object that does nothing but echo, and
 * `/bench/blast` has it send events by itself.
 */

type BenchEnv = Env & {
  UPSTREAM: string
  ECHO: DurableObjectNamespace
  /** `1`: note what is stored. Off, nothing stands between the router and its storage. */
  COUNT_ROWS?: string
}

/** Rows written as the platform bills them, by what wrote them, and trips to D1. */
type Stored = {
  object: number
  gateway: number
  setAlarm: number
  deleteAlarm: number
  d1: number
  d1Trips: number
  /** Calls of sessions to gateways, and of gateways to sessions. */
  toGateway: number
  toSession: number
}

const NOTHING: Stored = {
  object: 0,
  gateway: 0,
  setAlarm: 0,
  deleteAlarm: 0,
  d1: 0,
  d1Trips: 0,
  toGateway: 0,
  toSession: 0,
}
let stored: Stored = { ...NOTHING }
/** A cursor knows what it wrote only after it was read to its end. */
let cursors: { of: 'object' | 'gateway'; cursor: SqlStorageCursor<Record<string, SqlStorageValue>> }[] = []

/** Notes every statement and every alarm of an object. */
function watchStorage(storage: DurableObjectStorage, of: 'object' | 'gateway'): void {
  const { sql } = storage
  const exec = sql.exec.bind(sql)
  sql.exec = <T extends Record<string, SqlStorageValue>>(query: string, ...values: unknown[]) => {
    const cursor = exec<T>(query, ...values)
    cursors.push({ of, cursor })
    return cursor
  }
  const setAlarm = storage.setAlarm.bind(storage)
  storage.setAlarm = (...given) => {
    stored.setAlarm++
    return setAlarm(...given)
  }
  const deleteAlarm = storage.deleteAlarm.bind(storage)
  storage.deleteAlarm = (...given) => {
    stored.deleteAlarm++
    return deleteAlarm(...given)
  }
}

/** A D1 whose trips and written rows are counted: a batch is one trip, and so is a statement by itself. */
function watchD1(db: D1Database): D1Database {
  const trip = <T>(work: Promise<T>): Promise<T> => {
    stored.d1Trips++
    return work
  }
  const noteRows = <R extends D1Result>(result: R): R => {
    stored.d1 += result.meta.rows_written
    return result
  }
  const originals = new WeakMap<object, D1PreparedStatement>()
  const watchStatement = (statement: D1PreparedStatement): object => {
    const watched = {
      bind: (...values: unknown[]) => watchStatement(statement.bind(...values)),
      all: async () => noteRows(await trip(statement.all())),
      run: async () => noteRows(await trip(statement.run())),
      raw: () => trip(statement.raw()),
    }
    originals.set(watched, statement)
    return watched
  }
  const watchedDatabase = {
    prepare: (query: string) => watchStatement(db.prepare(query)),
    batch: async (statements: D1PreparedStatement[]) => {
      const results = await trip(
        db.batch(statements.map((statement) => originals.get(statement) ?? statement)),
      )
      return results.map(noteRows)
    },
  }
  // What the router uses of a database, and nothing more.
  return watchedDatabase as unknown as D1Database
}

const watched = <E extends BenchEnv>(env: E): E =>
  env.COUNT_ROWS === '1' ? { ...env, DB: watchD1(env.DB) } : env

/** An event of about the size of some words. */
const eventText = (n: number): string =>
  JSON.stringify({ type: 'text_delta', text: `${n} ${'some words of a model '.repeat(3)}` })

/** What the ring keeps, and how much of it stands in one row (D33). */
const RING_BYTES = 4 * 1024 * 1024
const SEGMENT_BYTES = 32 * 1024

/** Ends an object that was filled behind its back, so that the next one reads what is stored. */
const FILLED = 'filled by a bench'

export class Session extends RouterSession {
  constructor(ctx: DurableObjectState, env: BenchEnv) {
    if (env.COUNT_ROWS === '1') watchStorage(ctx.storage, 'object')
    super(ctx, watched(env))
  }

  /** Adds messages to the transcript, as if the session had had many runs; then forgets what is in memory. */
  async fill(count: number, textOfEach: string): Promise<void> {
    const { sql } = this.ctx.storage
    const row = sql.exec<{ counters: string }>('SELECT counters FROM checkpoint').one()
    const counters: { message: number } = JSON.parse(row.counters)
    this.ctx.storage.transactionSync(() => {
      for (let n = 0; n < count; n++) {
        const seq = ++counters.message
        sql.exec(
          `INSERT INTO messages (seq, id, run_id, role, provider, model, content, interrupted, local_only,
             created_at, rev)
           VALUES (?, ?, 'filled', ?, ?, ?, ?, 0, 0, 0, 0)`,
          seq,
          crypto.randomUUID(),
          n % 2 === 0 ? 'user' : 'assistant',
          n % 2 === 0 ? null : 'ollama',
          n % 2 === 0 ? null : 'scripted',
          `${seq} ${textOfEach}`,
        )
      }
      sql.exec('UPDATE checkpoint SET counters = ?', JSON.stringify(counters))
    })
    await this.ctx.storage.sync()
    // The engine read the counters when the object came up: the next request brings up another.
    this.ctx.abort(FILLED)
  }

  /** Adds events behind the newest one, as if somebody had spoken for long; then forgets what is in memory. */
  async fillEvents(count: number): Promise<void> {
    const { sql } = this.ctx.storage
    const row = sql.exec<{ counters: string }>('SELECT counters FROM checkpoint').one()
    const counters: { ringReserved: number } = JSON.parse(row.counters)
    const { newest } = sql
      .exec<{ newest: number }>('SELECT coalesce(max(last_seq), 0) AS newest FROM ring_segments')
      .one()
    this.ctx.storage.transactionSync(() => {
      const encoder = new TextEncoder()
      let lines: string[] = []
      let bytes = 0
      let first = newest + 1
      for (let seq = first; seq <= newest + count; seq++) {
        const line = `${seq} ${eventText(seq)}\n`
        lines.push(line)
        bytes += encoder.encode(line).byteLength
        if (bytes < SEGMENT_BYTES && seq < newest + count) continue
        sql.exec(
          'INSERT INTO ring_segments (first_seq, last_seq, bytes, body) VALUES (?, ?, ?, ?)',
          first,
          seq,
          bytes,
          lines.join(''),
        )
        lines = []
        bytes = 0
        first = seq + 1
      }
      sql.exec(
        `DELETE FROM ring_segments WHERE first_seq IN (SELECT first_seq FROM (SELECT first_seq,
           sum(bytes) OVER (ORDER BY first_seq DESC) AS behind FROM ring_segments) WHERE behind > ?)`,
        RING_BYTES,
      )
      const reserved = Math.max(counters.ringReserved, newest + count)
      sql.exec('UPDATE checkpoint SET counters = ?', JSON.stringify({ ...counters, ringReserved: reserved }))
    })
    await this.ctx.storage.sync()
    this.ctx.abort(FILLED)
  }

  override attach(...given: Parameters<RouterSession['attach']>): ReturnType<RouterSession['attach']> {
    stored.toSession++
    return super.attach(...given)
  }

  override pull(...given: Parameters<RouterSession['pull']>): ReturnType<RouterSession['pull']> {
    stored.toSession++
    return super.pull(...given)
  }
}

/** Events that a session tells of: `events` of them behind `after`, so many in each call. */
type Telling = {
  userId: string
  sessionId: string
  epoch: number
  after: number
  events: number
  atATime: number
}

export class Gateway extends RouterGateway {
  constructor(ctx: DurableObjectState, env: BenchEnv) {
    if (env.COUNT_ROWS === '1') watchStorage(ctx.storage, 'gateway')
    super(ctx, watched(env))
  }

  override pushEvents(
    ...given: Parameters<RouterGateway['pushEvents']>
  ): ReturnType<RouterGateway['pushEvents']> {
    stored.toGateway++
    return super.pushEvents(...given)
  }

  override putRow(...given: Parameters<RouterGateway['putRow']>): ReturnType<RouterGateway['putRow']> {
    stored.toGateway++
    return super.putRow(...given)
  }

  async tell({ userId, sessionId, epoch, after, events, atATime }: Telling): Promise<void> {
    for (let last = after + atATime; last <= after + events; last += atATime) {
      const first = last - atATime + 1
      await super.pushEvents(userId, {
        sessionId,
        registrationEpoch: epoch,
        first,
        events: Array.from({ length: atATime }, (_, n) => eventText(first + n)),
        last,
        snapshot: null,
      })
    }
  }
}

/** The smallest object that holds sockets: it sends each frame back, on `…-all` to every socket that it has. */
export class Echo extends DurableObject<BenchEnv> {
  override async fetch(request: Request): Promise<Response> {
    const { 0: theirs, 1: ours } = new WebSocketPair()
    const { pathname } = new URL(request.url)
    const tag = pathname.match(/-(all|blast-\d+)$/)?.[1] ?? 'one'
    this.ctx.acceptWebSocket(ours, [tag])
    return new Response(null, { status: 101, webSocket: theirs })
  }

  override async webSocketMessage(socket: WebSocket, frame: string | ArrayBuffer): Promise<void> {
    const toAll = this.ctx.getTags(socket).includes('all')
    for (const one of toAll ? this.ctx.getWebSockets('all') : [socket]) one.send(frame)
  }

  /** Events in frames as a gateway sends them, to every socket of a tag. */
  async blast(tag: string, sessionId: string, events: number): Promise<void> {
    const sockets = this.ctx.getWebSockets(tag)
    for (let sequence = 1; sequence <= events; sequence++) {
      const event: unknown = JSON.parse(eventText(sequence))
      const frame = JSON.stringify({
        kind: 'event',
        protocol_version: 1,
        session_id: sessionId,
        registration_epoch: 1_700_000_000_000,
        sequence,
        generation: 0,
        event,
      })
      for (const socket of sockets) socket.send(frame)
    }
  }
}

/** The object ends when it is filled. */
async function filled(filling: Promise<void>): Promise<Response> {
  await filling.catch((error: unknown) => {
    if (!String(error).includes(FILLED)) throw error
  })
  return new Response(null, { status: 204 })
}

export default {
  async fetch(request: Request, env: BenchEnv, ctx: ExecutionContext): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url)
    const sessionOf = () => env.SESSION.getByName(searchParams.get('session') ?? '') as unknown as Session
    if (pathname === '/bench/bare') {
      return fetch(`${env.UPSTREAM}/api/chat`, { method: 'POST', body: request.body })
    }
    if (pathname === '/bench/stored') {
      for (const { of, cursor } of cursors) stored[of] += cursor.rowsWritten
      const told = stored
      stored = { ...NOTHING }
      cursors = []
      return Response.json(told)
    }
    if (pathname === '/bench/fill') {
      return filled(sessionOf().fill(Number(searchParams.get('messages')), await request.text()))
    }
    if (pathname === '/bench/fill-events')
      return filled(sessionOf().fillEvents(Number(searchParams.get('events'))))
    if (pathname === '/bench/fan-out') {
      const numberOf = (name: string) => Number(searchParams.get(name))
      const userId = searchParams.get('user') ?? ''
      const gateway = env.GATEWAY.getByName(userId) as unknown as Gateway
      await gateway.tell({
        userId,
        sessionId: searchParams.get('session') ?? '',
        epoch: numberOf('epoch'),
        after: numberOf('after'),
        events: numberOf('events'),
        atATime: numberOf('at_a_time'),
      })
      return new Response(null, { status: 204 })
    }
    if (pathname === '/bench/blast') {
      const echo = env.ECHO.getByName('echo') as unknown as Echo
      const events = Number(searchParams.get('events'))
      await echo.blast(`blast-${searchParams.get('to')}`, searchParams.get('session') ?? '', events)
      return new Response(null, { status: 204 })
    }
    if (pathname.startsWith('/bench/echo')) return env.ECHO.getByName('echo').fetch(request)
    return app.fetch(request, watched(env), ctx)
  },
}
