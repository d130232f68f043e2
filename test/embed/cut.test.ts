/** Results are cut in a bridge that is part of a program: clients and servers of the SDKs, connected by transports in memory. */
import t from 'tap'
import { createBridge } from '../../src/app/embed/create.js'
import { SDK_CLIENTS, SDK_SERVERS } from '../support/in-memory-sdks.js'

const ALL = 'é'.repeat(5_000)
type Block = { type: string; text?: string; uri?: string }

for (const [ofClient, connectClient] of Object.entries(SDK_CLIENTS))
  for (const [ofServer, serverOf] of Object.entries(SDK_SERVERS))
    t.test(`a client of ${ofClient} reads a long result of ${ofServer} in parts, in both ways`, async (t) => {
      const entry = { ...serverOf('tell', () => ALL), results: { cut: '4 KiB' } }
      const bridge = await createBridge({ mcpServers: { book: entry } })
      t.teardown(() => bridge.close())
      const { client, far, connect } = await connectClient()
      await bridge.connect(far)
      await connect()
      const { tools } = await client.listTools()
      t.same(
        tools.map(({ name }) => name),
        ['tell', 'read_more'],
      )
      const call = async (name: string, args: Record<string, unknown>) =>
        (await client.callTool({ name, arguments: args }))['content'] as Block[]
      const first = await call('tell', {})
      const uri = first.find(({ type }) => type === 'resource_link')?.uri ?? ''
      t.equal(Buffer.byteLength(first[0]?.text ?? ''), 4_096)
      const byTool = [first[0]?.text]
      for (let next: string | undefined = uri; next !== undefined; ) {
        const blocks = await call('read_more', { uri: next })
        byTool.push(blocks[0]?.text)
        next = blocks.find(({ type }) => type === 'resource_link')?.uri
      }
      t.equal(byTool.join(''), ALL)
      const byResource = [first[0]?.text]
      for (let next: string | undefined = uri; next !== undefined; ) {
        const contents = (await client.readResource({ uri: next })).contents as Block[]
        byResource.push(contents[0]?.text)
        next = contents[1]?.uri
      }
      t.equal(byResource.join(''), ALL)
      t.match(await client.callTool({ name: 'read_more', arguments: { uri: `${uri}9` } }), { isError: true })
      await client.close()
    })
