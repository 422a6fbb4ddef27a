import type { Command } from 'commander'
import type { SwitchyardClient } from '../../client/client.ts'
import { CHALLENGE_TTL_MS } from '../../protocol/remote/limits.ts'
import { type Clock, WALL_CLOCK } from '../clock.ts'
import { type CommandDeps, must, openClient } from '../command-context.ts'
import { type NewDeviceLook, pairedText, rememberDevices } from '../devices/new-device.ts'
import { obstacle, pairingText } from '../devices/pairing-view.ts'
import { pollUntil } from '../devices/polling.ts'
import { EXIT } from '../exit-code.ts'
import { withInterrupts } from '../interrupts.ts'
import type { CliIo } from '../io.ts'
import { isColoredOnOut } from '../qr-code.ts'

type PairOptions = { json?: boolean; qr?: boolean; wait?: boolean; color?: boolean }

/** `pair`. */
export function addPairCommand(program: Command, deps: CommandDeps, end: (exitCode: number) => void): void {
  program
    .command('pair')
    .summary('pair a phone or another device')
    .description(
      'Opens a pairing: shows a QR code to scan and eight digits to type, of which the first device to use one is paired. Whoever has them within two minutes can see and steer your live sessions. At a terminal it waits for the device. A phone reaches a router on this machine only if that was started with `npm start -- --lan`.',
    )
    .option('--json', 'print what the router answers as JSON, and do not wait')
    .option('--no-qr', 'no QR code')
    .option('--wait', 'wait for the device without a terminal, or with --json, too')
    .addHelpText('after', '\nExamples:\n  switchyard pair\n  switchyard pair --no-qr')
    .action(async (_options: unknown, command: Command) => {
      const { options, io, client } = await openClient<PairOptions>(deps, command)
      end(await pair(client, io, options, deps.clock ?? WALL_CLOCK))
    })
}

async function pair(
  client: SwitchyardClient,
  io: CliIo,
  options: PairOptions,
  clock: Clock,
): Promise<number> {
  const waits = options.wait === true || (io.isTty && !options.json)
  const look = waits ? await rememberDevices(client) : undefined
  const opened = must(await client.pairing.open())
  // By the clock of this machine: it is what the reader looks at, and those of two machines differ (U18).
  const untilMs = clock.nowMs() + CHALLENGE_TTL_MS
  if (options.json) io.out(`${JSON.stringify(opened, null, 2)}\n`)
  else {
    const columns = io.outIsTty ? io.columns : null
    const view = { colored: isColoredOnOut(io, options), columns, withQr: options.qr !== false, untilMs }
    io.out(pairingText(opened, view))
  }
  const note = obstacle(opened)
  if (note !== null) io.err(`${io.paint.yellow('note')}: ${note}\n`)
  return look
    ? withInterrupts(io, (signal) => waitForDevice(io, options, clock, { untilMs, look, signal }))
    : EXIT.ok
}

async function waitForDevice(
  io: CliIo,
  options: PairOptions,
  clock: Clock,
  { untilMs, look, signal }: { untilMs: number; look: NewDeviceLook; signal: AbortSignal },
): Promise<number> {
  io.err(io.paint.dim('waiting for the device; Ctrl-C stops waiting\n'))
  const device = await pollUntil(clock, untilMs, signal, (isLast) => look(signal, isLast))
  if (device !== undefined) {
    if (options.json) io.out(`${JSON.stringify(device, null, 2)}\n`)
    io.err(`${io.paint.green('✓')} ${pairedText(device)}\n`)
    return EXIT.ok
  }
  if (signal.aborted) return EXIT.interrupted
  io.err('no device has paired, and the code holds no longer; `switchyard pair` makes another one\n')
  return EXIT.failed
}
