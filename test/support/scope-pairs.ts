/** Somebody who wants through: a caller without scopes that knows other spellings of a tool's name. */
import type { Test } from 'tap'
import { connect } from '../matrix/clients.js'
import { pairsOf } from '../matrix/pairs.js'
import { nameOf } from '../matrix/run.js'
import { Raw } from '../matrix/wire.js'
import { admitted } from './attempts.js'
import { startBridge } from './bridge.js'
import { SPELLINGS } from './name-spellings.js'
import type { Part } from './part.js'

export const RESTRICTED = { scopes: { act: ['admin'], '*_admin': ['admin'] } }
export const NAMES = SPELLINGS('act').map(([, name]) => name)
const tool = (name: unknown, more: object = {}) => ['tools/call', { name, arguments: {}, ...more }] as const
const attempts = [
  tool('act'),
  ...NAMES.map((name) => tool(name)),
  tool('ACT', { task: { ttl: 1_000 } }),
  tool(new Raw('"\\u0061ct"')),
  tool(new Raw('"\\u0041CT"')),
  tool(new Raw('"echo","Name":"ACT"')),
  ['vendor/echo', { name: 'ACT' }],
  ['Tools/Call', { name: 'act', arguments: {} }],
] as const

/** Tests that none of the spellings reaches a server. */
export function testScopes(t: Test, part: Part): void {
  for (const [clientKind, serverKind] of pairsOf(part))
    t.test(`${nameOf(clientKind)} client, ${nameOf(serverKind)} server`, async (t) => {
      const server = await serverKind.start(t)
      const bridge = await startBridge(t, { ...server.entry, ...RESTRICTED })
      const client = connect(clientKind, bridge)
      await client.open()
      t.same(await admitted(client, attempts), [], 'everything is refused')
      await client.notify('notifications/vendor', { name: 'act' })
      await client.notify('Tools/Call', { name: 'act', arguments: {} })
      t.match((await client.call('tools/call', { name: 'echo', arguments: {} })).message, { result: {} })
      await client.close()
      const reached = server
        .reached()
        .filter(({ text }) => /"(?:tools\/call|vendor\/echo|notifications\/vendor)"/i.test(text))
      t.equal(reached.length, 1, 'the server got the call of the other tool alone')
      t.match(reached[0]?.text, /"echo"/)
    })
}
