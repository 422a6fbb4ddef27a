import { describe, expect, test } from 'vitest'
import { DEFAULT_RESTRICTED_PATHS } from '../../../../src/cli/policy.ts'
import { makePrivacyGuard } from '../../../../src/core/privacy/guard.ts'
import { mentionsOf } from '../../../../src/core/privacy/mentions.ts'
import { makeCall, makePrivacy } from '../../../support/core/builders.ts'

const guardOf = (patterns: readonly string[], root = '/home/u/code') =>
  makePrivacyGuard(makePrivacy({ restricted_paths: [...patterns] }), [], root)

const byDefault = guardOf(DEFAULT_RESTRICTED_PATHS)

const named = (args: Record<string, unknown>, guard = byDefault, name = 'a_tool') =>
  guard.constraintOfCall(makeCall({ name, arguments: args }, ''))?.pattern ?? null

describe('[U37] what a call mentions', () => {
  test.each([
    [{ path: 'a.ts' }, ['a.ts']],
    [{ edits: [{ path: 'secrets/a' }, { deep: { file: 'b' } }] }, ['secrets/a', 'b']],
    [{ files: { 'a.ts': 'text' } }, ['a.ts']],
    [{ query: 'secrets/key', content: 'x', old: '.env', new: '.env' }, []],
    [{ where: { uri: 'file:///a' }, cwd: 'lib' }, ['file:///a', 'lib']],
    [{ path: `${'./'.repeat(3000)}.env` }, ['.env']],
    [{ path: 'x'.repeat(5000) }, []],
  ])('%j', (args, expected) => {
    expect(mentionsOf({ arguments: args })).toMatchObject({ names: expected, words: [], isWhole: true })
  })

  test('every word of a command line is a name, whatever stands around it', () => {
    const { words } = mentionsOf({ arguments: { command: 'cat "secrets/key" >out.txt; head -n1 <.env' } })
    expect(words).toEqual(expect.arrayContaining(['cat', 'secrets/key', 'out.txt', 'head', '-n1', '.env']))
  })
})

describe('[U37] a command that names a constrained file is found out', () => {
  test.each([
    'cat .env',
    'cat<.env',
    'cat app/../.env',
    'cat .e"n"v',
    "cat '.e'nv",
    'cat .e\\nv',
    'cat .e\\\nnv',
    'type .e^nv',
    'cat .e`nv',
    "cat $'\\x2eenv'",
    'cat .env*',
    'cat .e?v',
    'cat .e[n]v',
    'cat [.]env',
    'cat [x.]env',
    'cat .???',
    'cat cred*',
    'cat certs/server.p*',
    'cat .e{nv,x}',
    'cat {a,b}{c,d}/../.e{x,n}{u,v}',
    'cat {x,.}env',
    'cat .en@(v|w)',
    'cat **/.env',
    'cat .e$REST',
    'a=.e; b=nv; cat $a$b',
    ['cat$', '{IFS}.env'].join(''),
    'cat $PWD/.env',
    'cat $(pwd)/.env',
    'cat `pwd`/.env',
    'cat file:///home/u/code/.env',
    'cat ~/.ssh/config',
    'cat ~u/.netrc',
    'cat $HOME/.aws/credentials',
    'cd .ssh && cat x',
    'git -C .ssh show',
    'git show HEAD:.env',
    'git show HEAD:./app/.env',
    'scp host:.ssh/id_rsa .',
    'docker run -v ./.env:/x image',
    'curl -d @.env http://localhost',
    'dd if=.env',
    'tool --file=.env',
    'tool -f.env',
    'bash -c "cat .env"',
    'sh -c \'cat .e"n"v\'',
    'python -c "print(open(\'.env\').read())"',
    'find . -name "*.env" | xargs cat',
    'find . -iname .ENV -exec cat {} +',
    'grep -r --include=".en*" KEY .',
  ])('%s', (command) => {
    expect(named({ command }, byDefault, 'shell')).not.toBeNull()
  })

  test.each([
    [{ cmd: 'cat .env' }],
    [{ script: 'cat .env' }],
    [{ command: ['bash', '-lc', 'cat .env'] }],
    [{ argv: ['cat', '--', '.env'] }],
    [{ args: ['.env'] }],
    [{ path: '.env' }],
    [{ filepath: '.env' }],
    [{ target: '.env' }],
    [{ a: { b: [{ uri: 'file:///home/u/code/.env' }] } }],
    [{ resource: 'file:///home/u/code/.env' }],
    [{ files: { '.env': 'A=1' } }],
    [{ glob: '.env*' }],
    [{ patch: '*** Begin Patch\n*** Update File: .env\n@@\n-A=1' }],
  ])('%j', (args) => {
    expect(named(args)).not.toBeNull()
  })

  test.each([
    [['config/prod.key'], { command: 'cd config && cat prod.key' }],
    [['a/b/c'], { command: 'cd a; cd b; cat c' }],
    [['config/prod.txt'], { command: 'cat prod.txt', cwd: 'config' }],
    [['config/prod.txt'], { path: 'prod.txt', root: '/home/u/code/config' }],
    [['config/prod.txt'], { command: 'find config -name prod.txt -exec cat {} +' }],
    [['secrets/**'], { command: 'grep -r x secrets' }],
    [['secrets/**'], { command: 'cat se*/key' }],
    [['my docs/**'], { command: 'cat "my docs/a"' }],
    [['my docs/**'], { command: 'cat my\\ docs/a' }],
  ])('under %j: %j', (patterns, args) => {
    expect(named(args, guardOf(patterns), 'shell')).toBe(patterns[0])
  })
})

describe('[U37] a message of a commit that is more than text is read', () => {
  test.each(['git commit -m "$(cat .env)"', 'git commit -m "`cat .env`"', 'git commit -m x && cat .env'])(
    '%s',
    (command) => {
      const guard = makePrivacyGuard(makePrivacy({ restricted_paths: ['**/.env'] }), [], '/w')
      expect(guard.constraintOfCall(makeCall({ name: 'shell', arguments: { command } }))).not.toBeNull()
    },
  )
})

describe('[U37] ordinary commands name nothing that is restricted by default', () => {
  test.each([
    'npm test',
    'npm run test:*',
    'ls src',
    'ls -la',
    'ls *.md',
    'ls test*',
    'git status',
    'git log --oneline -n 5',
    'git diff HEAD~1 -- src',
    'git commit -m "Fix key.* handling"',
    'git commit -m "Document .env handling"',
    "git commit -a -m 'Say what .env holds' && npm test",
    'git tag -m "First .env" v1',
    'jq .key package.json',
    'node -e "console.log(cfg.key)"',
    'grep -rn "t.key" src',
    'prettier --check "src/**/*.json"',
    'cargo test && ls src/*',
    'cat package.json | jq .scripts',
    'cat README* .gitignore .eslintrc*',
    'grep -rn "function.*(" src --include="*.ts"',
    'grep -n "export .* from" src/a.ts',
    'sed -i "s/foo\\s*=.*/bar/" src/a.ts',
    'find . -name "*.ts" -not -path "*/node_modules/*" | head',
    'pytest tests/test_*',
    'rm -rf dist/*',
    'curl -s "http://localhost:8787/api?x=1"',
    'for f in src/*.ts; do echo $f; done',
    "awk '{print $1}' file.txt",
    'node -e "console.log(process.argv)"',
    ['cat $', '{FILE} "$DIR"/src/'].join(''),
  ])('%s', (command) => {
    expect(named({ command }, byDefault, 'shell')).toBeNull()
  })

  test('contents that a call writes are no names', () => {
    expect(named({ path: 'a.md', content: 'cat .env\n.env:1:x' }, byDefault, 'write_file')).toBeNull()
    expect(named({ path: 'a.md', old: '.env', new: '.env*' }, byDefault, 'edit_file')).toBeNull()
    expect(named({ path: '.env', content: 'x' }, byDefault, 'write_file')).toBe('**/.env')
  })
})

test('[D17] a command with thousands of words and wildcards is read to its end', () => {
  const line = (index: number) => `int *p${index} = f${index}(a[${index}], b*c); w${index}* "x${index}";`
  const source = Array.from({ length: 2000 }, (_, index) => line(index)).join('\n')
  expect(named({ command: `cat > a.c <<EOF\n${source}\nEOF` }, byDefault, 'shell')).toBeNull()
  expect(named({ command: `cat > a.c <<EOF\n${source}\nEOF\ncat .en*` }, byDefault, 'shell')).toBe('**/.env')
})
