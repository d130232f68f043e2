/** A program that does not start says why on stderr: operators read it wherever the server is named unavailable. */
import t from 'tap'
import { adviceOn, whyInLine } from '../../src/servers/advice.js'
import { openingFault } from '../../src/servers/failure.js'
import { ChannelError } from '../../src/servers/transport/channel.js'
import { run, says, startProgram } from '../support/cli.js'
import { until } from '../support/eventually.js'
import { temporaryFile } from '../support/folder.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { call } from '../support/modern.js'

const WORDS = 'Port 3333 is already in use'
const STEP = '"process": "single"'
/** A program that finds its port taken. */
const TAKEN = { command: 'node', args: ['-e', `console.error('starting'); console.error('${WORDS}'); process.exit(1)`] }

const faultOf = (...stderr: string[]) =>
  openingFault(new ChannelError('The server exited with code 1', { stderr, delivered: 'no' }), 'files')

t.test('a taken port is the reason, however a program says it', async (t) => {
  const lines = [
    WORDS,
    'Error: listen EADDRINUSE: address already in use :::3333',
    'OSError: [Errno 98] Address already in use',
    'listen tcp :8080: bind: address already in use',
    'Error: the port 9222 has been taken by another process',
    'Bind for 0.0.0.0:8080 failed: port is already allocated',
    'Only one usage of each socket address (protocol/network address/port) is normally permitted',
  ]
  for (const line of lines) {
    const fault = faultOf('hello', line, '    at Server.listen (node:net:1)', 'Node.js v20.19.0')
    t.match(whyInLine(fault), line)
    t.match(adviceOn(fault).next, STEP)
  }
  t.match(adviceOn(faultOf(WORDS, 'Error: cannot start')).next, STEP, 'another line says it')
  t.notMatch(adviceOn(faultOf('Error: no such user')).next, STEP)
})

t.test('the last words are a reason, or else the last line that is no part of a stack', async (t) => {
  t.match(whyInLine(faultOf('one', 'two')), /exited with code 1: two$/)
  t.match(whyInLine(faultOf('one', 'Error: no key', '    at main', '', 'Node.js v20.19.0')), /: Error: no key$/)
  t.match(whyInLine(faultOf()), /exited with code 1$/)
  t.notMatch(whyInLine(faultOf('the password=canary is wrong')), /canary/)
})

t.test('probe of a file shows what probe of the one server shows', async (t) => {
  const file = temporaryFile(t, 'mcp.json', { mcpServers: { taken: TAKEN, well: legacyStdio(t).server } })
  const alone = await run(t, ['probe', '--config', file, '--server', 'taken'])
  const all = await run(t, ['probe', '--config', file])
  for (const said of [alone.stderr, all.stdout])
    for (const part of [
      'exited with code 1',
      `Probable reason: ${WORDS}`,
      'The server wrote to stderr:',
      'starting',
      STEP,
    ])
      t.ok(said.includes(part), part, { said })
  t.equal(all.code, 1)
  const [, missing = ''] = /^ {2}missing +(.*)$/m.exec(all.stdout) ?? []
  t.match(missing, /^taken: /)
  t.ok(missing.includes(WORDS))
  const { stdout } = await run(t, ['probe', '--config', file, '--json'])
  const { taken } = (JSON.parse(stdout) as { servers: Record<string, Record<string, unknown>> }).servers
  t.match(taken, { error: /exited with code 1/, stderr: ['starting', WORDS], next: STEP })
  t.notOk('lines' in (taken ?? {}))
})

t.test('the log, a failed call and the state of the server say it too', async (t) => {
  const file = temporaryFile(t, 'mcp.json', {
    mcpServers: { taken: TAKEN, well: legacyStdio(t).server },
    listen: 'http://127.0.0.1:0/mcp',
    admin: 'http://127.0.0.1:0',
  })
  const program = startProgram(t, ['--config', file])
  const lines = () =>
    program
      .stderr()
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Record<string, unknown>)
  const [, admin] = await says(program, /"event":"admin_listening".*?"url":"([^"]+)"/)
  const [, url = ''] = await says(program, /"event":"listening".*?"url":"([^"]+)"/)
  const named = (event: string) => lines().find((line) => line['event'] === event && line['server'] === 'taken')
  const told = { stderr: [WORDS, 'starting'], next: STEP }
  await until(() => named('server_unavailable') !== undefined, 'the state at the start')
  t.match(named('server_unavailable'), told)
  t.notMatch((await call(url, 'tools/list')).text, WORDS, 'clients get no stderr')
  await until(() => named('group_incomplete') !== undefined, 'the group')
  t.match(named('group_incomplete'), told)
  await call(url.replace('/mcp', '/taken/mcp'), 'tools/call', { name: 'x' })
  await until(() => named('call') !== undefined, 'the call')
  t.match(named('call'), told)
  const { servers, groups } = (await fetch(`${admin}/readyz`).then((answer) => answer.json())) as Record<
    string,
    Record<string, Record<string, unknown>>
  >
  t.match(servers?.['taken'], { state: 'down', why: WORDS, next: STEP })
  t.match(groups?.['all'], { missing: { taken: WORDS } })
  program.child.kill('SIGTERM')
  await program.ended
})
