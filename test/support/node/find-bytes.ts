import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'

/** The files below a folder that hold this text, in UTF-8 or in UTF-16 of either byte order; sorted. */
export function filesWith(folder: string, text: string): string[] {
  const littleEndian = Buffer.from(text, 'utf16le')
  const forms = [Buffer.from(text, 'utf8'), littleEndian, Buffer.from(littleEndian).swap16()]
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name))
    .filter((file) => {
      const bytes = readFileSync(file)
      return forms.some((form) => bytes.includes(form))
    })
    .sort()
}
