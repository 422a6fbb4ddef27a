import { describe, expect, test } from 'vitest'
import { makePrivacyGuard } from '../../../../src/core/privacy/guard.ts'
import { makeCall, makePrivacy } from '../../../support/core/builders.ts'

const guard = makePrivacyGuard(
  makePrivacy({ restricted_paths: ['**/.env', '**/.env.*', '*.pem', 'geheim-ü/**'] }),
  [],
  '/home/u/code',
)

const pathIn = (result: string, name = 'a_tool', args: Record<string, unknown> = {}) =>
  guard.constraintOfCall(makeCall({ name, arguments: args }, result))?.path ?? null

describe('[U37] a result attributes text to a constrained file', () => {
  test.each([
    '.env:1:KEY=1',
    'src/a.ts:1:x\napp/.env:KEY=1',
    'app/.env-3-KEY=1',
    'HEAD:.env:1:KEY=1',
    'C:\\x\\.env:3:KEY=1',
    '.env\0KEY=1',
    '\u001b[35m.env\u001b[m\u001b[36m:\u001b[m1:KEY=1',
    '.env\n1:KEY=1',
    '::::::::::::::\n.env\n::::::::::::::\nKEY=1',
    'diff --git a/.env b/.env\n--- a/.env\n+++ b/.env\n@@\n-x',
    'diff -r a/.env b/.env\n1c1\n< K',
    'Index: .env\n=====\n--- .env (r1)\n+++ .env',
    '*** Update File: .env\n@@\n-K',
    'diff --git "a/geheim-\\303\\274/x" "b/geheim-\\303\\274/x"\n@@\n+x',
    'geheim-u\u0308/x:1:k',
    '==> .env <==\nKEY=1',
    '### File: `.env`\n```\nKEY=1',
    'File: .env\n  1 KEY=1',
    '│ File: .env\n│ KEY=1',
    '// .env\nKEY=1',
    '--- .env ---\nKEY=1',
    '```ini .env\nKEY=1',
    '<file path=".env">\nKEY=1</file>',
    '<document><source>.env</source><document_content>K',
    '{"path":".env","content":"KEY=1"}',
    '{"path":".env","content":"KEY=1, and cut off he',
    '[{"file":"a","text":"x"},{"file":"/home/u/code/.env","lines":["KEY"]}]',
    '{"results":[{"filePath":".env","matches":[{"line":3,"text":"KEY"}]}]}',
    '{"type":"match","data":{"path":{"text":".env"},"lines":{"text":"K"}}}\n{"type":"end"}',
    '{"uri":"file:///home/u/code/.env","body":"KEY"}',
    '{"path":"geheim-\\u00fc/x","text":"k"}',
    '{"files":{".env":"KEY=1"}}',
    '{"stdout":".env:1:KEY=1\\n"}',
    '[{"type":"text","text":"{\\"path\\":\\".env\\",\\"text\\":\\"KEY\\"}"}]',
  ])('%j', (result) => {
    expect(pathIn(result)).not.toBeNull()
  })

  test('a name in it may be meant from the folder where the call worked', () => {
    const config = makePrivacyGuard(makePrivacy({ restricted_paths: ['config/prod.txt'] }), [], '/code')
    const call = (args: Record<string, unknown>) =>
      config.constraintOfCall(makeCall({ name: 'shell', arguments: args }, 'prod.txt:1:KEY'))?.path ?? null
    expect(call({ command: 'cd config && grep -n KEY *' })).toBe('config/prod.txt')
    expect(call({ command: 'grep -n KEY *' })).toBeNull()
  })
})

describe('[U37] names alone attribute nothing', () => {
  test.each([
    '.env\nsrc\npackage.json',
    '.:\n.env\nsrc',
    '-rw-r--r-- 1 u u 12 Jan 1 .env',
    '?? .env\n M src/a.ts',
    'modified:   .env',
    ' .env | 2 +-',
    '├── .env\n├── src',
    '- .env\n- src',
    '["src/a.ts",".env"]',
    '{"files":[".env","a"],"count":2}',
    '{"entries":[{"name":".env","type":"file","size":3}]}',
    '{"path":"src/a.ts","content":"load(.env)"}',
    'src/a.ts:3:import ".env"',
    'diff --git a/src/a.ts b/src/a.ts\n--- a/src/a.ts\n+++ b/src/a.ts\n@@\n+see .env for keys',
    'a sentence that mentions .env and such',
    'cat: .env: No such file or directory',
    'wrote 12 lines to .env',
    '## .env\nCopy the example and fill it in.',
    '# .env files\n.env\n.env.local',
    'const name = item ? item.pem : null',
    'Note on .env: see below',
    '{"form.pem":"Certificate","ok":"OK"}',
  ])('%j', (result) => {
    expect(pathIn(result)).toBeNull()
  })

  test('what a file says of other files is text of its own', () => {
    expect(pathIn('.env:1:KEY=1', 'read_file', { path: 'README.md' })).toBeNull()
    expect(pathIn('.env:1:KEY=1', 'shell', { command: 'grep -rn KEY README.md' })).toBe('.env')
  })
})

test('[U37] a name with blanks in a folder is told before a text, with the number of its line or without', () => {
  const guard = makePrivacyGuard(makePrivacy({ restricted_paths: ['docs/**'] }), [], '/w')
  for (const line of ['docs/read me.md:KEY=1', 'docs/read me.md:12:KEY=1'])
    expect(guard.constraintOfCall(makeCall({ name: 'shell', arguments: {} }, line))).not.toBeNull()
})

test('[D17] a result of millions of characters is read to its end', () => {
  const noise = 'src/file.ts:12:some text with a .pem in it\n'.repeat(50_000)
  expect(pathIn(noise)).toBeNull()
  expect(pathIn(`${noise}certs/a.pem:1:KEY`)).toBe('certs/a.pem')
})
