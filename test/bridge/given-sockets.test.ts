/** Sockets that systemd has opened: the bridge serves there, and only at the addresses of its configuration. */
import { spawn } from 'node:child_process'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { env, execPath, platform } from 'node:process'
import t, { type Test } from 'tap'
import { main, type Program, says, watchProgram } from '../support/cli.js'
import { temporaryFolder } from '../support/folder.js'
import { call } from '../support/modern.js'

const skip = platform === 'win32' && 'Windows has no systemd'
const LOCAL = { host: '127.0.0.1', port: 0 }

/** A socket that listens. */
async function opened(t: Test, where: { host: string; port: number } | { path: string }) {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(where, resolve))
  t.teardown(() => server.close())
  const { port = 9 } = server.address() as { port?: number }
  return { server, origin: `http://127.0.0.1:${port}` }
}

/** Starts the bridge as systemd does: with open sockets, their number and names, and the process that they are for. */
function start(
  t: Test,
  args: readonly string[],
  { sockets, names, pid = '$$' }: { sockets: readonly { server: Server }[]; names: string; pid?: string },
): Program {
  const command = [execPath, main, ...args, '--log-format', 'json', '--', execPath, main, 'demo', 'modern-server']
  const child = spawn('sh', ['-c', `LISTEN_PID=${pid} exec "$@"`, 'sh', ...command], {
    env: { ...env, XDG_STATE_HOME: temporaryFolder(t), LISTEN_FDS: String(sockets.length), LISTEN_FDNAMES: names },
    stdio: [
      'pipe',
      'pipe',
      'pipe',
      ...sockets.map(({ server }) => (server as Server & { _handle: { fd: number } })._handle.fd),
    ],
  })
  // They are of the bridge alone from now on: what connects before it serves, waits.
  for (const { server } of sockets) server.close()
  return watchProgram(t, child as Parameters<typeof watchProgram>[1])
}

t.test('the bridge serves at sockets that it is given, also who connected before', { skip }, async (t) => {
  const [clients, operators] = [await opened(t, LOCAL), await opened(t, LOCAL)]
  const args = ['--listen', `${clients.origin}/mcp`, '--admin', operators.origin]
  start(t, args, { sockets: [operators, clients], names: 'admin:listen' })
  const [answer, health] = await Promise.all([
    call(`${clients.origin}/mcp`, 'tools/list'),
    fetch(`${operators.origin}/healthz`),
  ])
  t.equal(answer.status, 200)
  t.equal(health.status, 200)
})

t.test('a single socket is for clients, whatever its name', { skip }, async (t) => {
  for (const where of [LOCAL, { path: join(temporaryFolder(t), 'mcp.sock') }]) {
    const socket = await opened(t, where)
    const url = 'path' in where ? `unix:${where.path}:/mcp` : `${socket.origin}/mcp`
    const program = start(t, ['--listen', url.replace(/:\/mcp$/, '')], {
      sockets: [socket],
      names: 'mcp-bridge.socket',
    })
    const [, said] = await says(program, /"url":"([^"]+)".*"listening"/)
    t.equal(said, url)
  }
})

t.test('a socket at another address than the configured one is not used', { skip }, async (t) => {
  const sockets = [
    await opened(t, { host: '0.0.0.0', port: 0 }),
    await opened(t, { path: join(temporaryFolder(t), 's') }),
  ]
  for (const socket of sockets) {
    // Nobody needs a token at the configured address, as only this machine reaches it.
    const args = ['--listen', `${socket.origin}/mcp`]
    const program = start(t, args, { sockets: [socket], names: 'listen' })
    await says(program, /"event":"listen_failed".*systemd listens at .*the configuration says/)
    t.equal(await program.ended, 1)
  }
})

t.test('a socket that is for no option stops the start', { skip }, async (t) => {
  for (const names of ['admin', 'web:listen', 'listen:listen']) {
    const sockets = [await opened(t, LOCAL), ...(names.includes(':') ? [await opened(t, LOCAL)] : [])]
    const program = start(t, ['--listen', `${sockets[0]?.origin}/mcp`], { sockets, names })
    await says(program, /"event":"listen_failed".*FileDescriptorName=listen/)
    t.equal(await program.ended, 1)
  }
})

t.test('sockets for another process are not used', { skip }, async (t) => {
  const socket = await opened(t, { host: '0.0.0.0', port: 0 })
  const program = start(t, ['--listen', 'http://127.0.0.1:0/mcp'], { sockets: [socket], names: 'listen', pid: '1' })
  await says(program, /"event":"listening"/)
})
