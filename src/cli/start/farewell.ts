/** What `npm start` did not take away, and how to. */
export type LeftBehind = {
  stateFolder: string
  credentialsFile: string
  /** Keys of encrypted sessions; absent while there are none. */
  sessionKeysFolder?: string
}

/** The lines that end a start: what stays on the disk, with the command that removes it. */
export function farewell({ stateFolder, credentialsFile, sessionKeysFolder }: LeftBehind): string {
  const row = (what: string, where: string, command: string) =>
    `  ${what}: ${where}\n    remove with: ${command} ${quoted(where)}\n`
  return [
    'What stays on this machine:\n',
    row('sessions, accounts and the log of the router', stateFolder, 'rm -rf'),
    row('keys of your accounts', credentialsFile, 'rm'),
    ...(sessionKeysFolder === undefined
      ? []
      : [
          row(
            'keys of encrypted sessions, without which nobody can read those any more',
            sessionKeysFolder,
            'rm -r',
          ),
        ]),
  ].join('')
}

/** A path as one word of a shell. */
const quoted = (path: string): string =>
  /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`
