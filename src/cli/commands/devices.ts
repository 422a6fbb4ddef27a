import type { Command } from 'commander'
import type { SwitchyardClient } from '../../client/client.ts'
import { type DeviceSummary, RenameDeviceRequest } from '../../protocol/execution/devices.ts'
import { type CommandDeps, CommandStop, must, openClient, requireConsent } from '../command-context.ts'
import { deviceLines, quotedName } from '../devices/device-list.ts'
import { requireByPrefix } from '../devices/find-by-prefix.ts'
import { EXIT } from '../exit-code.ts'

/** `devices [list] | rename | revoke`. */
export function addDeviceCommands(
  program: Command,
  deps: CommandDeps,
  end: (exitCode: number) => void,
): void {
  const devices = program
    .command('devices')
    .summary('list, rename and revoke paired devices')
    .description(
      'Works with the devices that are paired with your account. An id may be cut to its first four characters or more.',
    )
    .addHelpText(
      'after',
      `
Examples:
  switchyard devices
  switchyard devices rename 3f9c the phone in the kitchen
  switchyard devices revoke 3f9c`,
    )

  const open = <T extends object>(command: Command) => openClient<T>(deps, command)

  devices
    .command('list', { isDefault: true })
    .description(
      'Lists paired devices, the newest first, and those whose pairing was ended because of a copied token.',
    )
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  switchyard devices list --json')
    .action(async (_options: unknown, command: Command) => {
      const { options, io, client } = await open<{ json?: boolean }>(command)
      const listed = must(await client.devices.list())
      if (options.json) io.out(`${JSON.stringify(listed, null, 2)}\n`)
      else for (const device of listed) io.out(deviceLines(device))
      if (listed.length === 0 && !options.json) io.err('no device is paired; `switchyard pair` pairs one\n')
      end(EXIT.ok)
    })

  devices
    .command('rename <id> <name...>')
    .description('Gives a device another name, for you to tell them apart.')
    .addHelpText('after', '\nExample:\n  switchyard devices rename 3f9c the phone in the kitchen')
    .action(async (typed: string, words: string[], _options: unknown, command: Command) => {
      const name = words.join(' ')
      if (name.trim() === '') throw new CommandStop(EXIT.usage, 'the name of a device must not be empty')
      if (!RenameDeviceRequest.safeParse({ name }).success)
        throw new CommandStop(EXIT.usage, 'the name of a device must not be that long')
      const { io, client } = await open(command)
      const { device_id: id } = await requireDevice(client, typed)
      const renamed = must(await client.devices.rename(id, name))
      io.err(`${id} is ${quotedName(renamed.device_name)} now\n`)
      end(EXIT.ok)
    })

  devices
    .command('revoke <id>')
    .description(
      'Ends the pairing of a device: it is cut off at once and has to be paired again. One whose pairing was ended is taken off the list.',
    )
    .option('--yes', 'do not ask')
    .addHelpText('after', '\nExample:\n  switchyard devices revoke 3f9c --yes')
    .action(async (typed: string, _options: unknown, command: Command) => {
      const { options, io, client } = await open<{ yes?: boolean }>(command)
      const device = await requireDevice(client, typed)
      if (await requireConsent(io, options.yes, question(device))) {
        must(await client.devices.revoke(device.device_id))
        io.err(`revoked ${device.device_id}, ${quotedName(device.device_name)}\n`)
        end(EXIT.ok)
      } else {
        io.err('nothing was revoked\n')
        end(EXIT.failed)
      }
    })
}

const requireDevice = async (client: SwitchyardClient, typed: string): Promise<DeviceSummary> =>
  requireByPrefix(typed, must(await client.devices.list()), 'device', ({ device_id: id }) => id)

const question = ({ device_name: name, revoked_reason: ended }: DeviceSummary): string =>
  ended === undefined
    ? `Revoke ${quotedName(name)}? It is cut off at once and has to be paired again.`
    : `Take ${quotedName(name)}, whose pairing was ended, off the list?`
