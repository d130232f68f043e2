/** Results of tools that are cut, on the wire: between some clients and servers (support/cut.ts), in groups, in searches, for other callers. */
import t, { type Test } from 'tap'
import { ROOM } from '../../src/middle/policy/cut/room.js'
import { Metrics } from '../../src/services/telemetry/metrics.js'
import type { Client, Json } from '../matrix/client.js'
import { CLIENTS, type ClientKind, connect } from '../matrix/clients.js'
import { nameOf } from '../matrix/run.js'
import { type Started, startBridge } from '../support/bridge.js'
import { testCut } from '../support/cut.js'
import {
  blocksOf,
  CUT,
  callTool,
  lengthy,
  linkIn,
  opened,
  readByResource,
  readByTool,
  uriIn,
} from '../support/cut-results.js'

testCut(t, 'some')

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
