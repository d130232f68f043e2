/** Forwards requests to another replica, and what it does with the answers of a program that has taken its address. */
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { keyOf, Sealer } from '../../src/base/crypto/seal.js'
import { HangUp } from '../../src/base/time/hang-up.js'
import { OwnedByReplica } from '../../src/mcp/ports/replicas.js'
import { Peers } from '../../src/services/replicas/peers.js'

const SEALER = new Sealer([keyOf('a secret of all replicas')], 'replica')

/** Forwards a request to a program at the address of a replica. Resolves to the fault, and to the reported refusals. */
async function carryTo(t: Test, program: RequestListener) {
  const server = createServer(program)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const refusals: string[] = []
  const peers = new Peers({
    records: { waitFor: async () => `http://127.0.0.1:${port}` },
    sealer: () => SEALER,
    refused: (_replica, why) => refusals.push(why),
  })
  t.teardown(() => peers.close())
  const received = {} as never
  const request = { method: 'POST', path: '/mcp', headers: ['host', 'x'], body: undefined, received }
  const fault = await peers.forward(new OwnedByReplica('other', 'session'), request, new HangUp()).then(
    () => undefined,
    (error: { fault?: string }) => error.fault,
  )
  return { fault, refusals }
}

t.test('a refusal with an unknown reason is reported as "unknown", not with the text of the sender', async (t) => {
  const program: RequestListener = (_request, response) =>
    void response.writeHead(401, { 'mcp-bridge-refused': `invented-${Math.random()}` }).end()
  t.same(await carryTo(t, program), { fault: 'overloaded', refusals: ['unknown'] })
})

t.test('a refusal with a known reason is reported with that', async (t) => {
  const program: RequestListener = (_request, response) =>
    void response.writeHead(401, { 'mcp-bridge-refused': 'late' }).end()
  t.same(await carryTo(t, program), { fault: 'overloaded', refusals: ['late'] })
})

t.test('a program that cannot prove that it is the replica gets no request', async (t) => {
  const methods: (string | undefined)[] = []
  const { fault } = await carryTo(t, ({ method }, response) => {
    methods.push(method)
    response.writeHead(204, { 'mcp-bridge-proof': 'b1.invented' }).end()
  })
  t.equal(fault, 'sessionNotFound')
  t.same(methods, ['HEAD'])
})
