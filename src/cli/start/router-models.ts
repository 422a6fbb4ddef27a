import { SwitchyardClient } from '../../client/client.ts'
import { Transport } from '../../client/http.ts'
import { ListModelsResponse } from '../../protocol/execution/models.ts'
import { err, ok, type Result } from '../../protocol/result.ts'
import { loadCredentials } from '../credentials.ts'
import { failureText } from '../failure-text.ts'
import { type LocalModel, preferredModel } from './ollama.ts'

/**
 * The local model to use on a router that was running already, as `provider/model`; null when it has none that can call
 * tools. The error is a sentence for the user.
 */
export async function localModelOf(url: string): Promise<Result<string | null, string>> {
  const stored = loadCredentials(url)
  if (!stored.ok) return err(stored.error.message)
  const apiKey = process.env.SWITCHYARD_API_KEY || stored.value?.api_key
  const signedIn = await new SwitchyardClient({ baseUrl: url }).signIn(apiKey ?? '')
  if (!signedIn.ok) return err(failureText(signedIn.error))
  const transport = new Transport({ baseUrl: url, token: signedIn.value.token })
  const listed = await transport.json(ListModelsResponse, { method: 'GET', path: '/api/v1/llm/models' })
  if (!listed.ok) return err(failureText(listed.error))
  const models = listed.value.models
    .filter(
      ({ local, capabilities, provider }) => local && capabilities.tools === true && provider === 'ollama',
    )
    .map(({ model }): LocalModel => ({ name: model }))
  const preferred = preferredModel(models)
  return ok(preferred === undefined ? null : `ollama/${preferred.name}`)
}
