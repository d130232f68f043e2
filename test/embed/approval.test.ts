/** A person approves calls in a bridge that is part of a program: clients and servers of the SDKs, connected by transports in memory. */
import t from 'tap'
import { createBridge } from '../../src/app/embed/create.js'
import { Person, SDK_CLIENTS, SDK_SERVERS } from '../support/in-memory-sdks.js'

for (const [ofClient, connectClient] of Object.entries(SDK_CLIENTS))
  for (const [ofServer, serverOf] of Object.entries(SDK_SERVERS))
    t.test(`a client of ${ofClient} asks its person before a tool of ${ofServer} runs`, async (t) => {
      let ran = 0
      const wiped = () => {
        ran++
        return 'wiped'
      }
      const entry = { ...serverOf('wipe', wiped), tools: { approve: 'destructive', approveFor: '10m' } as const }
      const bridge = await createBridge({ mcpServers: { disk: entry } })
      t.teardown(() => bridge.close())
      const person = new Person()
      const { client, far, connect } = await connectClient(person)
      await bridge.connect(far)
      await connect()
      const wipe = () => client.callTool({ name: 'wipe', arguments: {} })
      t.match(await wipe(), { isError: true, content: [{ text: /the person has not approved it/ }] })
      person.answer = 'Do not run'
      t.match(await wipe(), { isError: true, content: [{ text: /the person has refused it/ }] })
      t.equal(ran, 0)
      person.answer = 'Run'
      t.match(await wipe(), { content: [{ text: 'wiped' }] })
      t.match(person.asked.at(-1), /^Run the tool "wipe" of the server "disk"\?/)
      person.answer = 'Run, and ask no more for 10 minutes'
      t.match(await wipe(), { content: [{ text: 'wiped' }] })
      t.match(await wipe(), { content: [{ text: 'wiped' }] })
      t.equal(person.asked.length, 4)
      t.equal(ran, 3)
      await client.close()
    })
