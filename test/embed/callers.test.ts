/** Users of an application: who they are for the bridge, and who they can never be. */
import { InMemoryTransport } from '@modelcontextprotocol/client'
import { fastify } from 'fastify'
import t, { type Test } from 'tap'
import { createBridge } from '../../src/app/embed/create.js'
import { mcpBridge } from '../../src/app/embed/fastify.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { type Answer, call, envelope, headersFor } from '../support/modern.js'
import { storeToken } from '../support/stored-token.js'

const CALL = ['tools/call', { name: 'echo', arguments: {} }] as const
/** Names that the bridge uses itself, and such as other callers have. */
const TAKEN = [
  ...['local', 'anon', 'service', 'inspector', 'ada', '', ' local', 'local ', 'LOCAL', 'constructor'],
  ...['j:00112233445566778899aabbccddeeff', 'f:00112233445566778899aabbccddeeff', 't:00112233445566778899aabbccddeeff'],
]

type Ask = (name: unknown) => Promise<Pick<Answer, 'status' | 'message'>>

/** A caller's name is passed in a header, by its number, because it may be anything. */
const NUMBER = 'x-user'

/** Ways to call as a user whom the application names. */
const WAYS: Readonly<Record<string, (t: Test, options: object) => Promise<Ask>>> = {
  'the plugin': async (t, options) => {
    const names: unknown[] = []
    const app = fastify()
    const principal = ({ headers }: { headers: object }) => names[Number(headers[NUMBER as keyof object])]
    app.register(mcpBridge, { prefix: '/mcp', ...options, principal: principal as () => string })
    const origin = await app.listen({ host: '127.0.0.1', port: 0 })
    t.teardown(() => app.close())
    return (name) => call(`${origin}/mcp`, ...CALL, { headers: { [NUMBER]: String(names.push(name) - 1) } })
  },
  fetch: async (t, options) => {
    const names: unknown[] = []
    const principal = ({ headers }: Request) => names[Number(headers.get(NUMBER))] as string
    const bridge = await createBridge({ ...options, principal })
    t.teardown(() => bridge.close())
    return async (name) => {
      const [method, params] = CALL
      const headers = { ...headersFor(method, params), [NUMBER]: String(names.push(name) - 1) }
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: envelope() } })
      const answer = await bridge.fetch(new Request('http://localhost/mcp', { method: 'POST', headers, body }))
      return { status: answer.status, message: (await answer.json()) as Answer['message'] }
    }
  },
}

/** A server that the bridge signs in to, with what was stored beforehand. */
async function guarded(t: Test) {
  const server = await LegacyHttp.start(t)
  const store = temporaryFolder(t)
  for (const [i, account] of TAKEN.entries())
    if (account !== '') await storeToken(store, server.url, { access: `token-${i}`, account })
  /** The credentials of calls. The bridge itself asks what the server is with the account of this machine. */
  const sent = () => server.of('tools/call').flatMap(({ headers }) => headers.authorization ?? [])
  return { options: { mcpServers: { it: { url: server.url, oauth: {} } }, oauth: { store } }, server, sent }
}

for (const [way, open] of Object.entries(WAYS)) {
  t.test(`${way}: a user never has the account of somebody else, whatever the name`, async (t) => {
    const { options, server, sent } = await guarded(t)
    const ask = await open(t, options)
    for (const name of TAKEN) t.equal((await ask(name)).status, name === '' ? 401 : 200, name)
    t.ok(server.of('tools/call').length > 0)
    t.same(sent(), [])
  })

  t.test(`${way}: two names are two users`, async (t) => {
    const it = legacyStdio(t)
    const ask = await open(t, { mcpServers: { it: it.server } })
    const names = ['ada', 'Ada', 'ada ', 'a'.repeat(200), `${'a'.repeat(200)}b`, 'ädä', 'ädä'.normalize('NFD'), 'x y']
    for (const name of [...names, ...names]) t.equal((await ask(name)).status, 200, name)
    const sessions = it.messages().filter(({ method }) => method === 'initialize')
    t.equal(sessions.length, names.length)
  })

  t.test(`${way}: a name that is no string is refused, and says so`, async (t) => {
    const it = legacyStdio(t)
    const ask = await open(t, { mcpServers: { it: it.server } })
    const wrong = [{ name: 'ada' }, ['ada'], 42, 0, true, Symbol('ada'), () => 'ada', new String('ada'), new Date()]
    for (const name of wrong) {
      const { status, message } = await ask(name)
      t.match(
        [status, message],
        [500, { error: { message: /"principal" has to be a string, the name of the caller/ } }],
      )
    }
    for (const name of [undefined, null, '', '\ud800', 'ada\udfff']) t.equal((await ask(name)).status, 401)
    t.same(
      it.messages().filter(({ method }) => method === 'tools/call'),
      [],
    )
  })
}

t.test('the user of a transport is never the one at this machine, unless none is named', async (t) => {
  const { options, sent } = await guarded(t)
  const bridge = await createBridge(options)
  t.teardown(() => bridge.close())
  const ask = async (principal?: string) => {
    const [near, far] = InMemoryTransport.createLinkedPair()
    await bridge.connect(far, principal === undefined ? {} : { principal })
    const answered = new Promise((resolve) => (near.onmessage = resolve))
    await near.start()
    const [method, params] = CALL
    await near.send({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: envelope() } })
    return answered
  }
  for (const name of TAKEN.filter((one) => one !== '')) t.match(await ask(name), { result: {} }, name)
  t.same(sent(), [])
  for (const name of ['', { name: 'ada' }, '\ud800'] as string[])
    await t.rejects(ask(name), { message: /principal|name of the caller/ })
  t.match(await ask(), { result: {} })
  await until(() => sent().includes('Bearer token-0'), 'the account of the person at this machine')
})
