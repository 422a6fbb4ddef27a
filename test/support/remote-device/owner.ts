import type { Fields } from './shapes.ts'

/** An answer of the router, its body decoded when it is JSON. */
export type Answer = { status: number; body: Fields }

/** The owner of a gateway, who speaks HTTP: an account of its own, signed in. */
export class Owner {
  readonly userId: string
  readonly #base: string
  readonly #token: string
  readonly #beforeCall: (userId: string) => Promise<void>

  /** Makes an account on a local router. */
  static async create(base: string, beforeCall: (userId: string) => Promise<void>): Promise<Owner> {
    const made = await callJson(`${base}/api/v1/auth/bootstrap`, 'POST', {}, undefined)
    const apiKey = { 'X-Smista-Api-Key': String(made.body.api_key) }
    const signedIn = await callJson(`${base}/api/v1/auth/sign-in`, 'POST', apiKey, undefined)
    if (signedIn.status !== 200) throw new Error(`signing in failed: ${JSON.stringify(signedIn)}`)
    return new Owner(base, String(made.body.user_id), String(signedIn.body.token), beforeCall)
  }

  private constructor(
    base: string,
    userId: string,
    token: string,
    beforeCall: (userId: string) => Promise<void>,
  ) {
    this.#base = base
    this.userId = userId
    this.#token = token
    this.#beforeCall = beforeCall
  }

  /** One call of the HTTP API. */
  async call(method: string, path: string, body?: object): Promise<Answer> {
    await this.#beforeCall(this.userId)
    return callJson(`${this.#base}/api/v1${path}`, method, { Authorization: `Bearer ${this.#token}` }, body)
  }

  /** A call that must succeed; gives its body. */
  async must(method: string, path: string, body?: object): Promise<Fields> {
    const answer = await this.call(method, path, body)
    if (answer.status < 200 || answer.status > 299) {
      throw new Error(`${method} ${path} was answered ${answer.status}: ${JSON.stringify(answer.body)}`)
    }
    return answer.body
  }

  /** Opens a challenge: `code`, `credential`, `gateway_id`, `qr`, `expires_at`. */
  openPairing(): Promise<Pairing> {
    return this.must('POST', '/pairing') as Promise<Pairing>
  }

  async devices(): Promise<Fields[]> {
    return listIn(await this.must('GET', '/devices'), 'devices')
  }

  async connectRequests(): Promise<Fields[]> {
    return listIn(await this.must('GET', '/connect-requests'), 'requests')
  }

  /** A session with a title. */
  async newSession(title: string): Promise<string> {
    const { session } = await this.must('POST', '/sessions', { title })
    return (session as { id: string }).id
  }

  /** Lets a run begin and waits for its first pause or its end. */
  run(session: string, prompt: string): Promise<Fields> {
    return this.must('POST', `/sessions/${session}/execute`, taskFor(prompt))
  }
}

export type Pairing = {
  code: string
  credential: string
  gateway_id: string
  qr: Fields & { url: string; address: string }
  expires_at: string
}

/** The smallest run of the execution protocol, on the scripted model. */
const taskFor = (prompt: string): Fields => ({
  input: { text: prompt },
  workspace: { root: '/home/ada/project', referenced_paths: [] },
  policy: {
    version: 1,
    source: 'merged',
    classification: {},
    routing: { rules: [], default: { model: 'ollama/scripted' } },
    tools: { permissions: { read_file: 'allow', shell: 'ask' } },
    privacy: {},
  },
  local_preferences: { auto_apply: false, local_only: false, no_network: false },
  attachments: { files: [], instructions: [], invoked_skills: [], available_skills: [] },
})

function listIn(body: Fields, name: string): Fields[] {
  const list = body[name]
  if (!Array.isArray(list)) throw new Error(`there is no list ${name} in ${JSON.stringify(body)}`)
  return list
}

async function callJson(
  url: string,
  method: string,
  headers: Readonly<Record<string, string>>,
  body: object | undefined,
): Promise<Answer> {
  const response = await fetch(url, {
    method,
    headers: { ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const content = await response.text()
  const isJson = response.headers.get('Content-Type')?.includes('json') ?? false
  return { status: response.status, body: isJson ? JSON.parse(content) : { text: content } }
}
