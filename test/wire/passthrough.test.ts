/** Credentials of clients: they go to the one server where that is what the configuration says, and nowhere else. */
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { parseSettings } from '../../src/config/settings.js'
import { startBridge } from '../support/bridge.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { call, send } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { type Arrival, PlainHttp, sendText } from '../support/plain-http.js'

const CANARY = 'Bearer canary-of-a-client-0123456789'
const authorization = CANARY
const passthrough = { auth: { passthrough: true } }
const METADATA = '/.well-known/oauth-protected-resource'

/** Each era of server, and the credentials that came with what it has heard. */
const SERVERS: Record<string, (t: Test) => Promise<{ url: string; credentials(): [what: string, said: unknown][] }>> = {
  modern: async (t) => {
    const modern = await ModernHttp.start(t)
    return {
      url: modern.url,
      credentials: () =>
        modern.received.map(({ method, message, headers }) => [
          `${method} ${message?.['method']}`,
          headers.authorization,
        ]),
    }
  },
  legacy: async (t) => {
    const legacy = await LegacyHttp.start(t)
    return {
      url: legacy.url,
      credentials: () =>
        legacy.received.map(({ method, message, headers }) => [
          `${method} ${message['method']}`,
          headers.authorization,
        ]),
    }
  },
}

/** What clients of both eras do, with their credentials. */
async function use(url: string): Promise<void> {
  for (let n = 0; n < 2; n++)
    await call(url, 'tools/call', { name: 'echo', arguments: {} }, { headers: { authorization } })
  const legacy = await LegacyClient.open(url, { headers: { authorization } })
  const listening = await legacy.listen()
  await legacy.call('echo')
  await legacy.notify('notifications/vendor')
  await legacy.request('resources/subscribe', { uri: 'test://static' })
  listening.leave()
  await legacy.end()
}

for (const [era, start] of Object.entries(SERVERS)) {
  t.test(`a ${era} server gets no credentials of clients, unless pass-through is configured`, async (t) => {
    const closed = await start(t)
    await use((await startBridge(t, { url: closed.url })).url)
    t.ok(closed.credentials().length > 5)
    t.same(
      closed.credentials().filter(([, said]) => said !== undefined),
      [],
    )
    const own = await start(t)
    await use((await startBridge(t, { url: own.url, headers: { Authorization: 'Bearer own' } })).url)
    t.same(
      [...new Set(own.credentials().map(([, said]) => said))],
      ['Bearer own'],
      'what the configuration says is sent',
    )
  })

  t.test(`a ${era} server gets credentials of clients unchanged with pass-through`, async (t) => {
    const server = await start(t)
    const { url, log } = await startBridge(t, { url: server.url }, passthrough)
    await use(url)
    t.ok(server.credentials().length > 5)
    t.same(
      server.credentials().filter(([, said]) => said !== CANARY),
      [],
      'the probe has those of whoever was first',
    )
    t.notMatch(JSON.stringify(log), /canary/)
    await call(url, 'tools/list')
    t.equal(server.credentials().at(-1)?.[1], undefined, 'who shows none sends none')
  })
}

/** A server that sends everybody to another. */
async function redirecting(t: Test, status: number, first: (arrival: Arrival, response: ServerResponse) => boolean) {
  const trap = await PlainHttp.start(t, (_arrival, response) => sendText(response, '{}'))
  const server = await PlainHttp.start(t, (arrival, response) => {
    if (!first(arrival, response)) response.writeHead(status, { location: trap.url }).end()
  })
  return { trap, server }
}

const DISCOVERED = { resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities: {} }

t.test('follows no redirect to another origin, and sends no credential there', async (t) => {
  for (const status of [301, 302, 307, 308]) {
    const always = await redirecting(t, status, () => false)
    const { url } = await startBridge(t, { url: always.server.url }, passthrough)
    const answer = await call(url, 'tools/list', {}, { headers: { authorization } })
    t.ok(answer.status >= 500, `${status}: ${answer.status}`)

    const later = await redirecting(t, status, ({ message }, response) => {
      if (message?.['method'] !== 'server/discover') return false
      sendText(response, JSON.stringify({ jsonrpc: '2.0', id: message['id'], result: DISCOVERED }))
      return true
    })
    const other = await startBridge(t, { url: later.server.url }, passthrough)
    await other.bridge.server.warmUp()
    await call(other.url, 'tools/list', {}, { headers: { authorization } })
    await LegacyClient.open(other.url, { headers: { authorization } })
    t.equal(always.trap.received.length + later.trap.received.length, 0, `${status}`)
  }
})

t.test("a refusal of the client's credentials reaches it, with the address of the bridge's own metadata", async (t) => {
  const challenge = 'Bearer realm="x", resource_metadata="https://elsewhere.example/meta", error="invalid_token"'
  let refusing = false
  for (const [era, start] of [
    ['modern', (override: Override) => ModernHttp.start(t, { override })],
    ['legacy', (override: Override) => LegacyHttp.start(t, { override })],
  ] as const) {
    refusing = false
    const server = await start((_arrived, response) => {
      if (refusing) response.writeHead(401, { 'www-authenticate': challenge }).end()
      return refusing
    })
    const { url, bridge } = await startBridge(t, { url: server.url }, passthrough)
    await bridge.server.warmUp()
    const client = await LegacyClient.open(url, { headers: { authorization } })
    refusing = true
    const ours = `resource_metadata="${new URL(METADATA, url).href}/mcp"`
    const headers = { authorization }
    const answers = [
      ['modern', await call(url, 'tools/list', {}, { id: 'm', headers })],
      ['initialize', (await LegacyClient.open(url, { headers })).opened],
    ] as const
    for (const [who, answer] of answers) {
      const name = `${who} client, ${era} server`
      t.equal(answer.status, 401, name)
      t.equal(answer.headers['www-authenticate'], challenge.replace(/resource_metadata="[^"]*"/, ours), name)
      t.equal(answer.message.error?.code, -32603, name)
      t.notOk('result' in answer.message, name)
    }
    const called = await client.call('echo')
    t.equal(called.status, 401, `a call of a legacy client, ${era} server`)
    t.match(called.headers['www-authenticate'], ours, era)
  }
})

t.test("the metadata are the server's, with the address that the client knows", async (t) => {
  const server = await PlainHttp.start(t, ({ path, message }, response) => {
    if (path === `${METADATA}/mcp`)
      return sendText(
        response,
        '{"resource":"http://server.example/mcp","authorization_servers":["https://as.example"],"x":1.0}',
      )
    sendText(response, JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], result: DISCOVERED }))
  })
  const { url } = await startBridge(t, { url: server.url }, passthrough)
  const answer = await send('GET', `${new URL(METADATA, url).href}/mcp`, undefined, {})
  t.equal(answer.status, 200)
  t.equal(answer.text, `{"resource":"${url}","authorization_servers":["https://as.example"],"x":1.0}`)
})

t.test('a group of one server passes credentials through like the endpoint of the server', async (t) => {
  const metadata = (resource: string) => `{"resource":"${resource}","authorization_servers":["https://as.example"]}`
  const challenge = 'Bearer error="invalid_token"'
  let refusing = false
  const override = ({ path }: { path?: string }, response: ServerResponse) => {
    const isMetadata = path?.startsWith(METADATA) === true
    if (isMetadata) sendText(response, metadata('http://server.example/mcp'))
    else if (refusing) response.writeHead(401, { 'www-authenticate': challenge }).end()
    return isMetadata || refusing
  }
  for (const [era, start] of [
    ['modern', () => ModernHttp.start(t, { override })],
    ['legacy', () => LegacyHttp.start(t, { override })],
  ] as const) {
    refusing = false
    const [one, other] = [await start(), await start()]
    const mcpServers = { one: { url: one.url }, other: { url: other.url } }
    const { url, bridge } = await startBridge(
      t,
      {},
      { ...passthrough, mcpServers, groups: { team: { servers: ['one'] } } },
    )
    const at = (path: string) => new URL(path, url).href
    for (const path of ['/team/mcp', '/one/mcp']) {
      const answer = await send('GET', at(METADATA + path), undefined, {})
      t.same([answer.status, answer.text], [200, metadata(at(path))], `${path}, ${era} server`)
    }
    t.equal((await send('GET', at(`${METADATA}/mcp`), undefined, {})).status, 404, 'there is no group of all')

    const headers = { authorization }
    t.equal((await call(at('/team/mcp'), 'tools/list', {}, { headers })).status, 200)
    const legacy = await LegacyClient.open(at('/team/mcp'), { headers })
    refusing = true
    const ours = `resource_metadata="${at(`${METADATA}/team/mcp`)}"`
    for (const [what, answer] of [
      ['a list, which was answered before', await call(at('/team/mcp'), 'tools/list', {}, { headers })],
      ['a call', await call(at('/team/mcp'), 'tools/call', { name: 'echo', arguments: {} }, { headers })],
      ['a call of a legacy client', await legacy.call('echo')],
      ['a list of a legacy client', await legacy.request('tools/list')],
    ] as const) {
      t.equal(answer.status, 401, `${what}, ${era} server`)
      t.match(String(answer.headers['www-authenticate']), ours, `${what}, ${era} server`)
    }
    await bridge.close()
  }
})

t.test('the metadata at a group are those of its only server after a reload', async (t) => {
  const metadataOf = (name: string) =>
    PlainHttp.start(t, (_arrival, response) => sendText(response, `{"of":"${name}"}`))
  const mcpServers = { one: { url: (await metadataOf('one')).url }, other: { url: (await metadataOf('other')).url } }
  const settings = (server: string) => ({ ...passthrough, mcpServers, groups: { team: { servers: [server] } } })
  const { url, bridge } = await startBridge(t, {}, settings('one'))
  const get = async () => (await send('GET', new URL(`${METADATA}/team/mcp`, url).href, undefined, {})).message
  t.match(await get(), { of: 'one' })
  await bridge.reload(
    parseSettings({ ...settings('other'), listen: 'http://127.0.0.1:0/mcp' }, { env: {}, read: () => '' }),
  )
  t.match(await get(), { of: 'other' })
})

type Override = (arrived: unknown, response: ServerResponse) => boolean
