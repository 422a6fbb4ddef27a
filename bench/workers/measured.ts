import { DurableObject } from 'cloudflare:workers'
import type { Env } from '../../src/worker/env.ts'
import app, { Gateway as RouterGateway, Session as RouterSession } from '../../src/worker/main.ts'

/**
 * The router as it is, with doors that only benches have: `/bench/bare` passes a request on to the upstream as the
 * smallest possible Worker would, in the same isolate; `/bench/stored` tells what was stored since it was last asked;
 * `/bench/fill` gives a session a long past; `/bench/echo` is a socket to an object that does nothing but echo.
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
}

const NOTHING: Stored = { object: 0, gateway: 0, setAlarm: 0, deleteAlarm: 0, d1: 0, d1Trips: 0 }
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
}

export class Gateway extends RouterGateway {
  constructor(ctx: DurableObjectState, env: BenchEnv) {
    if (env.COUNT_ROWS === '1') watchStorage(ctx.storage, 'gateway')
    super(ctx, watched(env))
  }
}

/** The smallest object that holds sockets: it sends each frame back, on `…-all` to every socket that it has. */
export class Echo extends DurableObject<BenchEnv> {
  override async fetch(request: Request): Promise<Response> {
    const { 0: theirs, 1: ours } = new WebSocketPair()
    this.ctx.acceptWebSocket(ours, [new URL(request.url).pathname.endsWith('-all') ? 'all' : 'one'])
    return new Response(null, { status: 101, webSocket: theirs })
  }

  override async webSocketMessage(socket: WebSocket, frame: string | ArrayBuffer): Promise<void> {
    const toAll = this.ctx.getTags(socket).includes('all')
    for (const one of toAll ? this.ctx.getWebSockets('all') : [socket]) one.send(frame)
  }
}

export default {
  async fetch(request: Request, env: BenchEnv, ctx: ExecutionContext): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url)
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
      const session = env.SESSION.getByName(searchParams.get('session') ?? '') as unknown as Session
      const filling = session.fill(Number(searchParams.get('messages')), await request.text())
      await filling.catch((error: unknown) => {
        if (!String(error).includes(FILLED)) throw error
      })
      return new Response(null, { status: 204 })
    }
    if (pathname.startsWith('/bench/echo')) return env.ECHO.getByName('echo').fetch(request)
    return app.fetch(request, watched(env), ctx)
  },
}
