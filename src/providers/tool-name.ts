/** A name that every provider takes back. */
const TOOL_NAME = /^[a-zA-Z0-9_-]{1,64}$/

/**
 * The name of a call as it stands in a prompt. Models make up names that their own provider refuses to read again
 * (`functions.read_file`, or a sentence), and one such name would end every later turn of its session (U22).
 */
export const promptToolName = (name: string): string =>
  TOOL_NAME.test(name) ? name : name.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, 64) || '_'
