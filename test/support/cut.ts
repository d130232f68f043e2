/** Results of tools that are cut, between every client and every server: wire/cut.test.ts has a part of the pairs, wire/cut.slow.ts the others. */
import type { Test } from 'tap'
import type { Era, Json } from '../matrix/client.js'
import { CLIENTS, type ClientKind } from '../matrix/clients.js'
import { pairsOf } from '../matrix/pairs.js'
import { nameOf } from '../matrix/run.js'
import type { ServerKind } from '../matrix/servers.js'
import { startBridge } from './bridge.js'
import {
  type Block,
  blocksOf,
  CUT,
  callTool,
  LIMIT,
  lengthy,
  linkIn,
  opened,
  readByResource,
  readByTool,
  toolNames,
  toolPages,
  uriIn,
} from './cut-results.js'

/** A part of the tests. Some have each client and each server, and translate from each era into the other. */
export function testCut(t: Test, part: 'some' | 'rest'): void {
  for (const [client, server] of pairsOf(part)) testPair(t, client, server)
  const isOf = (some: boolean) => some === (part === 'some')
  for (const client of CLIENTS) {
    const isHttp = client.transport === 'HTTP'
    for (const era of ['modern', 'legacy'] as const) {
      const isTranslated = era !== client.era
      if (isOf(isTranslated)) testBlocks(t, client, era)
      if (isOf(isTranslated && isHttp)) testPages(t, client, era === 'modern')
    }
    if (isOf(isHttp)) testClient(t, client)
  }
}

function testPair(t: Test, clientKind: ClientKind, serverKind: ServerKind): void {
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

function testBlocks(t: Test, kind: ClientKind, era: Era): void {
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

function testPages(t: Test, kind: ClientKind, modern: boolean): void {
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
}

function testClient(t: Test, kind: ClientKind): void {
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
