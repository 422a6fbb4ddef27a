// The figures that `npm test` ends with, and what they mean for its exit code.

/** @typedef {{ passed: number, failed: number }} TestCounts */

/**
 * @param {string} text what the counting reporter wrote; anything else counts as nothing ran
 * @returns {TestCounts}
 */
export function readCounts(text) {
  try {
    const { passed, failed } = JSON.parse(text)
    if (Number.isInteger(passed) && Number.isInteger(failed)) return { passed, failed }
  } catch {
    // vitest ended before it could report.
  }
  return { passed: 0, failed: 0 }
}

/**
 * @param {number} vitestCode
 * @param {TestCounts} counts
 * @returns {number} never 0 when something failed or nothing ran at all
 */
export function exitCodeOf(vitestCode, { passed, failed }) {
  if (vitestCode !== 0) return vitestCode
  return failed > 0 || passed === 0 ? 1 : 0
}
