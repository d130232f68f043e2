/** The program when nobody reads what it writes: neither the log nor a client that has gone holds it up. */
import { type ChildProcess, spawn } from 'node:child_process'
import { openSync } from 'node:fs'
import { execPath } from 'node:process'
import t, { type Test } from 'tap'
import { build } from './support/built.js'
import { run, says, startProgram } from './support/cli.js'
import { until } from './support/eventually.js'
import { LegacyHttp } from './support/legacy-http.js'
import { legacyStdio } from './support/legacy-stdio.js'
import { envelope } from './support/modern.js'

// From its sources it would be run by a program that makes its stderr block: esbuild, which shares it.
const main = build(t)
const CALLS = 1_000
const AT_ONCE = 100
const request = (id: number, method: string, params: object = {}) =>
  `${JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta: envelope() } })}\n`

interface Front {
  child: ChildProcess
  stdio: ReturnType<typeof legacyStdio>
  answers(): { id: number; result?: object; error?: object }[]
  write(text: string): void
  ended: Promise<number | null>
}

/** A bridge on stdio, with a descriptor of its own for its log. */
function front(t: Test, log: 'pipe' | number, plan: object = {}): Front {
  const stdio = legacyStdio(t, plan)
  const { command, args } = stdio.server
  const child = spawn(execPath, [main, '--listen', 'stdio', '--log-level', 'trace', '--', command, ...args], {
    stdio: ['pipe', 'pipe', log],
  })
  t.teardown(() => child.kill('SIGKILL'))
  let said = ''
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    said += chunk
  })
  child.stdin?.on('error', () => {})
  return {
    child,
    stdio,
    answers: () =>
      said
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line)),
    write: (text) => child.stdin?.write(text),
    ended: new Promise((resolve) => child.once('exit', resolve)),
  }
}

async function serves(t: Test, { child, stdio, answers, write, ended }: Front): Promise<void> {
  for (let asked = 0; asked < CALLS; asked += AT_ONCE) {
    for (let i = 1; i <= AT_ONCE; i++) write(request(asked + i, 'tools/call', { name: 'echo', arguments: {} }))
    await until(() => answers().length === asked + AT_ONCE, `${asked + AT_ONCE} answers`)
  }
  t.ok(answers().every(({ result }) => result !== undefined))
  child.stdin?.end()
  t.equal(await ended, 0)
  t.throws(() => process.kill(Number(stdio.pids()[0]), 0), { code: 'ESRCH' })
}

t.test(`with an unread log, ${CALLS} calls are answered, and the program exits`, async (t) => {
  const one = front(t, 'pipe')
  // Nothing is read from it, and it stays open.
  one.child.stderr?.pause()
  await serves(t, one)
})

t.test('a reader of the log that has gone does not affect calls', async (t) => {
  const one = front(t, 'pipe')
  one.child.stderr?.destroy()
  await serves(t, one)
})

t.test('with a full disk for the log, the bridge starts, answers and exits', async (t) => {
  await serves(t, front(t, openSync('/dev/full', 'w')))
})

t.test('a command prints its result although the rest cannot be read', async (t) => {
  const child = spawn(execPath, [main, 'probe', 'http://127.0.0.1:9/mcp'], {
    stdio: ['ignore', 'pipe', openSync('/dev/full', 'w')],
  })
  t.equal(await new Promise((resolve) => child.once('exit', resolve)), 1)
})

t.test('a client that closes its end of stdout ends the bridge, and the server with it', async (t) => {
  const one = front(t, 'pipe')
  let log = ''
  one.child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    log += chunk
  })
  one.write(request(1, 'tools/list'))
  await until(() => one.answers().length === 1)
  one.child.stdout?.destroy()
  // The input stays open: only what is written shows that nobody reads.
  for (let id = 2; id < 10; id++) one.write(request(id, 'tools/list'))
  t.equal(await one.ended, 0)
  t.match(log, /"event":"stdout_closed","why":".*EPIPE/)
  t.notMatch(log, /"level":[56]0/)
  t.throws(() => process.kill(Number(one.stdio.pids()[0]), 0), { code: 'ESRCH' })
})

t.test('a command whose reader has gone reports no error', async (t) => {
  const child = spawn(execPath, [main, '--help'], { stdio: ['ignore', 'pipe', 'pipe'] })
  child.stdout.destroy()
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    said += chunk
  })
  await new Promise((resolve) => child.once('close', resolve))
  t.equal(said, '')
})

t.test('requests are answered after the end of the input, by a server of either kind', async (t) => {
  const initialize = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'echo', version: '1' } },
  })
  const http = await LegacyHttp.start(t)
  const { command, args } = legacyStdio(t).server
  for (const server of [
    ['--upstream', http.url],
    ['--', command, ...args],
  ]) {
    for (const input of [
      `${initialize}\n`,
      initialize,
      request(1, 'tools/call', { name: 'wait', arguments: { ms: 300 } }),
    ]) {
      const program = startProgram(t, ['--listen', 'stdio', ...server])
      program.child.stdin.end(input)
      t.equal(await program.ended, 0)
      t.match(JSON.parse(program.stdout()), { id: 1, result: {} }, `${server[0]} ${input.slice(0, 60)}`)
    }
  }
})

t.test('a signal after the end of the input does not wait for running calls', async (t) => {
  const { command, args } = legacyStdio(t).server
  const program = startProgram(t, ['--listen', 'stdio', '--', command, ...args])
  program.child.stdin.write(request(1, 'tools/list'))
  await until(() => program.stdout().includes('\n'))
  program.child.stdin.end(request(2, 'tools/call', { name: 'wait', arguments: { ms: 600_000 } }))
  program.child.kill('SIGTERM')
  t.equal(await program.ended, 0)
})

t.test('with a JSON log, the last line is JSON, too', async (t) => {
  const cases: [args: string[], code: number, said: object][] = [
    [['--upstraem', 'x'], 2, { level: 60, event: 'command_line_invalid', why: /unknown flag --upstraem/ }],
    [
      ['--era', 'old', '-u', 'http://x/mcp'],
      78,
      { level: 60, event: 'config_invalid', issues: [{ path: '--era', message: /auto/ }] },
    ],
    [
      ['--listen', 'stdio', '--', execPath, '-e', 'console.error("no API key"); process.exit(3)'],
      1,
      {
        level: 60,
        event: 'server_unavailable',
        why: /exited with code 3/,
        stderr: ['no API key'],
        next: /terminal.*environment/,
      },
    ],
  ]
  await Promise.all(
    cases.map(async ([args, code, said]) => {
      const ended = await run(t, args)
      t.equal(ended.code, code)
      const lines = ended.stderr
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as object)
      t.match(lines.at(-1), said)
    }),
  )
})

t.test('commands for people print it in words', async (t) => {
  const ended = await run(t, ['probe'])
  t.match(ended.stderr, /^mcp-bridge: probe needs a server/)
})

t.test('the names of calls are truncated in the log and in the answer', async (t) => {
  const http = await LegacyHttp.start(t)
  const program = startProgram(t, ['--listen', 'stdio', '--upstream', http.url])
  program.child.stdin.write(request(1, `tasks/${'x'.repeat(3_900_000)}`))
  await until(() => program.stdout().includes('\n'))
  t.ok(program.stdout().length < 1_000)
  const [line] = await says(program, /^.*"event":"call".*$/m)
  t.ok(line.length < 1_000)
})
