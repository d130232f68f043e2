/** Ways to start a gateway in the shell of a terminal that is then closed: it ends, unless it was detached. */
import { spawn } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { env, execPath, kill } from 'node:process'
import t, { type Test } from 'tap'
import { main, watchProgram } from './support/cli.js'
import { until } from './support/eventually.js'
import { temporaryFolder } from './support/folder.js'
import { freePort } from './support/free-port.js'
import { legacyStdio } from './support/legacy-stdio.js'

const SCRIPT = '/usr/bin/script'
const BASH = '/bin/bash'
const missing = [SCRIPT, BASH, '/usr/bin/nohup', '/usr/bin/setsid'].filter((program) => !existsSync(program))
const skip = missing.length > 0 && `needs ${missing.join(', ')}`

/** Milliseconds after which a gateway without its terminal counts as detached, and some more. */
const LEFT = 7_000

/**
 * What a person writes, with the gateway in the place of `$G`; what becomes of the gateway when the terminal is closed: it
 * ends, or is detached from the start, or shows by outliving the terminal that it is.
 */
const STARTS: readonly [line: string, then: 'ends' | 'detached' | 'outlives'][] = [
  ['$G', 'ends'],
  ['$G &', 'ends'],
  ['$G >log 2>&1 &', 'ends'],
  ['nohup $G', 'detached'],
  ['nohup $G &', 'detached'],
  ['nohup $G >log 2>&1 &', 'detached'],
  ['setsid $G', 'detached'],
  ['setsid $G >log 2>&1 &', 'detached'],
  ['$G & disown', 'outlives'],
  ['$G >log 2>&1 & disown', 'outlives'],
  ['($G &)', 'outlives'],
]

/** The gateway that this line starts in a shell of a terminal. */
async function startBy(t: Test, line: string) {
  const folder = temporaryFolder(t)
  const port = await freePort()
  const path = (name: string) => join(folder, name)
  const config = { mcpServers: { a: legacyStdio(t).server }, listen: `http://127.0.0.1:${port}/mcp` }
  const write = (more: object) =>
    writeFileSync(path('config.json'), JSON.stringify({ ...config, mcpServers: { ...config.mcpServers, ...more } }))
  write({})
  writeFileSync(path('gateway'), `echo $$ >pid\nexec ${execPath} ${main} --config config.json\n`)
  // A shell without files of its own is the same on all machines.
  const shell = spawn(SCRIPT, ['--quiet', '--command', `exec ${BASH} --norc --noprofile -i`, '/dev/null'], {
    cwd: folder,
    env: { ...env, HISTFILE: '' },
  })
  const terminal = watchProgram(t, shell)
  shell.stdin.write(`echo $$ >shell\n${line.replace('$G', `${BASH} gateway`)}\n`)
  const statusAt = (name: string) =>
    fetch(`http://127.0.0.1:${port}${name}`).then(
      ({ status }) => status,
      () => undefined,
    )
  await until(async () => (await statusAt('/mcp')) !== undefined, `an answer (${terminal.stdout()})`)
  const pidIn = (name: string) => Number(readFileSync(path(name), 'utf8'))
  const bridge = pidIn('pid')
  t.teardown(() => {
    try {
      kill(bridge, 'SIGKILL')
    } catch {}
  })
  /**
   * Closes the terminal. The system first tells the shell that nothing follows, then that the terminal has closed. A shell that
   * reads in between just ends, and sends SIGHUP to none of its jobs. One that is stopped gets to know both at once.
   */
  const close = async () => {
    kill(pidIn('shell'), 'SIGSTOP')
    await until(() => stateOf(pidIn('shell')) === 'T', 'the stop of the shell')
    terminal.child.kill('SIGKILL')
    await terminal.ended
  }
  return { terminal, bridge, write, statusAt, close }
}

/** What the system says that a process does, such as "T" of one that is stopped. */
function stateOf(pid: number): string | undefined {
  return / \(.*\) (\S)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1]
}

for (const [line, then] of STARTS)
  t.test(`\`${line}\` ${then === 'ends' ? 'ends with' : 'outlives'} its terminal`, { skip }, async (t) => {
    const { bridge, write, statusAt, close } = await startBy(t, line)
    await close()
    if (then === 'ends') return until(async () => (await statusAt('/mcp')) === undefined, 'the end of the gateway')
    const closed = performance.now()
    if (then === 'outlives') await until(() => performance.now() - closed > LEFT, 'a while')
    write({ b: legacyStdio(t).server })
    kill(bridge, 'SIGHUP')
    // One that has ended gives no status.
    await until(async () => (await statusAt('/b/mcp')) !== 404, 'the server of the new configuration')
    t.equal(await statusAt('/b/mcp'), await statusAt('/a/mcp'))
    t.not(await statusAt('/a/mcp'), undefined)
  })

t.test('a gateway that was stopped (Ctrl-Z) long before ends with its terminal', { skip }, async (t) => {
  const { terminal, bridge, statusAt, close } = await startBy(t, '$G')
  terminal.child.stdin.write('\u001a')
  await until(() => stateOf(bridge) === 'T', 'the stop')
  const stopped = performance.now()
  await until(() => performance.now() - stopped > LEFT, 'a while')
  await close()
  await until(async () => (await statusAt('/mcp')) === undefined, 'the end of the gateway')
})

t.test('without a terminal from the start, SIGHUP reads the configuration again', async (t) => {
  const folder = temporaryFolder(t)
  const port = await freePort()
  const file = join(folder, 'config.json')
  const config = { mcpServers: { a: legacyStdio(t).server }, listen: `http://127.0.0.1:${port}/mcp` }
  writeFileSync(file, JSON.stringify(config))
  // As a container that runs in the background: a session of its own, and no stream that is a terminal.
  const child = spawn(execPath, [main, '--config', file], { detached: true })
  const program = watchProgram(t, child)
  await until(() => /"listening"/.test(program.stderr()), `the start (${program.stderr()})`)
  writeFileSync(file, JSON.stringify({ ...config, mcpServers: { ...config.mcpServers, b: legacyStdio(t).server } }))
  child.kill('SIGHUP')
  await until(() => fetch(`http://127.0.0.1:${port}/b/mcp`).then(({ status }) => status !== 404), 'the new server')
})
