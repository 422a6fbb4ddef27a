// `npm start`: a router on this machine, an account on it, a local model, and a first task in the user's folder.
import { existsSync } from 'node:fs'
import path from 'node:path'
import { DEFAULT_STATE } from '../../scripts/lib-node/repository.mjs'
import type { SwitchyardClient } from '../client/client.ts'
import type { ExecutePolicy } from '../protocol/execution/policy.ts'
import type { Route } from '../protocol/remote/handshake-request.ts'
import { err, ok, type Result } from '../protocol/result.ts'
import { credentialsPath } from './credentials.ts'
import { EXIT } from './exit-code.ts'
import { Following } from './following.ts'
import { runInteractive } from './interactive.ts'
import { withInterrupts } from './interrupts.ts'
import { type CliIo, makeCliIo } from './io.ts'
import { openKeyStore } from './keys/key-folder.ts'
import { loadConfig, policyOf } from './policy.ts'
import { runTask } from './run-task.ts'
import { SessionKeys } from './session-keys.ts'
import { clientWithAccount } from './start/account.ts'
import { readStartArguments, START_HELP, type StartArguments } from './start/arguments.ts'
import { farewell, type LeftBehind } from './start/farewell.ts'
import { lanText, openLan } from './start/lan/open-lan.ts'
import { Lifetime, type Started, stopAll } from './start/lifetime.ts'
import { type ChosenModel, chooseModel } from './start/local-model.ts'
import { localModelOf } from './start/router-models.ts'
import { type RouterProcess, routerLogFile, startRouter } from './start/router-process.ts'
import { findRouter, type RouterPlace, untilAnswers } from './start/running-router.ts'
import { tellUnsent, withTypedWords } from './typed-words.ts'

/** Why there is no conversation: a sentence for the user, and what to end with. */
type StartFailure = { message: string; exitCode: number }
type Step<T> = Promise<Result<T, StartFailure>>

/** Without a terminal a line cannot be rewritten, so there are fewer of them. */
const QUIET_PROGRESS_SECONDS = 5

type Ready = { place: RouterPlace; reference: string | undefined; client: SwitchyardClient }

async function main(argv: readonly string[]): Promise<number> {
  const io = makeCliIo()
  const args = readStartArguments(argv, process.env)
  if (!args.ok) return refuse(io, { message: `${args.error}\nnpm start -- --help`, exitCode: EXIT.usage })
  if (args.value.help) {
    io.out(START_HELP)
    return EXIT.ok
  }
  // npm runs its scripts in the repository, and says where the user was.
  const cwd = process.env.INIT_CWD ?? process.cwd()
  const persistTo =
    args.value.persistTo === undefined ? DEFAULT_STATE : path.resolve(cwd, args.value.persistTo)
  const started: Started = {}
  const lifetime = new Lifetime(started)
  try {
    const ready = await prepare(args.value, { io, cwd, persistTo, started, signal: lifetime.signal })
    if (lifetime.exitCode !== undefined) return lifetime.exitCode
    if (!ready.ok) return refuse(io, ready.error)
    lifetime.handOverInterrupts()
    return await converse(args.value, ready.value, { io, cwd, lifetime })
  } finally {
    if (started.router) io.err('Stopping the router …\n')
    await stopAll(started)
    if (started.router) io.err(farewell(leftBehind(persistTo)))
  }
}

function leftBehind(stateFolder: string): LeftBehind {
  const keys = openKeyStore().folder
  return {
    stateFolder,
    credentialsFile: credentialsPath(),
    ...(existsSync(keys) ? { sessionKeysFolder: keys } : {}),
  }
}

type World = { io: CliIo; cwd: string; persistTo: string; started: Started; signal: AbortSignal }

/** Router, account and model, in this order of need: a model must be known before the router is started with it. */
async function prepare(args: StartArguments, world: World): Step<Ready> {
  const { io, persistTo, started } = world
  const found = await findRouter({ ...args, persistTo })
  if (!found.ok) return usage(found.error)
  const place = found.value
  let chosen: ChosenModel | undefined
  let routes: readonly Route[] | undefined
  if (place.running) {
    if (args.lan) return usage(alreadyRuns(place))
    io.err(`Using the router that already runs at ${place.url}; it is not stopped at the end.\n`)
    await untilAnswers(place, { persistTo, signal: world.signal })
  } else {
    const model = await chooseModel(args.model, process.env)
    if (!model.ok) return usage(model.error)
    chosen = model.value
    if (chosen.demo) started.demo = chosen.demo
    if (args.lan) {
      const lan = await openLan(place.port)
      if (!lan.ok) return usage(lan.error)
      started.door = lan.value.door
      for (const notice of lan.value.notices) io.err(`${io.paint.yellow('note')}: ${notice}\n`)
      routes = lan.value.routes
    }
    const router = await launch(place, { ollamaUrl: chosen.ollamaUrl, lanRoutes: routes }, world)
    if (!router.ok) return router
    started.router = router.value
  }
  if (world.signal.aborted) return err({ message: 'stopped', exitCode: EXIT.interrupted })
  const client = await clientWithAccount(place.url, io)
  if (!client.ok) return err({ message: client.error, exitCode: EXIT.unreachable })
  if (routes) io.err(lanText(routes, place.url))
  const reference = await nameModel(args, place, chosen, io)
  return reference.ok ? ok({ place, client: client.value, reference: reference.value }) : reference
}

const alreadyRuns = ({ url }: RouterPlace): string =>
  `A router already runs at ${url}. It does not know where devices could reach it: stop it, then start again with --lan.`

async function launch(
  place: RouterPlace,
  { ollamaUrl, lanRoutes }: { ollamaUrl: string; lanRoutes: readonly Route[] | undefined },
  world: World,
): Step<RouterProcess> {
  const { io, persistTo, signal } = world
  const { url, port } = place
  io.err(`Starting the router at ${url} (its log: ${routerLogFile(persistTo)})\n`)
  const beganMs = Date.now()
  const router = await startRouter({
    url,
    port,
    persistTo,
    ollamaUrl,
    ...(lanRoutes === undefined ? {} : { lanRoutes }),
    signal,
    onProgress: (elapsedMs) => {
      const seconds = Math.round(elapsedMs / 1000)
      if (io.isTty) io.err(`\r  … ${seconds} s`)
      else if (seconds % QUIET_PROGRESS_SECONDS === 0) io.err(`  … ${seconds} s\n`)
    },
  })
  if (io.isTty) io.err('\r')
  if (router.ok) io.err(`  ready after ${((Date.now() - beganMs) / 1000).toFixed(1)} s\n`)
  return router
}

/** @returns undefined when only the user's own configuration can name a model */
async function nameModel(
  { model }: StartArguments,
  place: RouterPlace,
  chosen: ChosenModel | undefined,
  io: CliIo,
): Step<string | undefined> {
  if (chosen) {
    io.err(`Model: ${chosen.reference}, ${chosen.note}\n`)
    return ok(chosen.reference)
  }
  if (model !== undefined) return ok(model.includes('/') ? model : `ollama/${model}`)
  const local = await localModelOf(place.url)
  if (!local.ok) return err({ message: local.error, exitCode: EXIT.failed })
  if (local.value !== null) io.err(`Model: ${local.value}, which that router has\n`)
  return ok(local.value ?? undefined)
}

/** The first task, and at a terminal whatever the user wants after it. */
async function converse(
  args: StartArguments,
  ready: Ready,
  { io, cwd, lifetime }: { io: CliIo; cwd: string; lifetime: Lifetime },
): Promise<number> {
  const { client, reference, place } = ready
  const policy = policyFor(cwd, reference, place, io)
  if (!policy.ok) return refuse(io, policy.error)
  const keys = new SessionKeys()
  io.err(`Folder: ${cwd}\n\n${io.paint.bold(`› ${args.prompt}`)}\n`)
  const following = new Following(client)
  const { result: first, late } = await withTypedWords(io.isTty ? io.listen() : undefined, (heard) =>
    withInterrupts(io, (signal) =>
      runTask({
        client,
        cwd,
        prompt: args.prompt,
        policy: policy.value,
        approve: io.isTty ? 'ask' : 'deny',
        io,
        signal,
        keys,
        following,
        ...heard,
        ...(args.sessionId === undefined ? {} : { sessionId: args.sessionId }),
        ...(args.model === undefined || reference === undefined ? {} : { explicitModel: reference }),
      }),
    ),
  ).finally(() => following.close())
  tellUnsent(io, late)
  if (!io.isTty) {
    return args.lan && first.exitCode !== EXIT.interrupted ? serveDevices(lifetime, io) : first.exitCode
  }
  const session = first.sessionId === '' ? {} : { sessionId: first.sessionId }
  return runInteractive({ client, cwd, policy: policy.value, io, keys, follows: true, ...session })
}

/** With nobody at a terminal, devices are the ones who go on. */
async function serveDevices(lifetime: Lifetime, io: CliIo): Promise<number> {
  io.err('Serving devices until stopped (Ctrl-C, or SIGTERM to this process).\n')
  const exitCode = await lifetime.untilStopped()
  return exitCode ?? refuse(io, { message: 'The router has ended by itself.', exitCode: EXIT.failed })
}

function policyFor(
  cwd: string,
  reference: string | undefined,
  { url, running }: RouterPlace,
  io: CliIo,
): Result<ExecutePolicy, StartFailure> {
  const config = loadConfig({ cwd })
  if (!config.ok) return usage(config.error.message)
  for (const notice of config.value.notices) io.err(`${io.paint.yellow('note')}: ${notice}\n`)
  const policy = policyOf(config.value, reference)
  if (policy.ok) {
    const route = config.value.config.routing?.default?.model
    if (route !== undefined) io.err(`Your configuration routes to ${route} unless a rule says otherwise.\n`)
    return policy
  }
  if (policy.error.kind !== 'no_default_route' || !running) return usage(policy.error.message)
  return usage(
    `The router at ${url} has no local model that can call tools. Stop it and run \`npm start\` again, or start it with --var OLLAMA_BASE_URL:http://127.0.0.1:11434`,
  )
}

const usage = (message: string): Result<never, StartFailure> => err({ message, exitCode: EXIT.usage })

function refuse(io: CliIo, { message, exitCode }: StartFailure): number {
  io.err(`${io.paint.red('error')}: ${message}\n`)
  return exitCode
}

process.exitCode = await main(process.argv.slice(2))
