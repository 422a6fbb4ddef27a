import type { Provider } from '../protocol/execution/ids.ts'

/** Where a cloud provider is reached (D15). */
export type CloudConfig = {
  id: Provider
  displayName: string
  /** Without a slash at its end: an origin for Anthropic and Gemini, whose adapters add the version path; for OpenAI it ends in that path. */
  baseUrl: string
}
