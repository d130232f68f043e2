/** The plugin in applications of Fastify, which stay as they are. */
import { join } from 'node:path'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import { fastify } from 'fastify'
import t, { type Test } from 'tap'
import { mcpBridge } from '../../src/app/embed/fastify.js'
import { Entra } from '../support/entra.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { freePort } from '../support/free-port.js'
import { Guarded } from '../support/guarded.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { call } from '../support/modern.js'
import { Oidc } from '../support/oidc.js'
import { CALLBACK, kits, provider, signedIn } from '../support/sdk-sign-in.js'
import { startSdkV1 } from '../support/sdk-v1.js'

const CALL = ['tools/call', { name: 'echo', arguments: { a: 1 } }] as const

/** An application with a route, a hook that authenticates, and an onClose of its own. */
async function application(t: Test, options: object, prefix = '/tools') {
  const lines: Record<string, unknown>[] = []
  const seen: string[] = []
  const app = fastify({ logger: { level: 'debug', stream: { write: (line) => void lines.push(JSON.parse(line)) } } })
  app.decorateRequest('principal', 'of the application')
  app.decorateRequest('user', '')
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-application', 'yes')
    const user = request.headers['x-user']
    if (user === undefined) return reply.code(401).send({ error: 'who are you?' })
    Object.assign(request, { user })
  })
  app.addHook('onResponse', async ({ url }) => void seen.push(url))
  app.addHook('onClose', async () => void seen.push('closed'))
  app.get('/', async () => ({ hello: 'world' }))
  app.post('/echo', async ({ body }) => body)
  const principal = (request: unknown) => (request as { user: string }).user
  app.register(mcpBridge, { prefix, principal, ...options })
  const origin = await app.listen({ host: '127.0.0.1', port: 0 })
  t.teardown(() => app.close())
  return { app, origin, lines, seen }
}

t.test('changes nothing in the application: routes, parsers, hooks, 404 and shutdown', async (t) => {
  const { app, origin, seen } = await application(t, { mcpServers: { it: legacyStdio(t).server } })
  const headers = { 'x-user': 'ada', 'content-type': 'application/json' }
  const get = (path: string) => fetch(origin + path, { headers })
  t.same(await (await get('/')).json(), { hello: 'world' })
  const echoed = await fetch(`${origin}/echo`, { method: 'POST', headers, body: '{"a":1}' })
  t.same(await echoed.json(), { a: 1 })
  for (const path of ['/healthz', '/mcp', '/toolsmith', '/tools/other'])
    t.match(await (await get(path)).json(), { statusCode: 404, error: 'Not Found' }, path)
  const answer = await call(`${origin}/tools`, ...CALL, { headers })
  t.match(answer.message, { result: { resultType: 'complete' } })
  t.equal(answer.headers['x-application'], 'yes', 'what its hooks have set is in the answers')
  const refused = await call(`${origin}/tools`, ...CALL)
  t.same([refused.status, refused.message], [401, { error: 'who are you?' }], 'its hook decides before the bridge')
  await until(() => seen.includes('/tools'), 'onResponse')
  await app.close()
  t.equal(seen.at(-1), 'closed')
})

t.test('a server that crashes in a call affects neither the application nor the next call', async (t) => {
  const script = fileURLToPath(new URL('../fixtures/dying.mjs', import.meta.url))
  const dying = { command: execPath, args: [script, 'legacy', join(temporaryFolder(t), 'calls')] }
  const { origin, lines } = await application(t, { mcpServers: { dying } })
  const headers = { 'x-user': 'ada' }
  for (let i = 0; i < 2; i++) {
    const answer = await call(`${origin}/tools`, 'tools/call', { name: 'look', arguments: {} }, { headers })
    t.match(answer.message, { error: { code: Number } })
  }
  t.same(await (await fetch(origin, { headers })).json(), { hello: 'world' })
  t.ok(
    lines.some(({ event, server }) => event === 'call' && server === 'dying'),
    'the log of the application has its calls',
  )
})

t.test('refuses in JSON-RPC, and forwards nothing that it refuses', async (t) => {
  const { origin } = await application(t, {
    mcpServers: { it: legacyStdio(t).server },
    limits: { bodyBytes: 1024 },
  })
  const headers = { 'x-user': 'ada' }
  const large = await call(
    `${origin}/tools`,
    'tools/call',
    { name: 'echo', arguments: { a: 'x'.repeat(2048) } },
    { headers },
  )
  t.match(large, { status: 413, message: { jsonrpc: '2.0', error: { message: /limits.bodyBytes/ } } })
  const foreign = await call(`${origin}/tools`, ...CALL, { headers: { ...headers, host: 'evil.example' } })
  t.match(foreign, { status: 403, message: { error: { message: /evil.example/ } } })
  const nobody = await call(`${origin}/tools`, ...CALL, { headers: { 'x-user': '' } })
  t.match(nobody, { status: 401, message: { error: { message: /does not know the caller/ } } })
})

t.test('a body that a hook of the application has read is an error', async (t) => {
  const { app, origin } = await application(t, { mcpServers: { it: legacyStdio(t).server } })
  t.ok(app)
  const reading = fastify()
  reading.addHook('onRequest', async ({ raw }) => {
    for await (const _chunk of raw.iterator({ destroyOnReturn: false }));
  })
  reading.register(mcpBridge, { prefix: '/tools', mcpServers: { it: legacyStdio(t).server } })
  const there = await reading.listen({ host: '127.0.0.1', port: 0 })
  t.teardown(() => reading.close())
  const { status, message } = await call(`${there}/tools`, ...CALL)
  t.match([status, message], [500, { error: { message: /application has read the body/ } }])
  t.match((await call(`${origin}/tools`, ...CALL, { headers: { 'x-user': 'ada' } })).status, 200)
})

t.test('several plugins in one application are separate, and each separates its principals', async (t) => {
  const one = legacyStdio(t)
  const other = legacyStdio(t)
  const { app, origin } = await application(t, { mcpServers: { it: one.server } })
  t.ok(app)
  const second = fastify()
  second.register(mcpBridge, { prefix: '/a', mcpServers: { it: one.server, more: other.server } })
  second.register(mcpBridge, { prefix: '/b', mcpServers: { it: other.server } })
  const there = await second.listen({ host: '127.0.0.1', port: 0 })
  t.teardown(() => second.close())
  for (const path of ['/a', '/a/it/mcp', '/a/more/mcp', '/b', '/b/it/mcp']) {
    const { message } = await call(there + path, 'tools/list')
    const names = (message.result as { tools: { name: string }[] }).tools.map(({ name }) => name)
    t.equal(names.includes('it__echo'), path === '/a', path)
  }
  for (const user of ['ada', 'bob', 'ada']) await call(`${origin}/tools`, ...CALL, { headers: { 'x-user': user } })
})

t.test('names mistakes in the options when the application starts', async (t) => {
  const wrong = async (options: object) => {
    const app = fastify()
    t.teardown(() => app.close())
    app.register(mcpBridge, { prefix: '/mcp', ...options })
    await app.ready()
  }
  await t.rejects(wrong({}), { message: /mcpServers/ })
  await t.rejects(wrong({ upstream: 'stdio:x', limits: { call: 1 } }), { message: /limits.call/ })
  await t.rejects(wrong({ upstream: 'https://x.example', auth: { passthrough: true } }), { message: /passthrough/ })
  const twice = { upstream: 'stdio:x', auth: { tokens: { a: 'x'.repeat(16) } }, principal: () => 'a' }
  await t.rejects(wrong(twice), { message: /principal/ })
})

t.test('endpoints of the plugin answer with and without a slash at the end', async (t) => {
  for (const ignoreTrailingSlash of [false, true]) {
    const app = fastify({ routerOptions: { ignoreTrailingSlash } })
    t.teardown(() => app.close())
    const mcpServers = { it: legacyStdio(t).server, other: legacyStdio(t).server }
    await app.register(mcpBridge, { prefix: '/tools', mcpServers })
    const origin = await app.listen({ host: '127.0.0.1', port: 0 })
    for (const path of ['/tools', '/tools/it/mcp'])
      for (const end of ['', '/'])
        t.equal((await call(`${origin}${path}${end}`, 'server/discover', {})).status, 200, `${path}${end}`)
  }
})

t.test('a prefix at which there can be no endpoint is refused in words of the plugin', async (t) => {
  const wrong = async (prefix: string, outer?: string) => {
    const app = fastify()
    t.teardown(() => app.close())
    const options = { prefix, mcpServers: { it: legacyStdio(t).server, other: legacyStdio(t).server } }
    if (outer === undefined) app.register(mcpBridge, options)
    else app.register(async (inner) => inner.register(mcpBridge, options), { prefix: outer })
    await app.ready()
  }
  const end = 'which does not end in a slash'
  const rows: [prefix: string, outer: string | undefined, message: string][] = [
    ['/mcp/', undefined, `prefix: "/mcp/" has to be a path like /tools/mcp, ${end}`],
    ['/', undefined, `prefix: "/" has to be a path like /tools/mcp, ${end}`],
    ['/a b', undefined, `prefix: "/a b" has to be a path like /tools/mcp, ${end}`],
    ['/t/:tenant/mcp', undefined, 'prefix: "/t/:tenant/mcp" has a parameter, and the endpoint has one address'],
    ['/mcp', '/t/:tenant', 'prefix: "/t/:tenant/mcp" has a parameter, and the endpoint has one address'],
    ['/%6dcp', undefined, 'prefix: "/%6dcp" has to be without "%"'],
    ['/mcp/../x', undefined, 'prefix: "/mcp/../x" has to be without "%" and without the parts "." and ".."'],
    ['/x/*', undefined, 'prefix: "/x/*" has a parameter, and the endpoint has one address'],
  ]
  for (const [prefix, outer, message] of rows) {
    const error = await wrong(prefix, outer).catch((one: Error) => one)
    t.match(error?.message, message, prefix)
    t.notMatch(error?.message, /listen|mcpServers/, prefix)
  }
  for (const [prefix, outer] of [['mcp'], ['/mcp', '/api/'], ['/mcp', '/api']] as const)
    await t.resolves(wrong(prefix, outer), `${outer} ${prefix}`)
})

t.test('without a prefix, clients sign in at the identity provider of the bridge', async (t) => {
  // Clients keep connections in reserve, on which Node.js waits for a first request.
  const oidc = await Oidc.start(t, { jwt: true, scopes: 'mcp' })
  const app = fastify({ forceCloseConnections: true })
  app.get('/', async () => ({ hello: 'world' }))
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const auth = { issuers: [{ issuer: oidc.issuer }], scopes: ['mcp'] }
  app.register(mcpBridge, {
    mcpServers: { it: legacyStdio(t).server, other: legacyStdio(t).server },
    publicUrl: origin,
    auth,
  })
  await app.listen({ host: '127.0.0.1', port })
  t.teardown(() => app.close())
  for (const [path, name] of Object.entries({ '/mcp': 'it__echo', '/it/mcp': 'echo' })) {
    const client = await signedIn(t, kits['SDK v1'], origin + path, provider())
    t.match(await client.callTool({ name, arguments: {} }), { content: [{}] }, path)
  }
  t.same(await (await fetch(origin)).json(), { hello: 'world' }, 'other routes need no token')
  const root = await fetch(`${origin}/.well-known/oauth-authorization-server`)
  t.match(await root.json(), { issuer: oidc.issuer })
  for (const path of ['/.well-known/oauth-protected-resource/other/path', '/.well-known/x', '/oauth/token'])
    t.equal((await fetch(origin + path)).status, 404, path)
})

t.test('without a prefix, clients sign in through the facade', async (t) => {
  const entra = await Entra.start(t, [CALLBACK])
  const app = fastify({ forceCloseConnections: true })
  const port = await freePort()
  const facade = { clientId: Entra.id, clientSecret: Entra.secret, scopes: [`api://${Entra.id}/mcp`] }
  const auth = { issuers: [{ issuer: entra.issuer, audience: Entra.id, facade }] }
  const url = `http://127.0.0.1:${port}/mcp`
  app.register(mcpBridge, { mcpServers: { it: legacyStdio(t).server }, publicUrl: new URL(url).origin, auth })
  await app.listen({ host: '127.0.0.1', port })
  t.teardown(() => app.close())
  const client = await signedIn(t, kits['SDK v2'], url, provider())
  t.match(await client.callTool({ name: 'echo', arguments: {} }), { content: [{}] })
})

t.test('without a prefix, clients sign in where the server says, and it takes their tokens', async (t) => {
  const oidc = await Oidc.start(t)
  const port = await freePort()
  const url = `http://127.0.0.1:${port}/mcp`
  const target = await startSdkV1(t, (one) => {
    one.registerTool('echo', { description: 'Echoes.' }, () => ({ content: [{ type: 'text', text: 'echoed' }] }))
  })
  // The server and the bridge are one resource.
  const guarded = await Guarded.start(t, oidc, target, { origin: new URL(url).origin })
  const app = fastify({ forceCloseConnections: true })
  const auth = { passthrough: true }
  app.register(mcpBridge, { upstream: `${guarded.address}/mcp`, publicUrl: new URL(url).origin, auth })
  await app.listen({ host: '127.0.0.1', port })
  t.teardown(() => app.close())
  const client = await signedIn(t, kits['SDK v1'], url, provider())
  t.match(await client.callTool({ name: 'echo', arguments: {} }), { content: [{ text: 'echoed' }] })
})
