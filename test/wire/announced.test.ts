/**
 * An answer offers only what works: methods of what an endpoint announces reach the server, in both eras and behind all
 * options. What the bridge does not know is carried, and what it would refuse is not announced.
 */
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type Answering, answering, type Era } from '../support/answering.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { LegacyClient } from '../support/legacy-client.js'
import { call, envelope, headersFor, post } from '../support/modern.js'

type Json = Record<string, unknown>

const SKILLS = 'io.modelcontextprotocol/skills'
const NEWS = 'com.acme/news'
/** What a server announces that the bridge does not know. */
const FOREIGN = {
  extensions: { [NEWS]: { poll: true }, 'com.acme/x': {} },
  experimental: { y: { n: 1 } },
  vendor: { a: [1] },
}
const OWN = { tools: {}, prompts: {}, resources: {}, completions: {}, extensions: { [SKILLS]: {} } }
const ALL = { ...OWN, ...FOREIGN, extensions: { ...FOREIGN.extensions, ...OWN.extensions } }

/** The requests that a capability or extension announces. */
const METHODS: Record<string, Record<string, Json>> = {
  tools: { 'tools/list': {}, 'tools/call': { name: 'read' } },
  prompts: { 'prompts/list': {} },
  resources: { 'resources/list': {}, 'resources/read': { uri: 'test://a' } },
  completions: {
    'completion/complete': { ref: { type: 'ref/prompt', name: 'p' }, argument: { name: 'a', value: '' } },
  },
  [SKILLS]: { 'skills/list': {} },
  [NEWS]: { 'news/list': {}, 'news/poll': { cursor: '1' } },
  'com.acme/x': { 'x/do': { n: 1 } },
  experimental: { 'y/do': {} },
  vendor: { 'vendor/do': { name: 'read' } },
}
const FOREIGN_NAMES = [...Object.keys(FOREIGN.extensions), 'experimental', 'vendor']
const ANSWERS = {
  'tools/list': { tools: [{ name: 'read', inputSchema: { type: 'object' } }] },
  'tools/call': { content: [] },
  'prompts/list': { prompts: [{ name: 'p' }] },
  'resources/list': { resources: [{ name: 'a', uri: 'test://a' }] },
  'resources/read': { contents: [] },
  'completion/complete': { completion: { values: [] } },
  'skills/list': { skills: [] },
}

/** A server that answers all of it. */
function serverOf(t: Test, era: Era): Promise<Answering> {
  const answers = Object.values(METHODS).flatMap((methods) => Object.keys(methods).map((method) => [method, {}]))
  return serverWith(t, era, ALL, { ...Object.fromEntries(answers), ...ANSWERS })
}

function serverWith(t: Test, era: Era, capabilities: Json, answers: Record<string, Json>): Promise<Answering> {
  const opened =
    era === 'modern'
      ? { 'server/discover': { supportedVersions: ['2026-07-28'], capabilities } }
      : { initialize: { protocolVersion: '2025-11-25', capabilities, serverInfo: { name: 's', version: '1' } } }
  return answering(t, era, { ...answers, ...opened })
}

interface Client {
  announced: Json
  ask(method: string, params: Json): Promise<Json>
  notify(method: string): Promise<unknown>
}

const CLIENTS: Record<Era, (url: string) => Promise<Client>> = {
  modern: async (url) => {
    const { message } = await call(url, 'server/discover')
    return {
      announced: (message?.['result'] as { capabilities: Json }).capabilities,
      ask: async (method, params) => (await call(url, method, params)).message as Json,
      notify: (method) => {
        const body = JSON.stringify({ jsonrpc: '2.0', method, params: { _meta: envelope({}) } })
        return post(url, body, headersFor(method))
      },
    }
  },
  legacy: async (url) => {
    const client = await LegacyClient.open(url)
    return {
      announced: (client.opened.message?.['result'] as { capabilities: Json }).capabilities,
      ask: async (method, params) => (await client.request(method, params)).message as Json,
      notify: (method) => client.post({ jsonrpc: '2.0', method }),
    }
  },
}

/** The names of what is announced. */
function namesIn({ extensions = {}, ...others }: Json): string[] {
  return [...Object.keys(others), ...Object.keys(extensions as Json)]
}

interface Option {
  entry?: object
  settings?: (t: Test) => object
  /** What the bridge does not know is carried. */
  carries: boolean
}

const OPTIONS: Record<string, Option> = {
  'nothing configured': { carries: true },
  'an audit log': { settings: (t) => ({ audit: { file: join(temporaryFolder(t), 'audit.log') } }), carries: true },
  'a choice of all': { entry: { tools: ['*'], prompts: { allow: ['*'] }, resources: { allow: ['*'] } }, carries: true },
  'scopes that require nothing': { entry: { scopes: { '*': [] } }, carries: true },
  'a limit': {
    settings: () => ({ limits: { tools: [{ tools: 'test__read', per: 'all', max: 1_000, every: '1h' }] } }),
    carries: true,
  },
  'the cache': { entry: { cache: 'hints' }, carries: true },
  'one session for all': { entry: { session: 'shared' }, carries: true },
  'tools that are denied': { entry: { tools: { deny: ['w*'] } }, carries: false },
  'tools that are allowed': { entry: { tools: ['r*'] }, carries: false },
  'a tool in other words': { entry: { tools: { override: { read: { title: 'Read' } } } }, carries: false },
  'prompts that are denied': { entry: { prompts: { deny: ['q'] } }, carries: false },
  'resources that are allowed': { entry: { resources: { allow: ['test://*'] } }, carries: false },
  'scopes that the caller lacks': { entry: { scopes: { 'w*': ['write'] } }, carries: false },
}

async function checkOffer(t: Test, client: Client, server: Answering, carries: boolean): Promise<void> {
  const names = namesIn(client.announced)
  for (const name of FOREIGN_NAMES) t.equal(names.includes(name), carries, `${name} is announced: ${carries}`)
  for (const name of names)
    for (const [method, params] of Object.entries(METHODS[name] ?? {})) {
      const answer = await client.ask(method, params)
      t.notOk(answer['error'], `${name} is announced, and ${method} works: ${JSON.stringify(answer['error'])}`)
      if (FOREIGN_NAMES.includes(name))
        t.match(server.got.findLast((one) => one.method === method)?.params ?? {}, params)
    }
  if (!carries) return
  await client.notify('notifications/vendor/done')
  await until(() => server.got.some(({ method }) => method === 'notifications/vendor/done'), 'the notification')
}

t.jobs = 4
for (const clientEra of ['modern', 'legacy'] as const)
  for (const serverEra of ['modern', 'legacy'] as const)
    for (const [what, { entry = {}, settings = () => ({}), carries }] of Object.entries(OPTIONS))
      t.test(`a ${clientEra} client, a ${serverEra} server, ${what}`, { buffered: true }, async (t) => {
        const server = await serverOf(t, serverEra)
        const { url } = await startBridge(t, { ...server.server, ...entry }, settings(t))
        const client = await CLIENTS[clientEra](url)
        await checkOffer(t, client, server, carries)
        if (carries) t.match(client.announced, FOREIGN, 'unchanged')
      })

/** Groups of the server, with others. */
const GROUPS: Record<string, { group?: object; entry?: object; others: Json[]; carries: boolean }> = {
  'a group of one': { others: [], carries: true },
  'a group of one with a prefix': { group: { prefix: 'always' }, others: [], carries: true },
  'a group of one with denied tools': { entry: { tools: { deny: ['w*'] } }, others: [], carries: false },
  'a group with a server that has only what is known': {
    group: { prefix: 'never' },
    others: [{ tools: {} }],
    carries: true,
  },
  'a group whose servers both have something unknown': {
    group: { prefix: 'never' },
    others: [{ tools: {}, other: {} }],
    carries: false,
  },
}

for (const clientEra of ['modern', 'legacy'] as const)
  for (const serverEra of ['modern', 'legacy'] as const)
    for (const [what, { group = {}, entry = {}, others, carries }] of Object.entries(GROUPS))
      t.test(`a ${clientEra} client, a ${serverEra} server, ${what}`, { buffered: true }, async (t) => {
        const server = await serverOf(t, serverEra)
        const more = await Promise.all(
          others.map((capabilities) => serverWith(t, serverEra, capabilities, { 'tools/list': { tools: [] } })),
        )
        const mcpServers = Object.fromEntries(more.map((one, i) => [`other${i}`, one.server]))
        const { url, bridge } = await startBridge(
          t,
          {},
          {
            mcpServers: { test: { ...server.server, ...entry }, ...mcpServers },
            groups: { all: { servers: ['test', ...Object.keys(mcpServers)], ...group } },
          },
        )
        await bridge.warmUp(() => {})
        const client = await CLIENTS[clientEra](new URL('/all/mcp', url).href)
        const prefixed = 'prefix' in group && group.prefix === 'always'
        const asking = !prefixed
          ? client
          : {
              ...client,
              ask: (method: string, params: Json) =>
                client.ask(method, method === 'tools/call' ? { name: 'test__read' } : named(params)),
            }
        await checkOffer(t, asking, server, carries)
      })

/** Params with the name of the prompt in a group with prefixes. */
function named(params: Json): Json {
  const { ref } = params as { ref?: Json }
  return ref ? { ...params, ref: { ...ref, name: 'test__p' } } : params
}
