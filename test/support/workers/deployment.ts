/** What the tests' deployment is configured with. Its providers exist in `scripted-models.ts` only. */

export const OLLAMA_BASE_URL = 'http://127.0.0.1:11434'

/** A priced cloud, an endpoint on the local network, and one that is never there. */
export const PROVIDERS = [
  {
    name: 'cloud',
    base_url: 'https://cloud.test/v1',
    auth: 'api_key',
    models: [
      {
        model: 'big',
        max_context_tokens: 100_000,
        max_output_tokens: 1000,
        input_cost_per_million_tokens: '2',
        output_cost_per_million_tokens: '10',
      },
      { model: 'plain', max_context_tokens: 100_000, capabilities: { streaming: false } },
    ],
  },
  {
    name: 'lan',
    base_url: 'http://127.0.0.1:8000/v1',
    local: true,
    models: [{ model: 'desk', max_context_tokens: 32_768 }],
  },
  { name: 'gone', base_url: 'http://127.0.0.1:8001/v1', local: true },
]
