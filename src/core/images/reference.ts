/**
 * How a prompt refers to an uploaded picture. The handle is drawn anew for each upload, so that it belongs to one session
 * and one device; whoever has it can do nothing with it elsewhere.
 */
export const promptReference = (handle: string): string => `![image](switchyard-image:${handle})`

const REFERENCE = /!\[image\]\(switchyard-image:([0-9a-f-]{36})\)/g
/** What would be a reference, whether it is spelled as one of ours or not. */
const ANY_REFERENCE = /\]\(\s{0,8}<?switchyard-image:/gi
/** A picture of the host's own files. */
const HOST_FILE = /!\[[^\]\n]{0,200}\]\(\s{0,8}<?file:/i

/** Any text that refers to a picture has this. */
const SCHEME = 'switchyard-image:'

/** The handles of the pictures that a text refers to, each once, in their order. */
export function imageHandles(text: string): string[] {
  if (!text.includes(SCHEME)) return []
  return [...new Set([...text.matchAll(REFERENCE)].flatMap(([, handle]) => handle ?? []))]
}

/** Whether a text refers to a picture in a way that no upload has: another spelling, or a file of the host. */
export const hasForeignReference = (text: string): boolean =>
  HOST_FILE.test(text) || [...text.matchAll(ANY_REFERENCE)].length !== [...text.matchAll(REFERENCE)].length
