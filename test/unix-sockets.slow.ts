/** Bridges and servers on unix sockets. */
import { existsSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import { join } from 'node:path'
import { platform } from 'node:process'
import t, { type Test } from 'tap'
import { startBridge } from './support/bridge.js'
import { run, says, startProgram } from './support/cli.js'
import { until } from './support/eventually.js'
import { temporaryFile, temporaryFolder } from './support/folder.js'
import { modernServer, offers } from './support/found.js'
import { call, envelope, headersFor } from './support/modern.js'

const skip = platform === 'win32' && 'Node.js has no unix sockets on Windows'

/** A modern server on a socket. */
async function serveOn(
  t: Test,
  path: string,
): Promise<{ hosts: (string | undefined)[]; paths: (string | undefined)[] }> {
  const hosts: (string | undefined)[] = []
  const paths: (string | undefined)[] = []
  const answer = modernServer(offers())
  const server = createServer((incoming, response) => {
    hosts.push(incoming.headers.host)
    paths.push(incoming.url)
    answer(incoming, response)
  })
  await new Promise<void>((resolve) => server.listen(path, resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { hosts, paths }
}

/** Sends a request to a bridge on a socket. Resolves to the status and the body. */
function ask(socketPath: string, path: string, headers: Record<string, string> = {}, method = 'tools/list') {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { _meta: envelope() } })
  return new Promise<{ status: number; text: string }>((resolve, reject) => {
    const options = { socketPath, path, method: 'POST', headers: { ...headersFor(method), ...headers } }
    request(options, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
    })
      .on('error', reject)
      .end(body)
  })
}

const listening = /"url":"(unix:[^"]+)".*"listening"/

/** A bridge on a socket, in front of a server on another one. */
function startOn(t: Test, path: string, server: string, more: readonly string[] = []) {
  return startProgram(t, ['--listen', `unix:${path}`, '--log-format', 'json', ...more, server])
}

t.test('a client reaches a bridge on a socket, which reaches a server on a socket', { skip }, async (t) => {
  const folder = temporaryFolder(t)
  const [front, back] = [join(folder, 'front.sock'), join(folder, 'back.sock')]
  const server = await serveOn(t, back)
  const program = startOn(t, front, `unix:${back}:/deep/mcp`)
  const [, url] = await says(program, listening)
  t.equal(url, `unix:${front}:/mcp`)
  t.match(program.stderr(), `curl -s --unix-socket ${front} http://localhost/mcp`)
  t.equal(statSync(front).mode & 0o777, 0o600)
  const { status, text } = await ask(front, '/mcp')
  t.equal(status, 200)
  t.match(text, '"tools"')
  t.same([...new Set(server.hosts)], ['localhost'])
  t.same([...new Set(server.paths)], ['/deep/mcp'])
  // A bridge before the bridge.
  const second = await startBridge(
    t,
    { url: 'http://localhost/mcp', socket: front },
    {},
    { env: { HTTP_PROXY: 'http://127.0.0.1:1' } },
  )
  t.equal((await call(second.url, 'tools/list')).status, 200)
  t.equal(second.bridge.server.target, `unix:${front}:/mcp`)
  program.child.kill('SIGTERM')
  await program.ended
  t.notOk(existsSync(front), 'the socket is removed')
})

t.test('checks Host and Origin on a socket as on the loopback', { skip }, async (t) => {
  const folder = temporaryFolder(t)
  const [front, back] = [join(folder, 'front.sock'), join(folder, 'back.sock')]
  await serveOn(t, back)
  const program = startOn(t, front, `unix:${back}`, ['--allowed-host', 'mcp.acme.test'])
  await says(program, listening)
  const cases: [headers: Record<string, string>, status: number][] = [
    [{ host: 'localhost' }, 200],
    [{ host: 'localhost:8080' }, 200],
    [{ host: 'mcp.acme.test' }, 200],
    [{ host: 'evil.example' }, 403],
    [{ host: 'localhost', origin: 'https://evil.example' }, 403],
  ]
  for (const [headers, status] of cases) t.match(await ask(front, '/mcp', headers), { status }, JSON.stringify(headers))
})

t.test('replaces the socket of a killed bridge, and nothing else', { skip }, async (t) => {
  const folder = temporaryFolder(t)
  const [front, back] = [join(folder, 'front.sock'), join(folder, 'back.sock')]
  await serveOn(t, back)
  const killed = startOn(t, front, `unix:${back}`)
  await says(killed, listening)
  // Another process that listens there is not disturbed.
  const refused = await run(t, ['--listen', `unix:${front}`, `unix:${back}`])
  t.match(refused, { code: 1, stderr: `another process listens on ${front}` })
  t.match(await ask(front, '/mcp'), { status: 200 })
  killed.child.kill('SIGKILL')
  await killed.ended
  t.ok(existsSync(front))
  const next = startOn(t, front, `unix:${back}`)
  await says(next, listening)
  t.match(await ask(front, '/mcp'), { status: 200 })
  const file = temporaryFile(t, 'notes.txt', 'keep me')
  const taken = await run(t, ['--listen', `unix:${file}`, `unix:${back}`])
  t.match(taken, { code: 1, stderr: `${file} exists and is not a socket` })
  t.equal(statSync(file).size, 'keep me'.length)
  const link = join(folder, 'link.sock')
  symlinkSync(file, link)
  t.match(await run(t, ['--listen', `unix:${link}`, `unix:${back}`]), { code: 1, stderr: 'is not a socket' })
})

t.test('socketMode determines who may connect', { skip }, async (t) => {
  const folder = temporaryFolder(t)
  const [front, admin, back] = ['front', 'admin', 'back'].map((name) => join(folder, `${name}.sock`)) as [
    string,
    string,
    string,
  ]
  await serveOn(t, back)
  const config = join(folder, 'mcp.json')
  const settings = {
    listen: `unix:${front}:/tools/mcp`,
    admin: `unix:${admin}`,
    socketMode: '660',
    mcpServers: { back: { url: 'http://localhost/mcp', socket: back } },
  }
  writeFileSync(config, JSON.stringify(settings))
  const program = startProgram(t, ['--config', config, '--log-format', 'json'])
  await says(program, listening)
  t.equal(statSync(front).mode & 0o777, 0o660)
  t.equal(statSync(admin).mode & 0o777, 0o660)
  t.match(await ask(front, '/tools/mcp'), { status: 200 })
  const metrics = await new Promise<number>((resolve, reject) => {
    request({ socketPath: admin, path: '/metrics' }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
      .on('error', reject)
      .end()
  })
  t.equal(metrics, 200)
})

t.test('names an unusable socket, with the next step', { skip }, async (t) => {
  const folder = temporaryFolder(t)
  const back = join(folder, 'back.sock')
  const cases: [name: string, args: readonly string[], says: RegExp][] = [
    ['no folder', ['--listen', `unix:${folder}/absent/x.sock`, back], /there is no folder .*absent[\s\S]*Create it/],
    ['too long', ['--listen', `unix:${folder}/${'x'.repeat(120)}`, back], /the path of the socket .* is too long/],
    [
      'no server',
      ['probe', `unix:${back}`],
      /The socket of the server does not exist[\s\S]*whether the server is running/,
    ],
    ['oauth', ['--client-id', 'x', `unix:${back}`], /cannot be combined with .*socket/],
  ]
  for (const [name, args, pattern] of cases) {
    const server = args.at(-1) === back ? [...args.slice(0, -1), `unix:${back}`] : args
    const { code, stderr } = await run(t, server)
    t.not(code, 0, name)
    t.match(stderr, pattern, name)
  }
  mkdirSync(join(folder, 'empty'))
  const stale = startOn(t, back, `unix:${join(folder, 'empty', 'x.sock')}`)
  await says(stale, listening)
  stale.child.kill('SIGKILL')
  await stale.ended
  t.match((await run(t, ['probe', `unix:${back}`])).stderr, /No process listens on the socket/)
})

t.test('reaches a server again whose socket is back', { skip }, async (t) => {
  const back = join(temporaryFolder(t), 'back.sock')
  const bridge = await startBridge(t, { url: 'http://localhost/mcp', socket: back })
  t.match((await call(bridge.url, 'tools/list')).text, /The socket of the server does not exist/)
  await serveOn(t, back)
  await until(async () => (await call(bridge.url, 'tools/list')).status === 200, 'the server')
})
