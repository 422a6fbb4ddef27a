import { describeAnswers } from './contract/answers.ts'
import type { DialectUnderTest } from './contract/dialect.ts'
import { describeEnds } from './contract/ends.ts'
import { describeFailures } from './contract/failures.ts'
import { describeReports } from './contract/reports.ts'
import { describeRequests } from './contract/requests.ts'

/** The rules that every provider adapter keeps, whatever its dialect. */
export function describeProviderContract(dialect: DialectUnderTest): void {
  describeAnswers(dialect)
  describeFailures(dialect)
  describeReports(dialect)
  describeRequests(dialect)
  describeEnds(dialect)
}
