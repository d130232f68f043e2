/** Servers that want sign-in, through the whole bridge: both eras, both fronts, with a real authorization server. */
import { Client as ModernClient, StreamableHTTPClientTransport as ModernHttpClient } from '@modelcontextprotocol/client'
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as LegacyHttpClient } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import t, { type Test } from 'tap'
import { startModern } from '../interop/modern-servers.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { Guarded, type GuardedOptions } from '../support/guarded.js'
import { LegacySse } from '../support/legacy-sse.js'
import { Oidc } from '../support/oidc.js'
import { type Visit, visit } from '../support/person.js'
import { startSdkV1 } from '../support/sdk-v1.js'
import { type PersonOptions, personParts } from '../support/sign-in-parts.js'

const servers = {
  legacy: (t: Test) =>
    startSdkV1(t, (server) => {
      server.registerTool('greet', { description: 'Greets.' }, () => ({ content: [{ type: 'text', text: 'Hello' }] }))
    }),
  modern: async (t: Test) => (await startModern(t))['Streamable HTTP'].upstream,
}

const clients = {
  modern: async (t: Test, url: string) => {
    const client = new ModernClient(
      { name: 'modern', version: '1' },
      { versionNegotiation: { mode: { pin: '2026-07-28' } } },
    )
    t.teardown(() => client.close())
    await client.connect(new ModernHttpClient(new URL(url)))
    return client as unknown as LegacyClient
  },
  legacy: async (t: Test, url: string) => {
    const client = new LegacyClient({ name: 'legacy', version: '1' })
    t.teardown(() => client.close())
    await client.connect(new LegacyHttpClient(new URL(url)) as Transport)
    return client
  },
}

interface Behind extends PersonOptions {
  settings?: object
  guarded?: GuardedOptions
  oauth?: object
}

async function bridged(t: Test, era: keyof typeof servers, options: Behind = {}) {
  const oidc = await Oidc.start(t)
  const server = await Guarded.start(t, oidc, await servers[era](t), options.guarded)
  const parts = personParts(t, options)
  const entry = { url: server.url, ...(options.oauth && { oauth: options.oauth }) }
  const { url, bridge, log } = await startBridge(t, entry, options.settings, { signIn: parts.signIn })
  return { ...parts, oidc, server, url, bridge, log }
}

for (const server of ['legacy', 'modern'] as const) {
  for (const client of ['legacy', 'modern'] as const) {
    t.test(`a ${client} client of a ${server} server does not notice the sign-in`, async (t) => {
      const { url, opened, oidc, server: guarded } = await bridged(t, server)
      const connected = await clients[client](t, url)
      const { tools } = await connected.listTools()
      t.ok(tools.length > 0)
      t.notOk(tools.some(({ name }) => name === 'mcp_bridge_sign_in'))
      const name = server === 'legacy' ? 'greet' : 'echo'
      t.match(await connected.callTool({ name, arguments: { message: 'Hello' } }), { content: [{ type: 'text' }] })
      t.equal(opened.length, 1, 'one window')
      t.equal(oidc.of('/reg').length, 1)
      t.ok(guarded.refused.length > 0)
      t.ok(guarded.seen.filter(({ status }) => status < 300).every(({ authorization }) => authorization))
    })
  }
}

/** A person who signs in when they are told to. */
function person() {
  const addresses: string[] = []
  return {
    addresses,
    away: async (address: string): Promise<Visit> => {
      addresses.push(address)
      return { address: new URL(address), callback: undefined, status: 0, page: '' }
    },
    signIn: async () => {
      await until(() => addresses.length > 0, 'a window is opened')
      return visit(addresses.at(-1) ?? '')
    },
  }
}

/** The lists that a client is told have changed. */
function changesOf(client: LegacyClient): Set<string> {
  const changed = new Set<string>()
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
    changed.add('tools')
  })
  return changed
}

for (const server of ['legacy', 'modern'] as const) {
  t.test(
    `a legacy client of a ${server} server gets a placeholder, and the real tools without a restart`,
    async (t) => {
      const { addresses, away, signIn } = person()
      const { url } = await bridged(t, server, { person: away, oauth: { wait: 300 } })
      const client = await clients.legacy(t, url)
      const changed = changesOf(client)
      await until(() => addresses.length === 1, 'a window')
      t.match(client.getInstructions(), /requires a sign-in.*mcp_bridge_sign_in.*mcp-bridge login/)
      t.match(await client.listTools(), { tools: [{ name: 'mcp_bridge_sign_in' }] })
      t.same(await client.listPrompts(), { prompts: [] })
      t.match(await client.callTool({ name: 'greet', arguments: {} }), {
        isError: true,
        content: [{ text: /Sign in to "test"/ }],
        _meta: { 'io.github.mcp-bridge/sign_in_pending': {} },
      })
      t.match(await client.callTool({ name: 'mcp_bridge_sign_in' }), {
        isError: true,
        content: [{ text: /browser window/ }],
      })
      t.equal(addresses.length, 1, 'all of that is that one window')
      t.match(await signIn(), { status: 200 })
      await until(() => changed.has('tools'), 'the client hears that its tools have changed')
      const { tools } = await client.listTools()
      t.notOk(tools.some(({ name }) => name === 'mcp_bridge_sign_in'))
      const name = server === 'legacy' ? 'greet' : 'echo'
      t.match(await client.callTool({ name, arguments: { message: 'x' } }), { content: [{ type: 'text' }] })
      t.match(await client.callTool({ name: 'mcp_bridge_sign_in' }), { content: [{ text: /Signed in/ }] })
    },
  )
}

t.test('a modern client with a placeholder hears on its subscription that everything has changed', async (t) => {
  const { away, signIn } = person()
  const { url } = await bridged(t, 'modern', { person: away, oauth: { wait: 300 } })
  const client = (await clients.modern(t, url)) as unknown as ModernClient
  t.match(await client.listTools(), { tools: [{ name: 'mcp_bridge_sign_in' }] })
  const changed = new Set<string>()
  client.setNotificationHandler('notifications/tools/list_changed', () => {
    changed.add('tools')
  })
  await client.listen({ toolsListChanged: true })
  await signIn()
  await until(() => changed.has('tools'), 'the client hears that its tools have changed')
  t.match(await client.callTool({ name: 'echo', arguments: { message: 'x' } }), { content: [{ type: 'text' }] })
})

t.test('if a server refuses only calls, only the call waits', async (t) => {
  const open = ({ method }: { method?: string }) => method !== 'tools/call'
  const { away, addresses } = person()
  const { url } = await bridged(t, 'modern', { person: away, oauth: { wait: 300 }, guarded: { open } })
  const client = await clients.modern(t, url)
  const { tools } = await client.listTools()
  t.ok(tools.some(({ name }) => name === 'echo'))
  t.equal(addresses.length, 0)
  const refused = await client.callTool({ name: 'echo', arguments: { message: 'x' } })
  t.match(refused, { isError: true, _meta: { 'io.github.mcp-bridge/sign_in_pending': {} } })
  await until(() => addresses.length === 1, 'a window is opened for the call')
})

t.test(
  'a client that supports elicitation gets the address as a question, and its call continues after the answer',
  async (t) => {
    const { url, shown } = await bridged(t, 'modern', {
      person: 'none',
      guarded: { open: ({ method }) => method !== 'tools/call' },
    })
    const capabilities = { elicitation: { url: {} } }
    const client = new ModernClient(
      { name: 'modern', version: '1' },
      { capabilities, versionNegotiation: { mode: { pin: '2026-07-28' } } },
    )
    t.teardown(() => client.close())
    const asked: unknown[] = []
    client.setRequestHandler('elicitation/create', async ({ params }) => {
      asked.push(params)
      await visit(String((params as { url?: string }).url))
      return { action: 'accept' }
    })
    await client.connect(new ModernHttpClient(new URL(url)))
    t.match(await client.callTool({ name: 'echo', arguments: { message: 'x' } }), { content: [{ type: 'text' }] })
    t.match(asked, [{ mode: 'url', url: shown[0], message: /Sign in to "test"/ }])
  },
)

t.test('a user who declines the question gets an error, and the server is not called again', async (t) => {
  const { url, server } = await bridged(t, 'modern', {
    person: 'none',
    guarded: { open: ({ method }) => method !== 'tools/call' },
  })
  const client = new ModernClient(
    { name: 'modern', version: '1' },
    { capabilities: { elicitation: { url: {} } }, versionNegotiation: { mode: { pin: '2026-07-28' } } },
  )
  t.teardown(() => client.close())
  client.setRequestHandler('elicitation/create', async () => ({ action: 'decline' }))
  await client.connect(new ModernHttpClient(new URL(url)))
  const declined = await client.callTool({ name: 'echo', arguments: { message: 'x' } })
  t.match(declined, { isError: true, _meta: { 'io.github.mcp-bridge/sign_in_refused': {} } })
  t.equal(server.seen.filter(({ message }) => message.method === 'tools/call').length, 1, 'it has seen the call once')
})

t.test('a call that lacks a scope has the user sign in for all scopes, once', async (t) => {
  const scopeFor = ({ method }: { method?: string }) => (method === 'tools/call' ? 'mcp:write' : undefined)
  for (const server of ['legacy', 'modern'] as const) {
    const { url, opened } = await bridged(t, server, { guarded: { scopeFor } })
    const client = await clients[server](t, url)
    const name = server === 'legacy' ? 'greet' : 'echo'
    t.match(await client.callTool({ name, arguments: { message: 'x' } }), { content: [{ type: 'text' }] }, server)
    const scopes = opened.map((address) => new URL(address).searchParams.get('scope'))
    t.same(scopes, ['mcp:read offline_access', 'mcp:read mcp:write offline_access'], server)
  }
})

t.test('no answer to a client is a 401 from a server, whether answers pass unchanged or not', async (t) => {
  for (const server of ['legacy', 'modern'] as const) {
    const { url, server: guarded, log } = await bridged(t, server)
    const client = await clients[server](t, url)
    const name = server === 'legacy' ? 'greet' : 'echo'
    const call = () => client.callTool({ name, arguments: { message: 'x' } })
    await call()
    const isPassed = () => log.some(({ event, method }) => event === 'call' && method === 'tools/call')
    await until(isPassed, `${server}: it is passed on`)
    // What was given is not taken any more: another is had without anybody noticing.
    for (const { authorization } of guarded.seen) if (authorization) guarded.revoked.add(authorization.slice(7))
    t.match(await call(), { content: [{ type: 'text' }] }, `${server}: renewed`)
    const before = guarded.seen.length
    t.match(await call(), { content: [{ type: 'text' }] })
    t.equal(guarded.seen.length, before + 1, `${server}: and passed on again`)
  }
})

t.test('a direct session without tokens gets the next step in-band', async (t) => {
  const { url, server, oidc, signIn } = await bridged(t, 'legacy')
  const client = await clients.legacy(t, url)
  await client.callTool({ name: 'greet' })
  for (const { authorization } of server.seen) if (authorization) server.revoked.add(authorization.slice(7))
  oidc.instead.set('/token', (_request, response) =>
    response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":"invalid_grant"}'),
  )
  // There is no browser any more, so nothing waits for one.
  signIn.person.open = async () => false
  const failed = await client.callTool({ name: 'greet' }).catch((error: unknown) => error)
  t.match(String(failed), /Sign in to "test"/)
})

t.test('principals use their own tokens, and those without get the next step', async (t) => {
  const settings = { auth: { tokens: { alice: 'alice-alice-alice', bob: 'bob-bob-bob-bob-bob' } } }
  const { url, server, bridge, opened } = await bridged(t, 'modern', { settings })
  const accounts = bridge.mounts.get('test')?.accounts
  await accounts?.of('alice').login(undefined, new AbortController().signal)
  t.equal(opened.length, 1)
  const ask = async (token: string) => {
    const client = new ModernClient(
      { name: token, version: '1' },
      { versionNegotiation: { mode: { pin: '2026-07-28' } } },
    )
    t.teardown(() => client.close())
    const requestInit = { headers: { authorization: `Bearer ${token}` } }
    await client.connect(new ModernHttpClient(new URL(url), { requestInit }))
    return client.callTool({ name: 'echo', arguments: { message: 'x' } })
  }
  t.match(await ask('alice-alice-alice'), { content: [{ type: 'text' }] })
  const before = server.seen.length
  t.match(await ask('bob-bob-bob-bob-bob'), { isError: true, content: [{ text: /mcp-bridge login/ }] })
  t.ok(server.seen.slice(before).every(({ authorization }) => authorization === undefined))
  t.equal(opened.length, 1)
})

t.test('a service signs in with its own secret, and no user is involved', async (t) => {
  const client = {
    client_id: 'robot',
    client_secret: 'robot-secret-robot-secret-robot-secret',
    grant_types: ['client_credentials'],
    redirect_uris: [],
    response_types: [],
  }
  const oidc = await Oidc.start(t, { clients: [client] })
  const server = await Guarded.start(t, oidc, await servers.modern(t))
  const parts = personParts(t)
  const oauth = { grant: 'client_credentials', clientId: 'robot', clientSecret: client.client_secret }
  const { url } = await startBridge(t, { url: server.url, oauth }, {}, { signIn: parts.signIn })
  const connected = await clients.legacy(t, url)
  t.match(await connected.callTool({ name: 'echo', arguments: { message: 'x' } }), { content: [{ type: 'text' }] })
  t.same(parts.opened, [])
})

t.test('signs in to HTTP+SSE like Streamable HTTP', async (t) => {
  const oidc = await Oidc.start(t)
  const legacy = await LegacySse.start(t)
  const server = await Guarded.start(t, oidc, legacy.url)
  const parts = personParts(t)
  const { url } = await startBridge(t, { url: server.url, type: 'sse' }, {}, { signIn: parts.signIn })
  const client = await clients.modern(t, url)
  t.ok((await client.listTools()).tools.length > 0)
  t.equal(parts.opened.length, 1)
})

t.test('warming up a server at the start opens no window', async (t) => {
  const { bridge, opened, oidc } = await bridged(t, 'legacy')
  const told: unknown[] = []
  await bridge.warmUp((_mount, verdict) => told.push(verdict))
  t.same(told, [undefined])
  t.same(opened, [])
  t.equal(oidc.of('/reg').length, 0)
})

t.test('without "oauth", a server that requires credentials is a fault as before', async (t) => {
  const oidc = await Oidc.start(t)
  const server = await Guarded.start(t, oidc, await servers.modern(t))
  const parts = personParts(t)
  const { url } = await startBridge(t, { url: server.url, oauth: false }, {}, { signIn: parts.signIn })
  const failed = await clients.legacy(t, url).catch((error: unknown) => error)
  t.match(String(failed), /other credentials/)
  t.same(parts.opened, [])
})
