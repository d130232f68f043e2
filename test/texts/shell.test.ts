/** Texts of strangers in commands that people paste: each is one argument, and nothing of it is run. */
import { execFileSync } from 'node:child_process'
import t from 'tap'
import { quoted, usualShell } from '../../src/base/texts/shell.js'
import { discoverCommand } from '../../src/command/announce.js'
import { callCommand } from '../../src/command/demo.js'
import { stringsIn } from '../support/powershell.js'

const HOSTILE = [
  "it's",
  "'; rm -rf $HOME; '",
  '\u2019; Remove-Item -Recurse $HOME; \u2018',
  "\u201a\u201b\u2018\u2019''\u2019",
  '"double" \u201ctypographic\u201d',
  '$(id) `id` $env:HOME ${HOME}',
  'a `n b \\n c \\',
  'two\nlines',
  '@splat',
  '-Verbose; x',
  '',
  '日本 \u{1f600}',
]

t.test('a quoted text is one argument of sh', async (t) => {
  for (const text of HOSTILE) {
    const printed = execFileSync('sh', ['-c', `printf '[%s]' ${quoted(text, 'sh')}`], { encoding: 'utf8' })
    t.equal(printed, `[${text}]`)
  }
})

t.test('a quoted text is one string of PowerShell, also with typographic quotes', async (t) => {
  for (const text of HOSTILE) t.same(stringsIn(quoted(text, 'powershell')).strings, [{ kind: 'single', text }])
  t.equal(quoted('weather', 'powershell'), 'weather')
})

t.test('commands to try are for the usual shell of the platform', async (t) => {
  t.same(['linux', 'darwin', 'win32', undefined].map(usualShell), ['sh', 'sh', 'powershell', 'sh'])
  const url = 'http://127.0.0.1:8080/mcp'
  t.match(discoverCommand(url, { platform: 'linux' }), /^curl -s http:/)
  t.match(callCommand(url, 'linux'), /^curl -s http:/)
  const socket = 'unix:/run/mcp.sock:/mcp'
  t.match(discoverCommand(socket, { platform: 'win32' }), /^curl -s --unix-socket/, 'PowerShell reaches no sockets')
  for (const command of [discoverCommand(url, { platform: 'win32', needsToken: true }), callCommand(url, 'win32')]) {
    t.match(command, /^\(Invoke-WebRequest /)
    t.match(command, /^[ -~\n]*$/)
    const { strings } = stringsIn(command)
    t.equal(strings[0]?.text, url)
    t.match(JSON.parse(strings.at(-1)?.text ?? ''), { jsonrpc: '2.0', method: String })
  }
  t.match(discoverCommand(url, { platform: 'win32', needsToken: true }), '  \'authorization\' = "Bearer $env:TOKEN"\n')
})
