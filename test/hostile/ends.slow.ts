/** Ways in which a bridge ends: nothing that it has started is left. Names begin with the number of the finding. */
import { once } from 'node:events'
import { execPath } from 'node:process'
import t, { type Test } from 'tap'
import { type Program, run, says, startProgram } from '../support/cli.js'
import { until } from '../support/eventually.js'
import { temporaryFile } from '../support/folder.js'
import { modernStdio } from '../support/modern-stdio.js'
import { runs, type Unkind, unkind } from '../support/unkind.js'

const quoted = ({ command, args }: { command: string; args: string[] }) =>
  `stdio:${[command, ...args].map((word) => `'${word}'`).join(' ')}`

/** A program that ignores the end of its input, does not answer the probe, and has started something that ignores SIGTERM. */
const HOSTILE = { discover: 'silent', deaf: true, grandchild: true }
const HTTP = ['--listen', 'http://127.0.0.1:0/mcp', '--upstream']

/** Starts the bridge, and waits until its program is asked what it speaks. */
async function asking(t: Test, stdio: Unkind, args: readonly string[]): Promise<Program> {
  const program = startProgram(t, [...args, quoted(stdio.server)])
  await until(() => stdio.messages().length > 0 && stdio.grandchildren().length === 1, `the probe ${program.stderr()}`)
  return program
}

async function nothingIsLeft(t: Test, stdio: Unkind): Promise<void> {
  const all = [...stdio.pids().map(Number), ...stdio.grandchildren()]
  t.ok(all.length >= 2)
  await until(() => !all.some(runs), `the end of ${all.filter(runs).join(', ')}`)
}

const endings: [name: string, args: readonly string[], end: (program: Program) => void][] = [
  ['Ctrl-C in probe', ['probe'], ({ child }) => child.kill('SIGINT')],
  ['SIGTERM in probe', ['probe'], ({ child }) => child.kill('SIGTERM')],
  ['SIGTERM at the start', HTTP, ({ child }) => child.kill('SIGTERM')],
  ['Ctrl-C at the start', HTTP, ({ child }) => child.kill('SIGINT')],
  ['the end of the input at the start', ['--listen', 'stdio', '--upstream'], ({ child }) => child.stdin.end()],
  ['SIGKILL', HTTP, ({ child }) => child.kill('SIGKILL')],
  ['SIGKILL in probe', ['probe'], ({ child }) => child.kill('SIGKILL')],
]

for (const [name, args, end] of endings) {
  t.test(`${name} leaves nothing of a program that has not answered yet`, async (t) => {
    const stdio = unkind(t, HOSTILE)
    const program = await asking(t, stdio, args)
    const ended = once(program.child, 'exit')
    end(program)
    await ended
    await nothingIsLeft(t, stdio)
  })
}

t.test(
  'all processes of a program end with the bridge, also if the program ends first and they hold its pipes',
  async (t) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      const stdio = unkind(t, { grandchild: true })
      const program = startProgram(t, [...HTTP, quoted(stdio.server)])
      await says(program, /"event":"server_ready"/)
      await until(() => stdio.grandchildren().length === 1)
      program.child.kill(signal)
      t.equal(await program.ended, 0)
      await nothingIsLeft(t, stdio)
    }
  },
)

t.test('a killed bridge leaves nothing of a working program', async (t) => {
  const stdio = unkind(t, { deaf: true, grandchild: true })
  const program = startProgram(t, [...HTTP, quoted(stdio.server)])
  await says(program, /"event":"server_ready"/)
  await until(() => stdio.grandchildren().length === 1)
  program.child.kill('SIGKILL')
  await nothingIsLeft(t, stdio)
})

t.test('a modern program that starts slowly does not end the bridge', async (t) => {
  const modern = modernStdio(t, { slowStart: 3_000 })
  const settings = { mcpServers: { slow: modern.server }, timeouts: { probe: 500 } }
  const config = temporaryFile(t, 'config.json', settings)
  const program = startProgram(t, ['--config', config, '--listen', 'http://127.0.0.1:0/mcp'])
  await says(program, /"event":"server_ready".*"era":"modern"/)
  t.equal(modern.pids().length, 1)
})

t.test('reports why a program died first, and does not truncate it after later output', async (t) => {
  const missing = await run(t, [...HTTP, `stdio:${execPath} /nonexistent/server.js`])
  t.equal(missing.code, 1)
  t.match(missing.stderr, /"stderr":\["Error[^"]*: Cannot find module '\/nonexistent\/server\.js'/)
  t.match(missing.stderr, /Node\.js v\d+/, 'the last lines are there')

  const traceback = ['Traceback (most recent call last):']
  for (let n = 0; n < 60; n++) traceback.push(`  File "server.py", line ${n}, in frame_${n}`, '    call()')
  traceback.push('ValueError: API_KEY has to be set', '', 'cleaning up', 'bye', '')
  const stdio = unkind(t, { preamble: traceback.join('\n') })
  const served = await run(t, [...HTTP, quoted(stdio.server)])
  t.match(served.stderr, /"stderr":\["ValueError: API_KEY has to be set","Traceback/)
  t.match(served.stderr, /lines left out/)
  t.notMatch(served.stderr, /frame_30\b/)

  const probed = await run(t, ['probe', quoted(stdio.server)])
  t.equal(probed.code, 1)
  t.match(probed.stderr, /Probable reason: ValueError: API_KEY has to be set/)
  t.match(probed.stderr, /frame_30\b/)
})

t.test('probe prints its verdict although it cannot list the tools', async (t) => {
  for (const tools of ['error', 'broken']) {
    const stdio = unkind(t, { tools })
    const words = await run(t, ['probe', quoted(stdio.server)])
    t.equal(words.code, 0, tools)
    t.match(words.stdout, /speaks +legacy 2025-11-25 over stdio[\s\S]*tools +could not be listed: /)
    const json = await run(t, ['probe', '--json', quoted(stdio.server)])
    const said = JSON.parse(json.stdout) as Record<string, unknown>
    t.match(said, { era: 'legacy', server: { name: 'unkind' }, tools: [], toolsError: /tools\/list/ })
  }
})
