/** Results of tools that are cut, on the wire: between every client and every server, in groups, in searches, for other callers. */
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { ROOM } from '../../src/middle/policy/cut/room.js'
import { Metrics } from '../../src/services/telemetry/metrics.js'
import type { Client, Json, Message } from '../matrix/client.js'
import { CLIENTS, type ClientKind, connect, type Reachable } from '../matrix/clients.js'
import { nameOf } from '../matrix/run.js'
import { SERVERS } from '../matrix/servers.js'
import { type Started, startBridge } from '../support/bridge.js'

type Block = Json & { type: string; text?: string; uri?: string }

const lengthy = (plan: Json = {}) => ({
  command: process.execPath,
  args: [fileURLToPath(new URL('../fixtures/lengthy.mjs', import.meta.url)), JSON.stringify(plan)],
})
const LIMIT = 4_096
const CUT = { results: { cut: LIMIT } }

async function opened(kind: ClientKind, bridge: Reachable): Promise<Client> {
  const client = connect(kind, bridge)
  await client.open()
  return client
}

const blocksOf = ({ result }: Message) => (result?.['content'] ?? []) as Block[]
const callTool = async (client: Client, name: string, args: Json = {}) =>
  (await client.call('tools/call', { name, arguments: args })).message
/** The tools on each page of the list. */
const toolPages = async (client: Client) => {
  const pages: string[][] = []
  let cursor: unknown
  do {
    const { result = {} } = (await client.call('tools/list', cursor === undefined ? {} : { cursor })).message
    pages.push((result['tools'] as { name: string }[]).map(({ name }) => name))
    cursor = result['nextCursor']
  } while (cursor !== undefined)
  return pages
}
const toolNames = async (client: Client) => (await toolPages(client)).flat()

/** The URI that a text of the bridge names. */
function uriIn(blocks: readonly Block[]): string | undefined {
  const said = blocks.flatMap(({ type, text = '' }) =>
    type === 'text' ? (/\{"uri":"([^"]+)"\}/.exec(text) ?? []) : [],
  )
  return said[1]
}

const linkIn = (blocks: readonly Block[]) => blocks.find(({ type }) => type === 'resource_link')?.uri

/** All parts from a URI on, with the tool. */
async function readByTool(client: Client, uri: string, tool = 'read_more'): Promise<string[]> {
  const parts: string[] = []
  for (let next: string | undefined = uri; next !== undefined; ) {
    const blocks = blocksOf(await callTool(client, tool, { uri: next }))
    parts.push(blocks[0]?.text ?? JSON.stringify(blocks))
    next = uriIn(blocks.slice(1))
  }
  return parts
}

/** All parts from a URI on, as resources. */
async function readByResource(client: Client, uri: string): Promise<string[]> {
  const parts: string[] = []
  for (let next: string | undefined = uri; next !== undefined; ) {
    const { message } = await client.call('resources/read', { uri: next })
    if (!message.result) throw new Error(JSON.stringify(message))
    const [content, more] = message.result['contents'] as Json[]
    parts.push(String(content?.['text'] ?? content?.['blob'] ?? JSON.stringify(message)))
    if (more && content?.['uri'] !== next) throw new Error(`The content has another URI than ${next}`)
    next = more?.['uri'] as string | undefined
  }
  return parts
}

for (const clientKind of CLIENTS)
  for (const serverKind of SERVERS) {
    const pair = `${nameOf(clientKind)} client, ${nameOf(serverKind)} server`
    t.test(`${pair}: a long result is cut and read to its end, a short one passes byte for byte`, async (t) => {
      const server = await serverKind.start(t)
      const cut = await opened(clientKind, await startBridge(t, { ...server.entry, ...CUT }))
      const whole = await opened(clientKind, await startBridge(t, (await serverKind.start(t)).entry))
      t.notOk((await toolNames(whole)).includes('read_more'))
      t.ok((await toolNames(cut)).includes('read_more'))
      const long = { said: '\u{1f600}é"\\'.repeat(2_000) }
      const all = blocksOf(await callTool(whole, 'echo', long))[0]?.text as string
      const blocks = blocksOf(await callTool(cut, 'echo', long))
      t.ok(all.length > 3 * LIMIT)
      const first = blocks[0]?.text as string
      t.ok(Buffer.byteLength(first) <= LIMIT && Buffer.byteLength(first) > LIMIT - 4)
      const link = linkIn(blocks)
      t.ok(link?.startsWith('mcp-bridge://results/'), JSON.stringify(blocks).slice(0, 300))
      t.equal([first, ...(await readByTool(cut, uriIn(blocks) as string))].join(''), all)
      t.equal([first, ...(await readByResource(cut, link as string))].join(''), all)
      const short = { name: 'echo', arguments: { said: 'é'.repeat(500) } }
      const texts = await Promise.all(
        [whole, cut].map(async (client) => (await client.request('tools/call', short, { id: 'same' }).answer).text),
      )
      t.equal(texts[1], texts[0])
      t.same(server.complaints(), [])
      await whole.close()
      await cut.close()
    })
  }

for (const kind of CLIENTS)
  for (const era of ['modern', 'legacy']) {
    const who = `${nameOf(kind)} client, ${era} server`
    const plan = { modern: era === 'modern' }

    t.test(`${who}: several texts are one, and other blocks keep their places`, async (t) => {
      const client = await opened(kind, await startBridge(t, { ...lengthy(plan), ...CUT }))
      const blocks = blocksOf(await callTool(client, 'several'))
      t.match(blocks, [{ text: 'first' }, { type: 'image' }, { text: /^secondé+$/ }, { text: /part 1 of 2/ }, {}])
      t.equal(blocks.length, 5)
      const [rest = ''] = await readByTool(client, uriIn(blocks) as string)
      t.match(`${blocks[2]?.text}${rest}`, /^secondé{2497}\nthird$/)
      t.match(blocksOf(await callTool(client, 'long'))[0], { annotations: { priority: 1 } })
      await client.close()
    })

    t.test(`${who}: images, audio, files and long resources become links, which are read whole`, async (t) => {
      const client = await opened(kind, await startBridge(t, { ...lengthy(plan), ...CUT }))
      const blocks = blocksOf(await callTool(client, 'media'))
      const links = blocks.flatMap(({ type, uri = '' }) => (type === 'resource_link' ? uri : []))
      t.equal(links.length, 4)
      t.match(blocks.at(-1), { resource: { uri: 'file:///b.txt', text: 'short' } })
      const [image, blob, text, audio] = links as [string, string, string, string]
      t.equal((await readByResource(client, image)).join(), 'b'.repeat(8_000))
      t.equal((await readByResource(client, blob)).join(), 'c'.repeat(8_000))
      t.match((await readByResource(client, text)).join(''), /^# Aé+$/)
      t.equal((await readByResource(client, audio)).join(), 'd'.repeat(8_000))
      t.match(blocksOf(await callTool(client, 'read_more', { uri: audio })), [
        { type: 'audio', data: 'd'.repeat(8_000), mimeType: 'audio/wav' },
      ])
      t.match(blocksOf(await callTool(client, 'read_more', { uri: image })), [
        { type: 'image', data: 'b'.repeat(8_000), mimeType: 'image/png' },
      ])
      t.match(blocksOf(await callTool(client, 'read_more', { uri: blob })), [
        { type: 'resource', resource: { blob: 'c'.repeat(8_000) } },
      ])
      await client.close()
    })

    t.test(`${who}: structured content is whole where clients validate it, or a link with its shape`, async (t) => {
      const client = await opened(kind, await startBridge(t, { ...lengthy(plan), ...CUT }))
      const { result = {} } = await callTool(client, 'rows')
      t.notOk('structuredContent' in result)
      const blocks = result['content'] as Block[]
      t.match(blocks[0]?.text, /\{total: number, rows: \[500 of \{id: number, name: string\}\]\}/)
      const read = JSON.parse((await readByTool(client, uriIn(blocks) as string)).join(''))
      t.same([read.total, read.rows.length, read.rows[499].name], [500, 500, 'row 499'])
      const declared = await callTool(client, 'declared')
      t.equal(((declared.result?.['structuredContent'] as Json)['rows'] as Json[]).length, 500)
      t.match(blocksOf(declared)[1]?.text, /part 1 of/, 'its text is cut all the same')
      await client.close()
    })
  }

/** What the bridge itself adds to lists. */
const OWN = ['read_more', 'mcp_bridge_read_more', 'search_tools', 'call_tool']

for (const kind of CLIENTS)
  for (const modern of [true, false])
    t.test(
      `${nameOf(kind)} client, ${modern ? 'modern' : 'legacy'} server: the tools of the bridge are on the first page`,
      async (t) => {
        const paged = { ...lengthy({ modern, pages: 'first' }), ...CUT }
        const taken = { ...lengthy({ modern, pages: 'last', readMore: true }), ...CUT }
        const own = { ...lengthy({ modern }), ...CUT }
        const groups = (group: Json) => ({ mcpServers: { paged, taken, own }, groups: { all: group } })
        const cases: [server: Json, settings: Json, pages: number, names: string[]][] = [
          [own, {}, 1, ['read_more']],
          [paged, {}, 2, ['read_more']],
          [taken, {}, 2, ['mcp_bridge_read_more']],
          [{}, groups({}), 2, ['read_more']],
          [{}, groups({ prefix: 'never' }), 2, ['mcp_bridge_read_more']],
          [{}, groups({ search: true }), 1, ['search_tools', 'call_tool', 'read_more']],
        ]
        for (const [server, settings, count, names] of cases) {
          const bridge = await startBridge(t, server, settings)
          const url = 'groups' in settings ? new URL('/all/mcp', bridge.url).href : bridge.url
          const client = await opened(kind, { ...bridge, url })
          const pages = await toolPages(client)
          const listed = JSON.stringify([settings, pages])
          t.equal(pages.length, count, listed)
          t.same(
            pages[0]?.filter((name) => OWN.includes(name)),
            names,
            listed,
          )
          t.equal(new Set(pages.flat()).size, pages.flat().length, 'no name is there twice')
          await client.close()
        }
      },
    )

for (const kind of CLIENTS) {
  const who = `${nameOf(kind)} client`

  t.test(`${who}: a tool read_more of the server stays its own`, async (t) => {
    for (const pages of ['', 'first', 'last']) {
      const client = await opened(kind, await startBridge(t, { ...lengthy({ readMore: true, pages }), ...CUT }))
      t.match(blocksOf(await callTool(client, 'read_more', { page: 2 }))[0]?.text, /^own \{"page":2\}$/)
      const names = (await toolNames(client)).filter((name) => name.endsWith('read_more')).sort()
      t.same(names, ['mcp_bridge_read_more', 'read_more'])
      const blocks = blocksOf(await callTool(client, 'long'))
      for (const tool of names) t.match((await readByTool(client, uriIn(blocks) as string, tool)).join(''), /^é+$/)
      t.match(blocksOf(await callTool(client, 'read_more', { uri: 'elsewhere://x' }))[0]?.text, /^own/)
      await client.close()
    }
  })

  t.test(`${who}: what is not a result is refused in words`, async (t) => {
    const client = await opened(kind, await startBridge(t, { ...lengthy(), ...CUT }))
    const { result } = await callTool(client, 'read_more', { url: 'mcp-bridge://results/x' })
    t.match(result, { isError: true, content: [{ text: /needs the uri that a cut result names/ }] })
    const uri = linkIn(blocksOf(await callTool(client, 'long'))) as string
    for (const other of [`${uri.slice(0, -2)}/9`, `${uri.slice(0, -2)}/x`]) {
      t.match((await callTool(client, 'read_more', { uri: other })).result, { isError: true })
      t.match((await client.call('resources/read', { uri: other })).message, {
        error: { code: Number, message: /not kept any more/ },
      })
    }
    await client.close()
  })

  t.test(`${who}: a group has one tool, for all of its servers, also in its search`, async (t) => {
    const cases = [{}, { prefix: 'never' }, { prefix: 'never', resources: 'as-is' }, { search: true }]
    for (const group of cases) {
      const mcpServers = { a: { ...lengthy(), ...CUT }, b: { ...lengthy(), ...CUT }, c: lengthy() }
      const bridge = await startBridge(t, {}, { mcpServers, groups: { all: group } })
      const client = await opened(kind, { ...bridge, url: new URL('/all/mcp', bridge.url).href })
      const names = await toolNames(client)
      t.same(
        names.filter((name) => name.includes('read_more')),
        ['read_more'],
      )
      const name = 'prefix' in group ? 'long' : 'b__long'
      const through = (name: string, args: Json) =>
        'search' in group ? callTool(client, 'call_tool', { name, arguments: args }) : callTool(client, name, args)
      const blocks = blocksOf(await through(name, { bytes: 9_000 }))
      const first = blocks[0]?.text as string
      const [named, link] = [uriIn(blocks) as string, linkIn(blocks) as string]
      t.equal(`${first}${(await readByTool(client, named)).join('')}`, 'é'.repeat(4_500), JSON.stringify(group))
      t.equal(`${first}${(await readByResource(client, link)).join('')}`, 'é'.repeat(4_500))
      t.match(blocksOf(await through('read_more', { uri: link }))[0]?.text, /^é+$/)
      if (!('prefix' in group))
        t.match(blocksOf(await through('c__long', { bytes: 9_000 })), [{ text: 'é'.repeat(4_500) }])
      await client.close()
    }
  })
}

t.test('clients of revisions without links get the words', async (t) => {
  const kinds = CLIENTS.filter(({ era }) => era === 'legacy')
  for (const kind of kinds)
    for (const revision of ['2024-11-05', '2025-03-26']) {
      const bridge = await startBridge(t, { ...lengthy({ revision }), ...CUT })
      const client = connect(kind, bridge)
      const { message } = await client.open()
      const isDirect = message.result?.['protocolVersion'] === revision
      const blocks = blocksOf(await callTool(client, 'long'))
      t.equal(linkIn(blocks) === undefined, isDirect, `${nameOf(kind)} ${revision}`)
      t.match((await readByTool(client, uriIn(blocks) as string)).join(''), /^é+$/)
      await client.close()
    }
})

t.test('a tool has the first limit that fits its name at the server, and others have none', async (t) => {
  const cut = { 'lo*': '2 KiB', long: 8_000 }
  const entry = { ...lengthy(), results: { cut }, tools: { override: { long: { name: 'other' } } } }
  const { bridge, url } = await startBridge(t, entry)
  const client = await opened(CLIENTS[0] as ClientKind, { bridge, url, log: [] })
  t.equal(Buffer.byteLength(blocksOf(await callTool(client, 'other'))[0]?.text as string), 2_048)
  t.equal(blocksOf(await callTool(client, 'several')).length, 4)
  await client.close()
})

/** A bridge that tells two people apart, and a client of each. */
async function twoCallers(
  t: Test,
  entry: Json,
  settings: Json = {},
  context: object = {},
): Promise<[Client, Client, Started]> {
  const tokens = { ann: 'token-of-ann-0123456789-0123456789', ben: 'token-of-ben-0123456789-0123456789' }
  const bridge = await startBridge(t, entry, { ...settings, auth: { tokens } }, context)
  const of = (token: string) =>
    opened(CLIENTS[0] as ClientKind, { ...bridge, headers: { authorization: `Bearer ${token}` } })
  return [await of(tokens.ann), await of(tokens.ben), bridge]
}

t.test('the result of another caller is an unknown resource', async (t) => {
  const [ann, ben] = await twoCallers(t, { ...lengthy(), ...CUT })
  const uri = linkIn(blocksOf(await callTool(ann, 'long'))) as string
  t.match((await ben.call('resources/read', { uri })).message.error, { code: -32602, message: /^Resource not found/ })
  t.notMatch((await ben.call('resources/read', { uri })).message.error?.message, /kept/)
  const refused = await callTool(ben, 'read_more', { uri })
  t.match(refused.result, { isError: true, content: [{ text: /needs the uri that a cut result names/ }] })
  t.match(await readByResource(ann, uri), [/^é+$/])
  const forged = `${uri.slice(0, -12)}AAAAAAAAAA/2`
  t.match(
    (await ann.call('resources/read', { uri: forged })).message,
    { error: { code: -32601 } },
    'the server is asked',
  )
  await ann.close()
  await ben.close()
})

t.test(
  "a caller's later results push out its own earlier ones, in the middle of reading, and nobody else's",
  async (t) => {
    const metrics = new Metrics({ version: '1' })
    const admin = 'http://127.0.0.1:0'
    const [ann, ben, { bridge, log }] = await twoCallers(t, { ...lengthy(), ...CUT }, { admin }, { metrics })
    const links = async (client: Client, bytes: number) =>
      linkIn(blocksOf(await callTool(client, 'long', { bytes }))) as string
    const [first, second, other] = [await links(ann, 20_000), await links(ann, 20_002), await links(ben, 20_000)]
    t.match((await readByResource(ann, first)).length, 4)
    for (let more = 0; more < ROOM.owner.entries - 1; more++) await links(ann, 30_000 + 2 * more)
    const gone = (await ann.call('resources/read', { uri: `${first.slice(0, -2)}/3` })).message
    t.match(gone.error?.message, /It is not kept any more: .* Call the tool again\.$/)
    t.equal((await readByResource(ann, second)).length, 4)
    t.equal((await readByResource(ben, other)).length, 4)
    t.match(log.filter(({ pushedOut }) => pushedOut === 1).length, 1, 'the log line of the call says it')
    const counted = await (await fetch(new URL('/metrics', bridge.adminUrl))).text()
    const cut = ROOM.owner.entries + 2
    for (const [event, count] of Object.entries({ cut, whole: 0, pushed_out: 1 }))
      t.match(counted, `mcp_bridge_cut_results_total{server="test",event="${event}"} ${count}`)
    const [, bytes] = /cut_bytes_total\{server="test"\} (\d+)/.exec(counted) ?? []
    t.ok(Number(bytes) > 30_000 * cut - 20_000, `${bytes}`)
    await ann.close()
    await ben.close()
  },
)
