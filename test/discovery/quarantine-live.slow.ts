/**
 * A server in quarantine sees nothing of what is refused, whoever calls it and however it is reached: every client with
 * every server of the matrix. After an approval it works, and after its tools have changed it does not any more.
 */

import { join } from 'node:path'
import t, { type Test } from 'tap'
import { guardedConnector } from '../../src/base/net/connect.js'
import { Guard } from '../../src/base/net/guard.js'
import type { ToolList, TrustStatus } from '../../src/mcp/ports/trust-status.js'
import type { MountTrust } from '../../src/services/discovery/trust/mount-trust.js'
import { TrustStore } from '../../src/services/discovery/trust/store.js'
import { trustStatusOf } from '../../src/services/discovery/trust/trust-status.js'
import type { Client } from '../matrix/client.js'
import { CLIENTS, type ClientKind, connect } from '../matrix/clients.js'
import { SERVERS, type ServerKind } from '../matrix/servers.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { LegacyClient } from '../support/legacy-client.js'
import { call } from '../support/modern.js'
import { DAY, listOf } from '../support/trust.js'

const CANARY = 'not-for-strangers'
const ENDPOINT = 'https://found.example/mcp'
const nameOf = ({ era, transport }: ClientKind | ServerKind) => `${era} ${transport}`

/** A server that was found and that nobody vouches for, with the means to change that. */
function leadOf(t: Test, more: Partial<MountTrust> = {}) {
  const store = new TrustStore({ path: join(temporaryFolder(t), 'trust.json') })
  const known: { tools?: ToolList | undefined } = {}
  const facts = () => ({ name: 'found', kind: 'http', endpoint: ENDPOINT, configured: false }) as const
  const trustStatus = trustStatusOf({ store, facts })
  const lead: MountTrust = {
    plan: '',
    connect: guardedConnector({ guard: new Guard({ allowLoopback: true }) }),
    trustStatus: (tools) => {
      known.tools = tools ?? known.tools
      return trustStatus(tools)
    },
    readOnly: [],
    state: () => ({ open: false, until: 0, reason: '' }),
    required: () => [],
    requiredByAny: () => [],
    heard() {},
    missed() {},
    ...more,
  }
  const approve = (list: ToolList, tools = ['*']) =>
    store.approve({ endpoint: ENDPOINT, name: 'found', bound: 'none', tools, until: Date.now() + DAY, list })
  return { lead, store, known, approve }
}

/** What is asked for, and refused. */
const REFUSED: [method: string, params: Record<string, unknown>][] = [
  ['tools/call', { name: 'act', arguments: { key: CANARY } }],
  ['tools/call', { name: 'echo', arguments: { say: CANARY } }],
  ['tools/call', { name: CANARY, arguments: {} }],
  ['prompts/get', { name: 'greet', arguments: { who: CANARY } }],
  ['resources/read', { uri: `test://${CANARY}` }],
  ['completion/complete', { ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'who', value: CANARY } }],
  [`com.example/${CANARY}`, { secret: CANARY }],
]

async function refusals(t: Test, client: Client): Promise<void> {
  for (const [method, params] of REFUSED) {
    const { message } = await client.request(method, params, { meta: { 'com.example/note': CANARY } }).answer
    const said = JSON.stringify(message)
    if (method === 'tools/call') {
      t.equal(message.result?.['isError'], true, `${method} is refused in its result`)
      t.match(
        said,
        /was not sent to[\s\S]*mcp-bridge trust approve https:\/\/found\.example\/mcp/,
        'and says how to allow it',
      )
    } else t.ok(message.error, `${method} is refused`)
  }
}

for (const client of CLIENTS) {
  for (const kind of SERVERS) {
    t.test(`${nameOf(client)} client, ${nameOf(kind)} server`, async (t) => {
      const server = await kind.start(t)
      const { lead, known, approve, store } = leadOf(t)
      const bridge = await startBridge(t, server.entry, {}, { lead: () => lead })
      const one = connect(client, bridge, { capabilities: { roots: {} } })
      t.teardown(() => one.close())
      const opened = await one.open()
      t.ok(opened.message.result, 'a session can be had')
      t.notOk(opened.message.result?.['instructions'], 'and the server gives no instructions')
      const listed = await one.request('tools/list').answer
      t.match(JSON.stringify(listed.message.result), /mcp-bridge\/quarantined/, 'its tools are listed and marked')
      await refusals(t, one)
      await one.notify('notifications/roots/list_changed', { note: CANARY })
      await one.notify(`notifications/com.example/${CANARY}`, { note: CANARY })

      const seen = () => server.reached().map(({ text }) => text)
      t.same(
        server.reached().filter(({ message }) => message['method'] === 'tools/call'),
        [],
        'no call of a tool has reached the server',
      )
      t.notMatch(seen().join('\n'), CANARY, 'nor has anything of what was in them')
      t.notMatch(seen().join('\n'), 'matrix', 'nor the name of who asked')

      // Somebody has looked at its tools, all pages of them.
      let cursor: unknown
      do {
        const page = await one.request('tools/list', cursor === undefined ? {} : { cursor }).answer
        cursor = page.message.result?.['nextCursor']
      } while (cursor !== undefined)
      await approve(listOf())
      const other = await one.request('tools/call', { name: 'act', arguments: { key: 'one' } }).answer
      t.match(JSON.stringify(other.message), /tools have changed/, 'an approval of other tools is none')
      const list = known.tools as ToolList
      t.ok(list.tools.has('act') && list.tools.has('mirrored'), 'its tools have been looked at')
      t.ok(store.approvalOf(ENDPOINT)?.withdrawn, 'and what was approved does not hold any longer')

      await approve(list)
      const allowed = await one.request('tools/call', { name: 'act', arguments: { key: 'one' } }).answer
      t.notOk(allowed.message.result?.['isError'], 'after an approval it works')
      t.ok(allowed.message.result)
      t.equal(server.reached().filter(({ message }) => message['method'] === 'tools/call').length, 1)

      await store.revoke(ENDPOINT)
      const again = await one.request('tools/call', { name: 'act', arguments: { key: CANARY } }).answer
      t.equal(again.message.result?.['isError'], true, 'and not after that is taken back')
      t.notMatch(seen().join('\n'), CANARY)
      await one.close()
      await bridge.bridge.close()
      await until(() => server.open() === 0, 'nothing is left at the server')
    })
  }
}

t.test('a tool that only reads, or that the operator has listed, can be called at once', async (t) => {
  for (const kind of SERVERS) {
    const server = await kind.start(t)
    const { lead } = leadOf(t, { readOnly: ['ech*', 'act'] })
    const { bridge, url, log } = await startBridge(t, server.entry, {}, { lead: () => lead })
    for (const client of CLIENTS.filter(({ transport }) => transport === 'HTTP')) {
      const one = connect(client, { bridge, url, log })
      await one.open()
      const echo = await one.request('tools/call', { name: 'echo', arguments: { say: 'hello' } }).answer
      t.notOk(echo.message.result?.['isError'], `${nameOf(client)}: it reads, and is listed`)
      const act = await one.request('tools/call', { name: 'act', arguments: { key: CANARY } }).answer
      t.equal(
        act.message.result?.['isError'],
        true,
        `${nameOf(client)}: it is listed, and does not say that it only reads`,
      )
      await one.close()
    }
    t.notMatch(JSON.stringify(server.reached()), CANARY, `${nameOf(kind)}: nothing of it was seen`)
    await bridge.close(true)
  }
})

t.test('sends nothing to a refused server, and answers for a suspended one', async (t) => {
  for (const kind of SERVERS) {
    const server = await kind.start(t)
    const refused: TrustStatus = {
      state: 'refused',
      dependsOnTools: false,
      reason: 'it shows another key',
      missing: 'the right one',
      remedy: 'mcp-bridge trust pin x',
    }
    const { lead } = leadOf(t, { trustStatus: () => refused })
    const { bridge, url, log } = await startBridge(t, server.entry, {}, { lead: () => lead })
    for (const client of CLIENTS.filter(({ transport }) => transport === 'HTTP')) {
      const one = connect(client, { bridge, url, log })
      const opened = await one.open()
      t.match(opened.message.error?.message, /another key[\s\S]*trust pin x/, nameOf(client))
      await one.close()
    }
    t.same(server.reached(), [], `${nameOf(kind)}: nothing has reached it`)
    await bridge.close(true)
  }
})

t.test('lists the tools of a suspended server, and answers calls at once', async (t) => {
  for (const kind of SERVERS) {
    const server = await kind.start(t)
    const state = { open: false, until: 0, reason: 'nobody answers' }
    const { lead } = leadOf(t, { state: () => state })
    const { bridge, url, log } = await startBridge(t, server.entry, {}, { lead: () => lead })
    const client = connect(CLIENTS[0] as ClientKind, { bridge, url, log })
    await client.open()
    const before = await client.request('tools/list').answer
    Object.assign(state, { open: true, until: Date.now() + 60_000 })
    const reached = server.reached().length
    const after = await client.request('tools/list').answer
    const names = (tools: unknown) => (tools as { name: string }[]).map(({ name }) => name)
    t.same(names(after.message.result?.['tools']), names(before.message.result?.['tools']), 'the same tools')
    t.match(
      JSON.stringify(after.message),
      /\(unavailable\)[\s\S]*mcp-bridge\/unavailable/,
      'which say that they cannot be had',
    )
    const call = await client.request('tools/call', { name: 'echo', arguments: {} }).answer
    t.match(call.message.error, { data: { reason: 'upstream_unavailable' } })
    t.match(call.message.error?.message, /nobody answers/)
    t.equal(server.reached().length, reached, `${nameOf(kind)}: nobody has asked it`)
    await client.close()
    await bridge.close(true)
  }
})

t.test('scopes apply to every client, also for a configured server', async (t) => {
  const tokens = {
    reader: { token: 'reader-reader-reader', scopes: ['read'] },
    writer: { token: 'writer-writer-writer', scopes: ['read', 'write'] },
    nobody: 'nobody-nobody-nobody',
  }
  const scopes = { echo: ['read'], 'a*': ['read', 'write'] }
  for (const kind of SERVERS) {
    const server = await kind.start(t)
    const { bridge, url } = await startBridge(t, { ...server.entry, scopes }, { auth: { tokens } })
    const asks = async (token: string, tool: string) => {
      const authorization = `Bearer ${token}`
      const modern = await call(
        url,
        'tools/call',
        { name: tool, arguments: { key: CANARY } },
        { headers: { authorization } },
      )
      const legacy = await LegacyClient.open(url, { headers: { authorization } })
      const old = await legacy.call(tool, { key: CANARY })
      const listed = await call(url, 'tools/list', {}, { headers: { authorization } })
      const isListed = JSON.stringify(listed.message.result).includes(`"name":"${tool}"`)
      return [modern.message.result?.['isError'] !== true, !/insufficient_scope/.test(JSON.stringify(old)), isListed]
    }
    const no = [false, false, false]
    t.same(await asks(tokens.nobody, 'echo'), no, 'no scope')
    t.same(await asks(tokens.reader.token, 'act'), no, 'one of two scopes')
    t.notMatch(JSON.stringify(server.reached()), CANARY, `${nameOf(kind)}: nothing of it was seen`)
    const yes = [true, true, true]
    t.same(await asks(tokens.reader.token, 'echo'), yes, 'the scope')
    t.same(await asks(tokens.writer.token, 'act'), yes, 'both scopes')
    await bridge.close(true)
  }
})
