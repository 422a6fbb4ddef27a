/** Names and texts of the files under schemas/, made from the zod types. It writes nothing. */

import { allSchemas } from '../../src/protocol/execution/json-schemas.ts'
import { buildOpenApi } from '../../src/protocol/execution/openapi.ts'
import { remoteRequestSchemas, remoteResponseSchemas } from '../../src/protocol/remote/json-schemas.ts'
import { jsonText } from './json-text.ts'

/** Where the schemas of the execution contract live, from the root of the repository. */
export const EXECUTION_SCHEMAS = 'schemas/execution'
/** Where those of the remote protocol live. */
export const REMOTE_SCHEMAS = 'schemas/remote-v1'

/**
 * The files of `schemas/execution` by name. One shape per file, and a shape names another by a relative `$ref`
 * (`"Usage.json"`): so a change shows as a change of one file, and not of every file that uses the shape. Who wants
 * all of it in one file takes `openapi.json`.
 */
export function executionSchemaFiles(): Map<string, string> {
  const files = new Map<string, string>()
  for (const [name, schema] of Object.entries(allSchemas((shape) => `${shape}.json`))) {
    const file = { $schema: 'https://json-schema.org/draft/2020-12/schema', title: name, ...schema }
    files.set(`${name}.json`, jsonText(file))
  }
  files.set('openapi.json', jsonText(buildOpenApi()))
  return files
}

/** The files of `schemas/remote-v1` by name: one document for each kind of frame, whole in itself. */
export function remoteSchemaFiles(): Map<string, string> {
  const documents = Object.entries({ ...remoteRequestSchemas(), ...remoteResponseSchemas() })
  return new Map(documents.map(([name, schema]) => [`${name}.schema.json`, jsonText(schema)]))
}

/** Every folder of generated schemas, with what it holds. */
export const schemaFolders = (): Map<string, Map<string, string>> =>
  new Map([
    [EXECUTION_SCHEMAS, executionSchemaFiles()],
    [REMOTE_SCHEMAS, remoteSchemaFiles()],
  ])
