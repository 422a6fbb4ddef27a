/**
 * The members of a JSON object of which the end may be missing, as far as they can be read: those with texts, numbers and
 * whole arrays or objects. A text that is cut counts with what is there.
 */
export function jsonMembers(head: string): Record<string, unknown> {
  const whole = parsed(head)
  if (whole !== undefined) return typeof whole === 'object' && whole !== null ? { ...whole } : {}
  const members: Record<string, unknown> = {}
  let at = skipSpace(head, 0)
  if (head[at] !== '{') return members
  for (at = skipSpace(head, at + 1); head[at] === '"'; at = skipSpace(head, at + 1)) {
    const keyEnd = stringEnd(head, at)
    const key = keyEnd === null ? undefined : parsed(head.slice(at, keyEnd))
    if (keyEnd === null || typeof key !== 'string') break
    const colon = skipSpace(head, keyEnd)
    if (head[colon] !== ':') break
    const start = skipSpace(head, colon + 1)
    const end = valueEnd(head, start)
    if (end === null) {
      if (head[start] === '"') members[key] = cutString(head.slice(start))
      break
    }
    members[key] = parsed(head.slice(start, end))
    at = skipSpace(head, end)
    if (head[at] !== ',') break
  }
  return members
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

function skipSpace(json: string, from: number): number {
  let at = from
  while (at < json.length && ' \n\r\t'.includes(json.charAt(at))) at++
  return at
}

/** Behind the closing quote of the string that begins here; null where it is missing. */
function stringEnd(json: string, from: number): number | null {
  for (let at = from + 1; at < json.length; at++) {
    if (json[at] === '\\') at++
    else if (json[at] === '"') return at + 1
  }
  return null
}

/** Behind the value that begins here; null where its end is missing. */
function valueEnd(json: string, from: number): number | null {
  if (json[from] === '"') return stringEnd(json, from)
  let depth = 0
  for (let at = from; at < json.length; at++) {
    const char = json.charAt(at)
    if (char === '"') {
      const end = stringEnd(json, at)
      if (end === null) return null
      at = end - 1
    } else if (char === '{' || char === '[') depth++
    else if (char === '}' || char === ']') {
      if (depth === 0) return at
      depth--
      if (depth === 0) return at + 1
    } else if (char === ',' && depth === 0) return at
  }
  return null
}

/** What there is of a string without an end: an escape that was cut in two is left out. */
function cutString(json: string): string {
  for (let end = json.length; end > Math.max(1, json.length - 6); end--) {
    const text = parsed(`${json.slice(0, end)}"`)
    if (typeof text === 'string') return text
  }
  return ''
}
