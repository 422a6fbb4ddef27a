/** The privacy table’s router in Node: real sockets behind the real egress, and a session without an object around it. */

import type { MemoryFact } from '../../../src/core/memory.ts'
import { type Access, makeAccess } from '../../../src/providers/access.ts'
import { parseProviderConfig } from '../../../src/providers/config.ts'
import { makeProviders } from '../../../src/providers/registry.ts'
import { makeFact } from '../core/builders.ts'
import { MODEL, type Site } from '../core/privacy-table.ts'
import type { Doing, Logged, TableRouter } from '../core/privacy-table-run.ts'
import { InMemorySession } from './in-memory-session.ts'
import type { ScriptedAnswer, SeenRequest } from './scripted-upstream.ts'
import { jsonAnswer } from './scripted-upstream-completion.ts'
import { chatDialect, ollamaDialect } from './scripted-upstream-dialects.ts'
import { startScriptedUpstream } from './scripted-upstream-server.ts'

/** Large enough for everything that the table’s requests hold. */
const WINDOW_TOKENS = 32_768

export type TableRouters = {
  /** A router that knows nothing yet, on the same two providers. Only the newest may be used. */
  fresh(): TableRouter
  close(): Promise<void>
}

export async function startTableRouters(): Promise<TableRouters> {
  let next: (site: Site, request: Logged) => Doing = () => ({ does: 'refuse' })
  const serve = (site: Site) =>
    startScriptedUpstream((seen) => answer(site, seen, next(site, toLogged(seen))))
  const upstreams = { local: await serve('local'), remote: await serve('remote') }
  const config = parseProviderConfig({
    OLLAMA_BASE_URL: upstreams.local.url,
    // A loopback address does not make it local (D14).
    PROVIDERS: JSON.stringify([{ name: 'cloud', base_url: `${upstreams.remote.url}/v1`, auth: 'api_key' }]),
  })
  const credentials = { [MODEL.remote.provider]: 'key-of-the-request' }
  const access: Access = await makeAccess(
    { userId: 'u', credentials, deploymentProviders: true },
    config.secrets,
  )
  return {
    fresh: () => {
      for (const { requests } of Object.values(upstreams)) requests.length = 0
      const session = new InMemorySession(makeProviders(config))
      const facts: MemoryFact[] = []
      return {
        script: (script) => {
          next = script
        },
        log: (site) => upstreams[site].requests.map(toLogged),
        execute: (body) => session.execute(body, { access, facts }),
        proceed: (message) => session.proceed(message, { access, facts }),
        remember: (content) => facts.push(makeFact({ content, localOnly: true })) > 0,
        said: async () => session.messages().filter(({ role }) => role === 'assistant'),
      }
    },
    close: async () => {
      for (const upstream of Object.values(upstreams)) await upstream.close()
    },
  }
}

const toLogged = ({ path, body, headers }: SeenRequest): Logged => ({
  kind: path.endsWith('/chat') || path.endsWith('/chat/completions') ? 'completion' : 'listing',
  text: JSON.stringify({ path, body, headers }),
})

function answer(site: Site, { path }: SeenRequest, doing: Doing): ScriptedAnswer {
  if (doing.does === 'refuse') return jsonAnswer({ error: 'out of order' }, { status: 500 })
  if (doing.does === 'offer') return jsonAnswer(listing(path))
  const { pieces, call, breaks } = doing
  const dialect = site === 'local' ? ollamaDialect : chatDialect
  const frames = dialect.frames({
    text: pieces,
    ...(call === undefined ? {} : { calls: [call] }),
    usage: { input: 10, output: 5 },
  })
  const whole = breaks === undefined
  const index = (text: string) => frames.findIndex((frame) => frame.includes(JSON.stringify(text)))
  const sent = whole
    ? frames.length
    : breaks === 'before the text'
      ? 0
      : index((breaks === 'before the end' ? pieces.at(-1) : pieces[0]) ?? '') + 1
  return {
    headers: { 'content-type': dialect.contentType },
    body: frames.slice(0, sent).join(''),
    ...(whole ? {} : { ending: 'break' }),
  }
}

function listing(path: string): unknown {
  switch (path) {
    case '/api/tags':
      return { models: [{ name: MODEL.local.model, model: MODEL.local.model }] }
    case '/api/show':
      return {
        capabilities: ['completion', 'tools'],
        model_info: { 'scripted.context_length': WINDOW_TOKENS },
        details: {},
      }
    case '/v1/models':
      return { data: [{ id: MODEL.remote.model, context_length: WINDOW_TOKENS }] }
    default:
      throw new Error(`nothing is at ${path}`)
  }
}
