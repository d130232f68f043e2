/** The program in a network in which only a proxy leads outside. */
import { createServer, request as forward } from 'node:http'
import type { AddressInfo } from 'node:net'
import { execPath } from 'node:process'
import t, { type Test } from 'tap'
import { run, says, startProgram } from './support/cli.js'
import { Collector } from './support/collector.js'
import { until } from './support/eventually.js'
import { temporaryFile, temporaryFolder } from './support/folder.js'
import { manifestFor, modernServer, offers } from './support/found.js'
import { startInspector, TOKEN } from './support/inspector.js'
import { call } from './support/modern.js'
import { ForwardProxy } from './support/proxy.js'
import { tellCall, tickingRing } from './support/sights.js'
import { makeCa, serveTls } from './support/tls.js'

const HOST = 'mcp.acme.test'
const PASSWORD = 'correct-horse'
const CREDENTIALS = `user:${PASSWORD}`
const ca = await makeCa()

/** Nothing of the environment of the tests. */
const NONE = { HTTPS_PROXY: '', HTTP_PROXY: '', NO_PROXY: '', https_proxy: '', http_proxy: '', no_proxy: '' }

/** A server that only the proxy can resolve. */
async function serverOver(t: Test, protocol: 'http' | 'https'): Promise<string> {
  const answer = modernServer(offers())
  if (protocol === 'https')
    return `https://${HOST}:${(await serveTls(t, await ca.serverOptions([HOST]), answer)).port}/mcp`
  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return `http://${HOST}:${(server.address() as AddressInfo).port}/mcp`
}

const trusting = (t: Test) => ({ NODE_EXTRA_CA_CERTS: temporaryFile(t, 'ca.pem', ca.cert) })

for (const protocol of ['https', 'http'] as const) {
  t.test(
    `a bridge reaches a server over ${protocol} through a proxy with a password, which it never logs`,
    async (t) => {
      const url = await serverOver(t, protocol)
      const proxy = await ForwardProxy.start(t, { credentials: CREDENTIALS })
      const variable = protocol === 'https' ? 'HTTPS_PROXY' : 'HTTP_PROXY'
      const program = startProgram(
        t,
        ['--listen', 'http://127.0.0.1:0/mcp', '--log-level', 'debug', '--log-format', 'json', '--upstream', url],
        { ...NONE, ...trusting(t), [variable]: proxy.url },
      )
      const [, bridge = ''] = await says(program, /"url":"(http:[^"]+)".*"listening"/)
      // What passes unchanged, and what the bridge asks itself.
      for (const method of ['tools/call', 'tools/list', 'server/discover']) {
        const { message, status } = await call(
          bridge,
          method,
          method === 'tools/call' ? { name: 'read', arguments: {} } : {},
        )
        t.equal(status, 200, method)
        t.ok(message.result, method)
      }
      const { host, pathname } = new URL(url)
      if (protocol === 'https') t.ok(proxy.tunnels.length > 0 && proxy.tunnels.every((target) => target === host))
      else {
        t.ok(proxy.passed.length > 0 && proxy.passed.every((target) => target === `http://${host}${pathname}`))
        t.equal(proxy.received[0]?.headers.host, host)
      }
      program.child.kill('SIGTERM')
      t.equal(await program.ended, 0)
      t.notMatch(program.stdout() + program.stderr(), PASSWORD)
      t.notMatch(program.stderr(), Buffer.from(CREDENTIALS).toString('base64'))
    },
  )
}

t.test('a proxy that does not lead to the server is named with its fault and the next step', async (t) => {
  const url = await serverOver(t, 'https')
  const { host } = new URL(url)
  const refusing = await ForwardProxy.start(t, { refuse: 403 })
  const locked = await ForwardProxy.start(t, { credentials: CREDENTIALS })
  const nowhere = await ForwardProxy.start(t, { resolve: () => '127.0.0.1:x' })
  const wrong = `http://user:${PASSWORD}-not@127.0.0.1:${locked.port}`
  const cases: [name: string, address: string, says: RegExp[]][] = [
    [
      'refuses',
      refusing.url,
      [/The proxy refused to connect/, new RegExp(`CONNECT ${host} with HTTP 403`), /NO_PROXY/],
    ],
    ['wants a password', wrong, [/requires a user and a password/, /HTTP 407/, /http:\/\/user:password@/]],
    ['cannot be reached', 'http://127.0.0.1:1', [/The proxy cannot be reached/, /127\.0\.0\.1:1 \(HTTPS_PROXY\)/]],
    ['cannot reach the server', nowhere.url, [/could not connect to the server/, /with HTTP 502/]],
    [
      'is of another kind',
      `socks5://${CREDENTIALS}@proxy:1080`,
      [/names no usable proxy/, /HTTPS_PROXY is not an http/],
    ],
  ]
  for (const [name, HTTPS_PROXY, patterns] of cases) {
    const { code, stderr, stdout } = await run(t, ['probe', url], { ...NONE, ...trusting(t), HTTPS_PROXY })
    t.equal(code, 1, name)
    for (const pattern of patterns) t.match(stderr, pattern, name)
    t.notMatch(stdout + stderr, PASSWORD, name)
  }
  const { stderr } = await run(t, ['probe', url.replace('https', 'http')], { ...NONE, HTTP_PROXY: wrong })
  t.match(stderr, /HTTP 407[\s\S]*put them into HTTP_PROXY/)
  t.notMatch(stderr, PASSWORD)
})

t.test('a client does not see which proxy has refused', async (t) => {
  const url = await serverOver(t, 'https')
  const proxy = await ForwardProxy.start(t, { refuse: 403 })
  const program = startProgram(t, ['--listen', 'http://127.0.0.1:0/mcp', '--log-format', 'json', '--upstream', url], {
    ...NONE,
    ...trusting(t),
    HTTPS_PROXY: proxy.url,
  })
  const [, bridge = ''] = await says(program, /"url":"(http:[^"]+)".*"listening"/)
  const { text } = await call(bridge, 'tools/list')
  t.match(text, /The proxy refused to connect to the server/)
  t.notMatch(text, String(proxy.port))
  await until(
    () => program.stderr().includes(`"next":"The proxy http://127.0.0.1:${proxy.port} (HTTPS_PROXY)`),
    'the log',
  )
})

t.test('reaches servers on this machine and in NO_PROXY directly', async (t) => {
  const proxy = await ForwardProxy.start(t, { refuse: 403 })
  const url = (await serverOver(t, 'http')).replace(HOST, '127.0.0.1')
  const env = { ...NONE, HTTP_PROXY: proxy.url, HTTPS_PROXY: proxy.url }
  t.match(await run(t, ['probe', url], env), { code: 0 })
  t.equal(proxy.received.length, 0)
  await run(t, ['probe', url.replace('127.0.0.1', HOST)], { ...env, NO_PROXY: '.acme.test' })
  t.equal(proxy.received.length, 0)
})

t.test('discovery goes through the proxy, and its guard does not', async (t) => {
  const proxy = await ForwardProxy.start(t, { refuse: 403 })
  const env = { ...NONE, HTTPS_PROXY: proxy.url, XDG_CONFIG_HOME: temporaryFile(t, 'x', '').replace(/x$/, '') }
  await run(t, ['discover', 'https://mcp.acme.test'], env)
  t.ok(proxy.received.length > 0)
  t.ok(proxy.received.every(({ method, url }) => method === 'CONNECT' && url === 'mcp.acme.test:443'))
  const before = proxy.received.length
  const { stdout, stderr } = await run(t, ['discover', 'https://10.1.2.3'], env)
  t.match(stdout + stderr, /10\.1\.2\.3, which is not a public address/)
  t.equal(proxy.received.length, before)
})

t.test('traces go through the proxy', async (t) => {
  const collector = await Collector.start(t)
  const proxy = await ForwardProxy.start(t, { credentials: CREDENTIALS })
  const url = (await serverOver(t, 'http')).replace(HOST, '127.0.0.1')
  const program = startProgram(t, ['--listen', 'http://127.0.0.1:0/mcp', '--log-format', 'json', '--upstream', url], {
    ...NONE,
    HTTP_PROXY: proxy.url,
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url.replace('127.0.0.1', 'collector.acme.test'),
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_BSP_SCHEDULE_DELAY: '20',
  })
  const [, bridge = ''] = await says(program, /"url":"(http:[^"]+)".*"listening"/)
  await call(bridge, 'tools/list')
  await until(() => collector.spans.length > 0, 'a span')
  t.match(proxy.tunnels[0], /^collector\.acme\.test:/)
})

t.test('programs get the variables of the proxy, because npx and uvx download through it', async (t) => {
  const proxy = 'http://proxy.acme.test:3128'
  const program = [
    '-e',
    'console.error("PROXY=" + process.env.HTTPS_PROXY + " " + process.env.SECRET); process.exit(1)',
  ]
  const { stderr } = await run(t, ['--listen', 'http://127.0.0.1:0/mcp', '--', execPath, ...program], {
    ...NONE,
    HTTPS_PROXY: proxy,
    SECRET: 'kept',
  })
  t.match(stderr, `PROXY=${proxy} undefined`)
})

t.test('tail follows a bridge through the proxy, over http and https', async (t) => {
  const ring = tickingRing()
  tellCall(ring.record, { id: 1, name: 'echo' })
  const inspector = await startInspector(t, ring, {}, undefined, ['bridge.acme.test'])
  const { port } = await serveTls(t, await ca.serverOptions(['bridge.acme.test']), (request, response) => {
    forward(`${inspector}${request.url}`, { headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 0, answer.headers)
      answer.pipe(response)
    }).end()
  })
  const proxy = await ForwardProxy.start(t, { credentials: CREDENTIALS })
  const both = { ...NONE, ...trusting(t), HTTP_PROXY: proxy.url, HTTPS_PROXY: proxy.url }
  const http = `http://bridge.acme.test:${new URL(inspector).port}`
  for (const origin of [http, `https://bridge.acme.test:${port}`]) {
    const tail = startProgram(t, ['tail', `${origin}/inspect#${TOKEN}`], both)
    await until(() => tail.stdout().includes('tools/call echo'), `a line (${tail.stderr()})`)
    tail.child.kill()
  }
  t.same(proxy.tunnels, [`bridge.acme.test:${port}`], 'a tunnel for https')
  t.same(proxy.passed, [`${http}/inspect/events`], 'requests for http, because most proxies open no tunnel to any port')

  const before = proxy.received.length
  for (const [name, env, says] of [
    ['NO_PROXY', { ...both, NO_PROXY: '.acme.test' }, /host name could not be resolved/],
    [
      'a wrong password',
      { ...both, HTTP_PROXY: proxy.url.replace(PASSWORD, 'wrong') },
      /requires a user and a password/,
    ],
    ['no proxy there', { ...both, HTTP_PROXY: 'http://127.0.0.1:1' }, /The proxy cannot be reached/],
  ] as const) {
    const { code, stderr } = await run(t, ['tail', `${http}/inspect#${TOKEN}`], env)
    t.equal(code, 1, name)
    t.match(stderr, says, name)
    t.notMatch(stderr, new RegExp(`${TOKEN}|${PASSWORD}`), name)
  }
  t.equal(proxy.received.length, before + 1, 'only the wrong password has reached it')
})

t.test('reaches a pinned server through the proxy, and refuses it if another one answers behind it', async (t) => {
  const host = 'mcp.acme.test:443'
  const offered = offers()
  const manifest = JSON.stringify(manifestFor(`https://${HOST}/mcp`))
  const serve = async () => {
    const answer = modernServer(offered)
    return serveTls(t, await ca.serverOptions([HOST]), (request, response) =>
      request.url === '/mcp' ? answer(request, response) : response.end(manifest),
    )
  }
  const [own, other] = [await serve(), await serve()]
  const ports = { [host]: own.port }
  const proxy = await ForwardProxy.start(t, { credentials: CREDENTIALS, ports })
  const env = { ...NONE, ...trusting(t), HTTPS_PROXY: proxy.url, XDG_CONFIG_HOME: temporaryFolder(t) }

  const pinned = await run(t, ['trust', 'pin', HOST], env)
  t.equal(pinned.code, 0, pinned.stderr)
  const found = await run(t, ['discover', HOST], env)
  t.equal(found.code, 0, found.stdout)
  t.match(found.stdout, /trusted: it has the pinned key/)
  const config = temporaryFile(t, 'mcp.json', { mcpServers: { acme: { url: `https://${HOST}/mcp` } } })
  const callOver = async (args: readonly string[], name: string) => {
    const program = startProgram(t, ['--listen', 'http://127.0.0.1:0/mcp', '--log-format', 'json', ...args], env)
    const [, url = ''] = await says(program, /"url":"(http:[^"]+)".*"listening"/)
    const { text } = await call(url, 'tools/call', { name: 'read', arguments: {} })
    program.child.kill('SIGTERM')
    await program.ended
    t.notMatch(program.stderr(), PASSWORD, name)
    return text + program.stderr()
  }
  for (const args of [
    ['--discover', HOST],
    ['--config', config],
  ])
    t.match(await callOver(args, args.join(' ')), 'read done', args.join(' '))
  t.ok(own.asked.includes('/mcp'))

  ports[host] = other.port
  offered.called.length = 0
  const changed = await run(t, ['discover', HOST], env)
  t.match(changed.stdout, /another key than the pinned one|a key that is not pinned/)
  const program = startProgram(t, ['--listen', 'http://127.0.0.1:0/mcp', '--discover', HOST], env)
  await says(program, /shows a key that is not pinned/)
  t.same(offered.called, [])
  t.ok(proxy.tunnels.every((target) => target === host))
})
