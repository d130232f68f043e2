/** `mcp-bridge demo`: what it prints works when it is pasted, its client uses everything, and it ends when it is told to. */
import { execFile } from 'node:child_process'
import { chmodSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import process, { execPath } from 'node:process'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import type { RecordedEvent } from '../../src/inspector/recorder/events.js'
import type { CallView } from '../../src/inspector/views.js'
import { main, type Program, says, startProgram } from '../support/cli.js'
import { until } from '../support/eventually.js'
import { temporaryFile, temporaryFolder } from '../support/folder.js'
import { lastIn } from '../support/modern.js'

const hasTerminals = process.platform === 'linux' && existsSync('/usr/bin/script')
const noTerminal = !hasTerminals && 'there is no script(1) of util-linux, which makes a terminal'
const LISTEN = ['--listen', 'http://127.0.0.1:0/mcp']

/** Starts the demo, and gives what it prints. */
async function start(t: Test) {
  const program = startProgram(t, ['demo', ...LISTEN])
  const [, address = ''] = await says(program, /^Inspector: (http\S+)$/m)
  await says(program, /Ctrl-C ends the demo/)
  t.match(program.stderr(), /^Starting a legacy and a modern server/, 'it says at once what it is doing')
  return { program, inspector: inspectorAt(address), commands: commandsOf(program) }
}

/** The commands that a text says to try, to the letter. */
function commandsOf({ stderr }: Pick<Program, 'stderr'>): string[] {
  return [...stderr().matchAll(/^ {2}(curl (?:.*\\\n)*.*)$/gm)].map(([, command = '']) => command)
}

function inspectorAt(address: string) {
  const { hash, origin } = new URL(address)
  const headers = { authorization: `Bearer ${hash.slice(1)}` }
  const get = async <T>(path: string) => (await (await fetch(`${origin}/inspect/${path}`, { headers })).json()) as T
  return {
    calls: async (filter = '') =>
      (await get<{ calls: CallView[] }>(`calls?filter=${encodeURIComponent(filter)}`)).calls,
    call: (id: string) => get<CallView>(`calls/${id}`),
  }
}

const paste = async (command: string) => (await promisify(execFile)('sh', ['-c', command])).stdout

type Message = RecordedEvent & { kind: 'message' }
const sameIds = (text: string) => text.replace(/"id":\d+/g, '"id":1')
/** The messages of a call on one wire. */
const textsOn = ({ events }: CallView, hop: Message['hop']) =>
  events
    .filter((seen): seen is Message => seen.kind === 'message' && seen.hop === hop)
    .map(({ payload }) => payload?.text ?? '')

t.test('the printed commands call a tool, and discover the server', async (t) => {
  const { commands, inspector } = await start(t)
  const [call = '', discover = '', ...more] = commands
  t.same(more, [])
  t.match(lastIn(await paste(call)), { result: { content: [{ text: 'Oslo: 3 °C, snow' }] } })
  t.match(lastIn(await paste(discover)), { result: { supportedVersions: ['2026-07-28'] } })

  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')
  const atUsualPort = (command: string) => command.replace(/127\.0\.0\.1:\d+/, '127.0.0.1:8080')
  for (const command of commands) t.ok(readme.includes(`\n${atUsualPort(command)}\n`), `README.md has ${command}`)

  const calls = await Promise.all(
    (await inspector.calls('tool:legacy__weather status:ok')).map(({ id }) => inspector.call(id)),
  )
  // The client of the demo says its name.
  const byHand = calls.filter((one) => !textsOn(one, 'client')[0]?.includes('demo-client'))
  t.equal(byHand.length, 1)
  for (const text of byHand.flatMap((one) => [...textsOn(one, 'client'), ...textsOn(one, 'server')]))
    t.ok(sameIds(readme).includes(sameIds(text)), `README.md shows ${text}`)
})

t.test('its greeting says how to watch the calls; a log for programs has no token', async (t) => {
  const { program } = await start(t)
  const [, address = ''] = /^Inspector: (http\S+)$/m.exec(program.stderr()) ?? []
  t.ok(program.stderr().includes(`  in a browser:  ${address}\n`))
  t.match(program.stderr(), / {2}in a terminal: node \S*main\.js tail 'http:\S+#\S+'\n/)
  const logged = startProgram(t, ['demo', ...LISTEN, '--log-format', 'json'])
  await says(logged, /Ctrl-C ends the demo/)
  t.notMatch(logged.stderr(), /inspect#/)
  t.match(
    logged.stderr(),
    / Its inspector is at http:\S+\/inspect, with a token that only --log-format pretty shows\.$/m,
  )
  const onSocket = startProgram(t, ['demo', ...LISTEN, '--admin', `unix:${join(temporaryFolder(t), 'a.sock')}`])
  await says(onSocket, /Ctrl-C ends the demo/)
  t.match(onSocket.stderr(), /See both sides of each call,\n {2}in a terminal: node \S*main\.js tail 'unix:\S+#\S+'\n/)
})

t.test('its client sees every outcome and progress, and answers a question', async (t) => {
  const { inspector } = await start(t)
  const ended = (filter: string) =>
    until(async () => (await inspector.calls(filter)).some(({ status }) => status !== 'open'), filter)
  await ended('tool:legacy__weather status:ok era:modern>legacy')
  await ended('tool:legacy__weather status:tool_error')
  await ended('tool:legacy__sell_table status:error')
  await ended('tool:legacy__book_table status:ok')
  const [asked] = await inspector.calls('tool:legacy__book_table status:ok')
  t.equal(asked?.rounds, 1, 'the question and its answer are one call')
  await ended('tool:modern__find_train status:ok era:modern>modern')
  await ended('tool:modern__buy_ticket status:ok')
  const [bought] = await inspector.calls('tool:modern__buy_ticket status:ok')
  t.equal(bought?.rounds, 1, 'a question of the modern server, too')
  await ended('tool:legacy__open_safe')
  const [opened] = await inspector.calls('tool:legacy__open_safe')
  const safe = textsOn(await inspector.call(opened?.id ?? ''), 'server')
  t.match(
    safe[0],
    /"safe":"small","combination":"‹hidden›"/,
    'the client has listed the tools, so their schemas are known',
  )
  const [report] = await inspector.calls('tool:legacy__write_report')
  const progress = (await inspector.call(report?.id ?? '')).events.filter(
    (seen) => seen.kind === 'message' && seen.method === 'notifications/progress',
  )
  t.equal(progress.length, 8, 'four on each wire')
})

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  t.test(`${signal} ends it with all of its processes, even while a question is open`, async (t) => {
    const { program, inspector } = await start(t)
    await until(
      async () => (await inspector.calls('tool:legacy__book_table status:asks')).length > 0,
      'a question waits',
    )
    program.child.kill(signal)
    t.equal(await program.ended, 0)
    const { stdout } = await promisify(execFile)('ps', ['-eo', 'ppid,args'])
    t.notOk(stdout.split('\n').some((line) => line.trim().startsWith(`${program.child.pid} `)))
    t.notMatch(program.stderr(), /error|fail/i)
  })

t.test('each of its servers works alone on stdio: a legacy and a modern one', async (t) => {
  const probed = startProgram(t, ['probe', '--', execPath, main, 'demo', 'server'])
  t.equal(await probed.ended, 0, probed.stderr())
  t.match(probed.stdout(), /legacy 2025-11-25 over stdio.*weather.*book_table/s)
  const other = startProgram(t, ['probe', '--', execPath, main, 'demo', 'modern-server'])
  t.equal(await other.ended, 0, other.stderr())
  t.match(other.stdout(), /modern 2026-07-28 over stdio.*find_train.*buy_ticket/s)
  const wrong = startProgram(t, ['demo', 'serve'])
  t.equal(await wrong.ended, 2)
  t.match(wrong.stderr(), /demo takes nothing, "server" or "modern-server", not "serve"/)
})

t.test(
  'on a terminal it opens the inspector in a browser, and runs on if there is none',
  { skip: noTerminal },
  async (t) => {
    const opened = join(temporaryFolder(t), 'opened')
    const browser = temporaryFile(t, 'browser', `#!/bin/sh\necho "$1" > ${opened}\nexit 1\n`)
    chmodSync(browser, 0o755)
    const onTerminal = async (BROWSER: string) => {
      const command = [execPath, main, 'demo', ...LISTEN].join(' ')
      const program = startProgram(t, ['-qec', command, '/dev/null'], { BROWSER }, ['script'])
      await until(() => /Ctrl-C ends the demo/.test(program.stdout()), 'the demo has started')
      return /^Inspector: (http\S+)/m.exec(program.stdout())?.[1] ?? ''
    }
    const address = await onTerminal(browser)
    await until(() => existsSync(opened) && readFileSync(opened, 'utf8').endsWith('\n'), 'the browser was started')
    t.equal(readFileSync(opened, 'utf8'), `${address}\n`)

    const other = await onTerminal('/no/such/browser')
    const { calls } = inspectorAt(other)
    const count = (await calls()).length
    await until(async () => (await calls()).length > count + 1, 'calls go on')
  },
)
