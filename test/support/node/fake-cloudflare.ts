import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

/** As much of Cloudflare's API as wrangler asks for when a Worker with one D1 database is deployed to workers.dev. */

const ACCOUNT = { id: '0123456789abcdef0123456789abcdef', name: 'Ada' }
const DATABASE_ID = '11111111-2222-3333-4444-555555555555'
const SUBDOMAIN = 'ada'

type Answer = { status: number; body: object }
type Call = { method: string; path: string; body: string }

const found = (result: unknown): Answer => {
  const count = Array.isArray(result) ? result.length : 1
  const result_info = { count, page: 1, per_page: 50, total_count: count, total_pages: 1 }
  return { status: 200, body: { success: true, errors: [], messages: [], result, result_info } }
}
const refused = (status: number, code: number, message: string): Answer => ({
  status,
  body: { success: false, errors: [{ code, message }], messages: [], result: null },
})

export async function startFakeCloudflare() {
  const state = {
    databases: [] as string[],
    applied: [] as string[],
    /** Uploads of the Worker, the metadata of each; the first is the empty one that holds the secret. */
    uploads: [] as { bindings: { name: string }[] }[],
    secrets: {} as Record<string, string>,
  }
  const calls: string[] = []
  const worker = '/workers/scripts/switchyard'
  const noWorker = () => refused(404, 10007, 'This Worker does not exist on your account.')

  /** Statements about the table of applied migrations, which wrangler keeps itself. */
  function query(body: string): Answer {
    const { sql } = JSON.parse(body) as { sql: string }
    const applied = [...sql.matchAll(/VALUES\s*\('([^']+\.sql)'\)/gi)].map(([, name = '']) => name)
    state.applied.push(...applied)
    const results = /^\s*SELECT/i.test(sql)
      ? state.applied.map((name, id) => ({ id, name, applied_at: 'then' }))
      : []
    return found([{ results, success: true, meta: { duration: 1 } }])
  }

  function upload(body: string): Answer {
    const metadata = /name="metadata"\s+(\{.*\})\s/.exec(body)?.[1] ?? '{}'
    state.uploads.push(JSON.parse(metadata))
    return found({ id: 'switchyard', etag: 'e', deployment_id: 'd', startup_time_ms: 12 })
  }

  function putSecret(body: string): Answer {
    const { name, text: value } = JSON.parse(body) as { name: string; text: string }
    state.secrets[name] = value
    return found({})
  }

  function answer({ method, path, body }: Call): Answer {
    const isNew = state.uploads.length === 0
    switch (`${method} ${path}`) {
      case 'GET /user':
        return found({ email: 'ada@example.com' })
      case 'GET /user/tokens/verify':
        return found({ status: 'active' })
      case 'GET /accounts':
        return found([ACCOUNT])
      case 'GET /memberships':
        return found([{ id: 'm', account: ACCOUNT, roles: [] }])
      case 'GET /d1/database':
        return found(state.databases.map((name) => ({ uuid: DATABASE_ID, name })))
      case 'POST /d1/database':
        state.databases.push((JSON.parse(body) as { name: string }).name)
        return found({ uuid: DATABASE_ID, name: state.databases.at(-1) })
      case `POST /d1/database/${DATABASE_ID}/query`:
        return query(body)
      case `GET ${worker}/secrets`:
        return isNew
          ? noWorker()
          : found(Object.keys(state.secrets).map((name) => ({ name, type: 'secret_text' })))
      case `PUT ${worker}/secrets`:
        return isNew ? noWorker() : putSecret(body)
      case `PUT ${worker}`:
        return upload(body)
      case 'GET /workers/services/switchyard':
        return isNew
          ? refused(404, 10090, 'workers.api.error.service_not_found')
          : found({
              id: 'switchyard',
              default_environment: {
                environment: 'production',
                script: { tag: 't', tags: null, last_deployed_from: 'wrangler' },
              },
            })
      case `GET ${worker}/deployments`:
        return found({ deployments: [] })
      case 'GET /workers/workers/switchyard':
        return found({ id: 'x', name: 'switchyard', subdomain: { enabled: true, previews_enabled: true } })
      case 'GET /workers/subdomain':
        return found({ subdomain: SUBDOMAIN })
      case `GET ${worker}/subdomain`:
      case `POST ${worker}/subdomain`:
        return found({ enabled: true, previews_enabled: true })
      case `PUT ${worker}/schedules`:
        return found({})
      default:
        return refused(404, 7000, `No route for ${method} ${path}`)
    }
  }

  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url ?? '', 'http://fake')
    const path = pathname.replace('/client/v4', '').replace(`/accounts/${ACCOUNT.id}/`, '/')
    const method = request.method ?? ''
    calls.push(`${method} ${path}`)
    const { status, body } = answer({ method, path, body: await text(request) })
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/client/v4`,
    accountId: ACCOUNT.id,
    address: `https://switchyard.${SUBDOMAIN}.workers.dev`,
    state,
    calls: () => calls.splice(0),
    close: () => new Promise((resolve) => server.close(resolve)),
  }
}
