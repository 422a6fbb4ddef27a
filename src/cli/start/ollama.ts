import { z } from 'zod'

/** One model of an Ollama daemon on this machine that can call tools. */
export type LocalModel = {
  /** As the daemon lists it, with its tag. */
  name: string
  /** Billions of parameters, where the daemon tells. */
  billions?: number
}

export type OllamaDaemon = { origin: string; models: LocalModel[] }

/** A daemon on the same machine answers within milliseconds, or is not there. */
const TAGS_TIMEOUT_MS = 1_500
/** Showing reads the model's header from disk. */
const SHOW_TIMEOUT_MS = 5_000
/** Enough to find one to use; somebody with more has the newest first. */
const MAX_SHOWN_MODELS = 20

const Tags = z.object({
  models: z
    .array(
      z.object({
        name: z.string(),
        remote_host: z.string().optional(),
        details: z.object({ parameter_size: z.string().optional() }).optional(),
      }),
    )
    .nullable(),
})
const Shown = z.object({ capabilities: z.array(z.string()).default([]), remote_host: z.string().optional() })

/** Where the daemon listens, by the rules of Ollama's own `OLLAMA_HOST`; without it 127.0.0.1:11434. */
export function ollamaOrigin(setting: string | undefined): string {
  const text = (setting ?? '').trim().replace(/^["']|["']$/g, '')
  const [, scheme = 'http', rest = text] = /^(https?):\/\/(.*)$/.exec(text) ?? []
  const authority = rest.split('/')[0] ?? ''
  const [, host = '', port] = /^(\[[^\]]*\]|[^:]*)(?::(\d+))?$/.exec(authority) ?? []
  const given = text.includes('://') ? (scheme === 'https' ? '443' : '80') : '11434'
  // An address to listen on everywhere is dialled on this machine.
  const name = host === '' || host === '0.0.0.0' || host === '[::]' ? '127.0.0.1' : host
  return `${scheme}://${name}:${port ?? given}`
}

/** The daemon with its tool-calling local models, newest first; undefined when none answers. */
export async function findOllama(
  origin: string,
  fetcher: typeof fetch = fetch,
): Promise<OllamaDaemon | undefined> {
  const tags = await getJson(fetcher, `${origin}/api/tags`, Tags, TAGS_TIMEOUT_MS)
  if (tags === undefined) return undefined
  // Models that the daemon forwards to a cloud are not local, whatever the daemon is.
  const local = (tags.models ?? []).filter(
    ({ name, remote_host }) => !remote_host && !/[:-]cloud$/.test(name),
  )
  const checked = await Promise.all(
    local.slice(0, MAX_SHOWN_MODELS).map(async ({ name, details }) => {
      const shown = await getJson(fetcher, `${origin}/api/show`, Shown, SHOW_TIMEOUT_MS, { model: name })
      if (!shown?.capabilities.includes('tools') || shown.remote_host) return []
      const billions = readBillions(details?.parameter_size)
      return [{ name, ...(billions === undefined ? {} : { billions }) }]
    }),
  )
  return { origin, models: checked.flat() }
}

/** Families known to call tools well, best for code first; within one, the daemon's order (newest first) decides. */
const PREFERENCES = [
  /coder|codestral|devstral/i,
  /^(qwen3|gpt-oss|glm|granite[34]|mistral-small|llama3\.[13]|llama4)/i,
]
/** Below this a model seldom gets a tool call right. */
const SMALL_BILLIONS = 3

/** The model to use when nobody chose; undefined when there is none. */
export function preferredModel(models: readonly LocalModel[]): LocalModel | undefined {
  const rank = ({ name, billions }: LocalModel): number => {
    const family = PREFERENCES.findIndex((pattern) => pattern.test(name))
    const small = billions !== undefined && billions < SMALL_BILLIONS ? PREFERENCES.length + 1 : 0
    return small + (family === -1 ? PREFERENCES.length : family)
  }
  return models.reduce<LocalModel | undefined>(
    (best, model) => (best === undefined || rank(model) < rank(best) ? model : best),
    undefined,
  )
}

/** `7.6B`, `494.03M` */
function readBillions(size: string | undefined): number | undefined {
  const [, digits, unit] = /^([\d.]+)\s*([BM])$/i.exec(size ?? '') ?? []
  if (digits === undefined || unit === undefined) return undefined
  return unit.toUpperCase() === 'B' ? Number(digits) : Number(digits) / 1000
}

async function getJson<S extends z.ZodType>(
  fetcher: typeof fetch,
  url: string,
  schema: S,
  timeoutMs: number,
  body?: object,
): Promise<z.infer<S> | undefined> {
  try {
    const response = await fetcher(url, {
      signal: AbortSignal.timeout(timeoutMs),
      redirect: 'error',
      ...(body === undefined
        ? {}
        : { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    })
    const parsed = schema.safeParse(response.ok ? await response.json() : undefined)
    return parsed.success ? parsed.data : undefined
  } catch {
    // Nobody there, too slow, or not speaking JSON: no daemon to use.
    return undefined
  }
}
