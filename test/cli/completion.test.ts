/** Completion in shells, and the manual page: both are made of the tables of commands and flags, as the help is. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { execPath } from 'node:process'
import t, { type Test } from 'tap'
import { manPage } from '../../.ci/man-page.js'
import { COMMAND_NAMES, EVERYWHERE, rowOf } from '../../src/command/commands.js'
import { completionFor } from '../../src/command/completion.js'
import { FLAGS } from '../../src/command/flags.js'
import { parseCommand } from '../../src/command/parse.js'
import { type CompletedShell, SHELLS } from '../../src/command/shells.js'
import { main, run } from '../support/cli.js'
import { temporaryFile, temporaryFolder } from '../support/folder.js'

/** What is typed, and what is offered. */
const CASES: readonly [typed: string[], offered: string[]][] = [
  [['pro'], ['probe']],
  [
    ['trust', ''],
    ['list', 'approve', 'revoke', 'pin', 'unpin', 'key'],
  ],
  [
    ['trust', 'key', ''],
    ['add', 'remove'],
  ],
  [['--log-level', 'debug', 'auth', ''], ['status']],
  [['completion', ''], [...SHELLS]],
  [
    ['--era', ''],
    ['auto', 'legacy', 'modern'],
  ],
  [['probe', '--jso'], ['--json']],
  [['trust', 'approve', '--too'], ['--tools']],
  [['check', '--recor'], []],
  [['--recor'], ['--record']],
  [['--', 'pro'], []],
]

/** What zsh knows of all commands: it takes half a second to find out. */
const ZSH_KNOWS = join(temporaryFolder(t), 'compdump')

/** Programs that tell what a shell offers for words, the last of which is not finished. */
const OFFERS: Partial<
  Record<CompletedShell, (script: string, words: readonly string[]) => [program: string, ...args: string[]]>
> = {
  bash: (script, words) => [
    'bash',
    ...[
      '--norc',
      '-c',
      'source "$0"; COMP_WORDS=(mcp-bridge "$@"); COMP_CWORD=$#; _mcp_bridge; printf "%s\\n" "${COMPREPLY[@]}"',
    ],
    ...[script, ...words],
  ],
  zsh: (script, words) => [
    'zsh',
    '-f',
    '-c',
    `autoload -U compinit; compinit -C -d ${ZSH_KNOWS}; source "$0"; _describe() { print -l -- "\${(@P)2}" }; _files() { }
     words=(mcp-bridge "$@"); CURRENT=$#words; _mcp_bridge | cut -d: -f1 | while read -r one; do [[ $one == $words[-1]* ]] && print -r -- $one; done; true`,
    ...[script, ...words],
  ],
  fish: (script, words) => [
    'fish',
    '--no-config',
    '-c',
    `source ${script}; complete -C 'mcp-bridge ${words.join(' ')}'`,
  ],
}

function offered(t: Test, shell: CompletedShell, words: readonly string[]): string[] | undefined {
  const script = temporaryFile(t, 'script', completionFor(shell))
  const [program, ...args] = OFFERS[shell]?.(script, words) ?? ['']
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: 'utf8' })
  if (error) return undefined
  t.equal(status, 0, stderr)
  t.equal(stderr, '')
  // Where nothing is offered, fish offers files.
  return stdout.split('\n').flatMap((line) => (/^[\w-]/.test(line) ? [(line.split('\t')[0] ?? '').trim()] : []))
}

for (const shell of ['bash', 'zsh', 'fish'] as const)
  t.test(`${shell} completes commands, their flags and values, and nothing of a program after --`, async (t) => {
    for (const [words, expected] of CASES) {
      const found = offered(t, shell, words)
      if (found === undefined) return t.comment(`${shell} is not on this machine`)
      if (shell === 'fish' && expected.length === 0)
        t.notOk(found.some((word) => word === 'probe' || word === '--record'))
      else t.same(found.toSorted(), expected.toSorted(), words.join(' '))
    }
  })

t.test('the scripts have all commands and flags', async (t) => {
  for (const shell of SHELLS) {
    const script = completionFor(shell)
    for (const name of COMMAND_NAMES)
      for (const word of name.split(' ')) t.ok(script.includes(word), `${shell} ${word}`)
    for (const flag of Object.keys(FLAGS)) t.ok(script.includes(flag), `${shell} --${flag}`)
  }
  t.throws(() => parseCommand(['completion', 'tcsh'], {}), {
    message: /one of bash, zsh, fish, powershell, not "tcsh"/,
  })
})

t.test('the program prints the script', async (t) => {
  const { code, stdout } = await run(t, ['completion', 'bash'])
  t.equal(code, 0)
  t.equal(stdout, completionFor('bash'))
})

t.test('the manual page has all commands and flags, and no line that roff would take for a request', async (t) => {
  const page = manPage('1.2.3')
  const plain = page.replaceAll('\\-', '-')
  for (const name of COMMAND_NAMES) {
    t.ok(plain.includes(`\n.SS ${name}\n`), name)
    for (const flag of [...rowOf(name).flags, ...EVERYWHERE])
      t.match(plain, new RegExp(`^\\.B (?:-\\w, )?--${flag}\\b`, 'm'))
  }
  const known = /^\.(?:TH|SH|SS|TP|PP|B|br|nf|fi|RS|RE)\b/
  for (const line of page.split('\n').filter((one) => /^[.']/.test(one))) t.match(line, known)
  const { stdout, stderr, error } = spawnSync('groff', ['-man', '-ww', '-Tutf8', '-Kutf8'], {
    input: page,
    encoding: 'utf8',
  })
  if (error) return t.comment('groff is not on this machine')
  t.equal(stderr, '')
  t.match(stdout, /mcp-bridge 1\.2\.3/)
})

t.test('a word that is no command starts no program of that name', async (t) => {
  for (const words of [['man'], ['sh', '-c', 'echo ran'], [execPath, main]]) {
    const { code, stdout, stderr } = await run(t, words)
    t.equal(code, 2)
    t.equal(stdout, '')
    t.match(stderr, /unknown command .*(?:before a program write|did you mean)/)
  }
})
