import { binaryMessage, decodeText, readBytes } from '../host/tools/text-file.ts'
import type { ToolResultOf } from '../host/tools/tool-output.ts'
import type { WorkspacePath } from '../host/tools/workspace-path.ts'
import { err, ok } from '../protocol/result.ts'

/**
 * The content of a file as it is attached: text as it is, a picture as the `data:` URL that models are shown a picture
 * from. Any other binary file is refused.
 */
export async function readAttachment(root: string, at: WorkspacePath): Promise<ToolResultOf<string>> {
  const read = await readBytes(root, at)
  if (!read.ok) return read
  const { bytes } = read.value
  const mediaType = pictureType(bytes)
  if (mediaType !== undefined) {
    return ok(`data:${mediaType};base64,${Buffer.from(bytes).toString('base64')}`)
  }
  const text = decodeText(bytes)
  return text === undefined ? err({ message: binaryMessage(at.relative) }) : ok(text)
}

/** What a picture says of itself in its first bytes; its name may say anything. */
function pictureType(bytes: Uint8Array): string | undefined {
  const start = Buffer.from(bytes.subarray(0, 12)).toString('latin1')
  if (start.startsWith('\x89PNG\r\n\x1a\n')) return 'image/png'
  if (start.startsWith('\xff\xd8\xff')) return 'image/jpeg'
  if (/^GIF8[79]a/.test(start)) return 'image/gif'
  if (start.startsWith('RIFF') && start.slice(8) === 'WEBP') return 'image/webp'
  return undefined
}
