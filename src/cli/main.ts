import { runCli } from './program.ts'

/** `switchyard … | head` closes the pipe early; that is the reader's right, not a fault. */
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: Error & { code?: string }) => {
    if (error.code === 'EPIPE') process.exit()
    throw error
  })
}

process.exitCode = await runCli(process.argv.slice(2))
