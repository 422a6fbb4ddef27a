// A vitest reporter that writes how many tests passed and failed to the file named by SWITCHYARD_TEST_COUNTS.
import { writeFileSync } from 'node:fs'

export default class CountingReporter {
  /**
   * @param {readonly import('vitest/node').TestModule[]} modules
   * @param {readonly unknown[]} unhandledErrors
   */
  onTestRunEnd(modules, unhandledErrors) {
    const file = process.env.SWITCHYARD_TEST_COUNTS
    if (file === undefined) return
    // What broke outside any test (a file that does not load, a late rejection) is a failure too.
    const counts = { passed: 0, failed: unhandledErrors.length }
    for (const module of modules) {
      counts.failed += module.errors().length
      for (const suite of module.children.allSuites()) counts.failed += suite.errors().length
      for (const test of module.children.allTests()) {
        const { state } = test.result()
        if (state === 'passed') counts.passed++
        else if (state === 'failed') counts.failed++
      }
    }
    writeFileSync(file, JSON.stringify(counts))
  }
}
