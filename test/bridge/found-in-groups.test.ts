/** A group with a server that was found: it takes part while it is trusted, and clients hear when that changes. */
import { join } from 'node:path'
import t from 'tap'
import { guardedConnector } from '../../src/base/net/connect.js'
import { Guard } from '../../src/base/net/guard.js'
import type { MountTrust } from '../../src/services/discovery/trust/mount-trust.js'
import { TrustStore } from '../../src/services/discovery/trust/store.js'
import { trustStatusOf } from '../../src/services/discovery/trust/trust-status.js'
import { startBridge } from '../support/bridge.js'
import { temporaryFolder } from '../support/folder.js'
import { LegacyClient } from '../support/legacy-client.js'
import { ALL_LISTS, changed, hears, listen } from '../support/listening.js'
import { call } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { DAY, listOf } from '../support/trust.js'

const ENDPOINT = 'https://found.example/mcp'
const LISTS = [changed('tools'), changed('prompts'), changed('resources')]

t.test(
  'a discovered server enters a group when it is approved, and leaves it when the approval is revoked',
  async (t) => {
    const store = new TrustStore({ path: join(temporaryFolder(t), 'trust.json') })
    const lead: MountTrust = {
      plan: '',
      connect: guardedConnector({ guard: new Guard({ allowLoopback: true }) }),
      trustStatus: trustStatusOf({
        store,
        facts: () => ({ name: 'found', kind: 'http', endpoint: ENDPOINT, configured: false }),
      }),
      readOnly: [],
      state: () => ({ open: false, until: 0, reason: '' }),
      required: () => [],
      requiredByAny: () => [],
      heard() {},
      missed() {},
    }
    const known = await ModernHttp.start(t, { pages: 1 })
    const found = await ModernHttp.start(t)
    const mcpServers = { known: { url: known.url }, found: { url: found.url } }
    const started = await startBridge(t, {}, { mcpServers }, { lead: (name) => (name === 'found' ? lead : undefined) })
    const url = new URL('/mcp', started.url).href
    const legacy = await LegacyClient.open(url)
    const names = async () => {
      const all = [
        (await call(url, 'tools/list')).message.result,
        (await legacy.request('tools/list')).message.result,
      ] as { tools: { name: string }[] }[]
      return all.map(({ tools }) => [...new Set(tools.map(({ name }) => name.split('__')[0]))])
    }
    const stream = await listen(url, ALL_LISTS)
    await stream.has(1)
    t.same(await names(), [['known'], ['known']])
    t.match((await call(url, 'tools/call', { name: 'found__echo' })).message.error, { code: -32602 })

    const approved = { endpoint: ENDPOINT, name: 'found', bound: 'none', tools: ['*'], until: Date.now() + DAY }
    await store.approve({ ...approved, list: listOf(...(await toolsOf(found.url))) })
    t.same((await hears(stream, 3)).slice(0, 3), LISTS)
    t.same(await names(), [
      ['known', 'found'],
      ['known', 'found'],
    ])
    t.match((await call(url, 'tools/call', { name: 'found__echo', arguments: { a: 1 } })).message, { result: {} })

    const before = (await hears(stream, 3)).length
    await store.revoke(ENDPOINT)
    t.same((await hears(stream, before + 3)).slice(before), LISTS)
    t.same(await names(), [['known'], ['known']])
    t.match((await call(url, 'tools/call', { name: 'found__echo' })).message.error, { code: -32602 })
  },
)

/** The tools on all pages of a server. */
async function toolsOf(url: string): Promise<object[]> {
  const all: object[] = []
  let cursor: string | undefined
  do {
    const { result } = (await call(url, 'tools/list', cursor === undefined ? {} : { cursor })).message
    const page = result as { tools: object[]; nextCursor?: string }
    all.push(...page.tools)
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return all
}
