/** The tutorial of docs/discovery.md: its commands, one after the other. */
import { spawn } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { delimiter, join } from 'node:path'
import { env as environment, execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { main, watchProgram } from '../support/cli.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'

const root = fileURLToPath(new URL('../../', import.meta.url))
const [, tutorial = ''] = readFileSync(join(root, 'docs/discovery.md'), 'utf8').split(
  '\n## Discovery in five commands\n',
)
const [section = ''] = tutorial.split('\n## ')
const commands = [...section.matchAll(/^```sh\n(.*?)\n```$/gms)].map(([, command]) => command as string)

/** Runs lines as people do, with the program installed, and a trust store of their own. */
function shell(t: Test) {
  const folder = temporaryFolder(t)
  const bin = join(folder, 'bin')
  mkdirSync(bin)
  const program = join(bin, 'mcp-bridge')
  writeFileSync(program, `#!/bin/sh\nexec ${execPath} ${main} "$@"\n`)
  chmodSync(program, 0o755)
  const env = { ...environment, PATH: `${bin}${delimiter}${environment['PATH']}`, XDG_CONFIG_HOME: folder }
  const start = (line: string) => watchProgram(t, spawn('sh', ['-c', `exec ${line}`], { cwd: root, env }))
  const run = async (line: string) => {
    const program = start(line)
    return { code: await program.ended, stdout: program.stdout(), stderr: program.stderr() }
  }
  return { start, run }
}

/** The commands name ports, as people do. Resolves to the one that somebody else has, if there is one. */
async function taken(...ports: readonly number[]): Promise<number | undefined> {
  for (const port of ports) {
    const server = createServer()
    const free = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true))
    })
    await new Promise((resolve) => server.close(resolve))
    if (!free) return port
  }
  return undefined
}

const port = await taken(8080, 8931)
const skip = port !== undefined && `port ${port} is in use here`

t.test('the commands of the tutorial work in their order', { skip }, async (t) => {
  const [demo = '', discover = '', serve = '', call = '', approve = ''] = commands
  t.equal(commands.length, 5)
  t.equal(demo, 'npm run demo:discover')
  const { start, run } = shell(t)
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>
  }
  // What npm would start: as a child of npm it would outlive the test.
  const server = start(scripts['demo:discover'] as string)
  await until(() => server.stdout().includes('\n'), 'the demo listens')

  const found = await run(discover)
  t.equal(found.code, 0)
  t.match(found.stdout, /notes[\s\S]*modern 2026-07-28[\s\S]*quarantined[\s\S]*delete_notes/)
  t.ok(found.stdout.includes(approve), 'it shows the command that the document has')

  const bridge = start(serve)
  await until(
    () => bridge.stderr().includes('/notes/mcp') || /listens on|"listening"/.test(bridge.stderr()),
    'the bridge listens',
  )
  const refused = await run(call)
  t.equal(refused.code, 0)
  t.match(refused.stdout, /"isError":true/)
  t.ok(refused.stdout.includes(`run on the bridge's machine: ${approve}`), 'the answer has the command to paste')
  t.notMatch(server.stdout(), 'was called', 'the server has seen nothing of it')

  const approved = await run(approve)
  t.equal(approved.code, 0)
  t.match(approved.stdout, /delete_notes[\s\S]*approved until[\s\S]*The server is now trusted/)
  const allowed = await run(call)
  t.match(allowed.stdout, /All notes are gone/)
  t.match(server.stdout(), 'delete_notes was called')

  const [, revoke = ''] = /`(mcp-bridge trust revoke [^`]*)`/.exec(section) ?? []
  t.match((await run('mcp-bridge trust list')).stdout, /approved {2}notes {2}http:\/\/127\.0\.0\.1:8931\/mcp/)
  t.equal((await run(revoke)).code, 0)
  t.match((await run(call)).stdout, /"isError":true/)
})
