import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { CrashPoints } from '../support/workers/crash-points.ts'
import { createUnderDeath } from '../support/workers/crash-sweep.ts'
import { tryScripts } from '../support/workers/crash-tier.ts'
import { makeClient } from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'
import { inside } from '../support/workers/session-object.ts'

const models = scriptModels()

describe('an object that dies', () => {
  const points = new CrashPoints()
  beforeEach(() => {
    vi.spyOn(console, 'error').mockImplementation(() => {})
    points.start()
  })
  afterAll(() => points.stop())

  it('[D23] loses what it wrote since its last wait, in a transaction or not, and nothing before', async () => {
    const id = await (await makeClient()).newSession()
    const rows = () => inside(id, (sql) => sql.rows("SELECT n FROM chunks WHERE ref = 'test' ORDER BY n"))
    const write = (n: number) => `INSERT INTO chunks (ref, n, body) VALUES ('test', ${n}, '')`
    const dies = (work: Parameters<typeof inside<void>>[1]) =>
      expect(inside(id, work)).rejects.toThrow('died')
    await dies(async (sql, state) => {
      sql.rows(write(1))
      await state.storage.sync()
      sql.rows(write(2))
      points.arm([1])
      sql.rows(write(3))
    })
    points.disarm()
    expect(await rows()).toEqual([{ n: 1 }])
    await dies((sql) => {
      sql.transaction(() => {
        sql.rows(write(4))
        points.arm([1])
        sql.rows(write(5))
      })
    })
    points.disarm()
    expect(await rows()).toEqual([{ n: 1 }])
    expect(points.deaths.map(({ place }) => place)).toEqual([
      expect.stringContaining('INSERT'),
      expect.stringContaining('INSERT'),
    ])
    expect(points.afterlife).toEqual([])
  })

  it('[U16] while its session is made is made once under its key', async () => {
    const passed = await createUnderDeath({ points, models }, [])
    expect(passed).toBeGreaterThan(20)
    for (let place = 1; place <= passed; place += 9) await createUnderDeath({ points, models }, [place])
  })
})

tryScripts(models, { stride: 90, manners: 'in turns' }, false)
