/** Published servers behind the bridge: what arrives of them is what arrives without it. Run by `npm run test:field`. */
import { execPath } from 'node:process'
import t from 'tap'
import { bridged, type Command, legacyClient, modernClient, startBridge } from './clients.js'
import { install, programOf, registryProblem } from './install.js'
import { offerOf } from './offer.js'
import { asModern } from './same.js'
import { type FieldServer, servers } from './servers.js'

async function commandOf(server: FieldServer): Promise<Command> {
  const program = await programOf(await install(server))
  return { command: execPath, args: [program, ...(server.args ?? [])], env: server.env ?? {} }
}

const problem = await registryProblem()
for (const server of servers) {
  const { name, version, madeWith, modern } = server
  t.test(`${name} ${version}, made with ${madeWith}`, { skip: problem ?? false }, async (t) => {
    const command = await commandOf(server)
    const direct = await offerOf(await legacyClient(t, command), server)

    await t.test('a legacy client over HTTP gets the same as without the bridge', async (t) => {
      const url = await startBridge(t, command)
      t.strictSame(await offerOf(await legacyClient(t, url), server), direct)
    })

    await t.test('a legacy client that starts the bridge in place of the server gets the same', async (t) => {
      t.strictSame(await offerOf(await legacyClient(t, bridged(command)), server), direct)
    })

    await t.test('a modern client gets the same in the terms of 2026-07-28', async (t) => {
      const url = await startBridge(t, command)
      const expected = modern ? await offerOf(await modernClient(t, command), server) : direct
      t.strictSame(asModern(await offerOf(await modernClient(t, url), server)), asModern(expected))
    })
  })
}
