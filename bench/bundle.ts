import { readFileSync } from 'node:fs'
import path from 'node:path'
import { gzipSync } from 'node:zlib'
import { type Bench, figure, ms } from './lib/bench.ts'
import { least, median } from './lib/statistics.ts'
import { inTemporaryFolder } from './lib/temporary.ts'
import { wrangler } from './lib/wrangler.ts'

const PROFILES = 7

export const bundle: Bench = {
  name: 'bundle',
  what: 'size of what is deployed, and CPU time until it can serve',
  run: async (print) => {
    await inTemporaryFolder(async (folder) => {
      await wrangler('deploy', '--dry-run', '--outdir', folder)
      const main = readFileSync(path.join(folder, 'main.js'))
      print(figure('bundle, gzip', `${(gzipSync(main).length / 1024).toFixed(1)} KiB`, '450 KiB'))
      print(`    ${(main.length / 1024).toFixed(0)} KiB before compression`)

      const form = path.join(folder, 'bundle.form')
      await wrangler('deploy', '--dry-run', '--outfile', form)
      const profile = path.join(folder, 'startup.cpuprofile')
      const active: number[] = []
      for (let n = 0; n < PROFILES; n++) {
        active.push(activeMs(await wrangler('check', 'startup', '--worker', form, '--outfile', profile)))
      }
      // Whatever else runs on the machine only adds to it.
      print(figure('start-up CPU', ms(least(active)), '60 ms'))
      print(`    the least of ${PROFILES} profiles, their median is ${ms(median(active))}`)
    })
  },
}

/** The sum of the samples in which something ran, as wrangler tells it. */
function activeMs(output: string): number {
  const told = /Active: ([\d.]+) ms/.exec(output)?.[1]
  if (told === undefined) throw new Error(`wrangler told no start-up time:\n${output}`)
  return Number(told)
}
