/** Somebody who wants through: a client that knows of tools, prompts and resources which the configuration hides. */
import type { Test } from 'tap'
import { connect } from '../matrix/clients.js'
import { pairsOf } from '../matrix/pairs.js'
import { nameOf } from '../matrix/run.js'
import { Raw } from '../matrix/wire.js'
import { admitted, attempts, CHOICE, HIDDEN, showsOnlyWhatIsChosen } from './attempts.js'
import { startBridge } from './bridge.js'
import type { Part } from './part.js'

/** Tests that nothing which a client sends names them at the server. */
export function testChoice(t: Test, part: Part): void {
  for (const [clientKind, serverKind] of pairsOf(part))
    t.test(`${nameOf(clientKind)} client, ${nameOf(serverKind)} server`, async (t) => {
      const server = await serverKind.start(t)
      const cache = clientKind.transport === 'HTTP' ? 60_000 : 'off'
      const bridge = await startBridge(t, { ...server.entry, ...CHOICE, cache })
      const open = async () => {
        const client = connect(clientKind, bridge)
        await client.open()
        return client
      }
      const client = await open()
      await showsOnlyWhatIsChosen(t, client)
      t.same(await admitted(client, attempts()), [], 'everything is refused')
      await client.notify('notifications/vendor', { name: 'act' })
      await client.notify('tools/call', { name: 'act', arguments: {} })
      const said = await client.call('tools/call', { name: 'say', arguments: { n: new Raw('1.0') } })
      t.match(said.message, { result: { content: [{ text: '{"n":1.0,"org":"acme"}' }] } })
      t.match((await client.call('resources/read', { uri: 'test://static' })).message, { result: { contents: [{}] } })
      await client.close()
      const other = await open()
      await showsOnlyWhatIsChosen(t, other)
      await other.close()
      const through = server.reached().filter(({ text }) => HIDDEN.test(text))
      t.same(
        through.map(({ text }) => text),
        [],
        'nothing that is hidden has been named at the server',
      )
    })
}
