/** The program in a terminal that is closed. */
import { spawn } from 'node:child_process'
import { accessSync, constants, readFileSync, writeFileSync } from 'node:fs'
import { execPath, kill } from 'node:process'
import t, { type Test } from 'tap'
import { main, watchProgram } from './support/cli.js'
import { until } from './support/eventually.js'
import { temporaryFile } from './support/folder.js'
import { legacyStdio } from './support/legacy-stdio.js'

const SCRIPT = '/usr/bin/script'
const skip = hasScript() ? false : `needs ${SCRIPT} of util-linux`

/** A gateway with a configuration file, in a terminal of its own. `words` go before its command. */
async function inTerminal(t: Test, words = '') {
  const config = { mcpServers: { a: legacyStdio(t).server }, listen: 'http://127.0.0.1:0/mcp' }
  const file = temporaryFile(t, 'config.json', config)
  const pid = temporaryFile(t, 'pid', '')
  const command = `exec ${words} sh -c 'echo $$ >${pid}; exec ${execPath} ${main} --config ${file}'`
  const terminal = watchProgram(t, spawn(SCRIPT, ['--quiet', '--command', command, '/dev/null']))
  await until(() => /http:\/\/[\d.]+:\d+/.test(terminal.stdout()), `the address (${terminal.stdout()})`)
  const [origin = ''] = /http:\/\/[\d.]+:\d+/.exec(terminal.stdout()) ?? []
  const bridge = Number(readFileSync(pid, 'utf8'))
  t.teardown(() => {
    try {
      kill(bridge, 'SIGKILL')
    } catch {}
  })
  const answers = () =>
    fetch(`${origin}/mcp`).then(
      () => true,
      () => false,
    )
  const write = (more: object) =>
    writeFileSync(file, JSON.stringify({ ...config, mcpServers: { ...config.mcpServers, ...more } }))
  return { terminal, bridge, origin, answers, write }
}

t.test('a gateway with a configuration file ends with its terminal', { skip }, async (t) => {
  const { terminal, answers } = await inTerminal(t)
  t.ok(await answers())
  terminal.child.kill('SIGKILL')
  await until(async () => !(await answers()), 'the end of the bridge')
})

t.test('SIGHUP reads the configuration again while the terminal is open', { skip }, async (t) => {
  const { terminal, bridge, answers } = await inTerminal(t)
  kill(bridge, 'SIGHUP')
  await until(() => /configuration changed/.test(terminal.stdout()), `the reload (${terminal.stdout()})`)
  t.ok(await answers())
})

t.test('a gateway that was detached from its terminal outlives it', { skip }, async (t) => {
  const { terminal, bridge, origin, write } = await inTerminal(t, 'setsid --wait')
  terminal.child.kill('SIGKILL')
  await terminal.ended
  write({ b: legacyStdio(t).server })
  kill(bridge, 'SIGHUP')
  await until(async () => (await fetch(`${origin}/b/mcp`)).status !== 404, 'the server of the new configuration')
})

function hasScript(): boolean {
  try {
    accessSync(SCRIPT, constants.X_OK)
    return true
  } catch {
    return false
  }
}
