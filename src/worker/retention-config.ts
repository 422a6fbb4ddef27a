/** How many days things are kept (D31); 0 keeps them for ever. */
export type Retention = { tracesDays: number; archivedDays: number; sessionsDays: number }

/** (EC 22) */
const DEFAULTS: Retention = { tracesDays: 90, archivedDays: 30, sessionsDays: 365 }

type Variable = 'RETENTION_TRACES_DAYS' | 'RETENTION_ARCHIVED_DAYS' | 'RETENTION_SESSIONS_DAYS'
const VARIABLES: readonly [keyof Retention, Variable][] = [
  ['tracesDays', 'RETENTION_TRACES_DAYS'],
  ['archivedDays', 'RETENTION_ARCHIVED_DAYS'],
  ['sessionsDays', 'RETENTION_SESSIONS_DAYS'],
]

/** Reads the variables. What is no whole number of days counts as not set, and is told in `problems`, a sentence each. */
export function parseRetention(vars: { readonly [name in Variable]?: string | undefined }): {
  retention: Retention
  problems: string[]
} {
  const retention = { ...DEFAULTS }
  const problems: string[] = []
  for (const [field, name] of VARIABLES) {
    const text = vars[name]
    if (text === undefined || text === '') continue
    if (/^\d{1,5}$/.test(text)) retention[field] = Number(text)
    else problems.push(`${name} must be a whole number of days, 0 to 99999; ${DEFAULTS[field]} is used`)
  }
  return { retention, problems }
}
