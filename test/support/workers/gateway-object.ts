import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import type { Gateway } from '../../../src/gateway/gateway.ts'
import { makeSql } from '../../../src/storage/object-sql.ts'
import type { Sql } from '../../../src/storage/session/sql.ts'

const stubOf = (userId: string): DurableObjectStub<Gateway> =>
  // The binding's type does not know the class behind it.
  env.GATEWAY.getByName(userId) as unknown as DurableObjectStub<Gateway>

/** Works inside the gateway of a user. */
export const insideGateway = <T>(
  userId: string,
  work: (sql: Sql, state: DurableObjectState, gateway: Gateway) => T | Promise<T>,
): Promise<T> =>
  runInDurableObject<Gateway, T>(stubOf(userId), (gateway, state) =>
    work(makeSql(state.storage), state, gateway),
  )

/** The gateway goes to sleep: its memory is gone, its sockets stay. */
export const hibernate = (userId: string): Promise<void> => evictDurableObject(stubOf(userId))

/** The gateway ends as in a deploy: its memory and its sockets are gone, storage stays. */
export const restart = (userId: string): Promise<void> =>
  evictDurableObject(stubOf(userId), { webSockets: 'close' })

export const ringGatewayAlarm = (userId: string): Promise<boolean> => runDurableObjectAlarm(stubOf(userId))

/** Every row that the gateway keeps, as text: what must not be in there is looked for in this. */
export const storedInGateway = (userId: string): Promise<string> =>
  insideGateway(userId, (sql) => {
    const tables = sql.rows(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_%' ESCAPE '\\'",
    )
    return JSON.stringify(tables.map(({ name }) => sql.rows(`SELECT * FROM "${String(name)}"`)))
  })
