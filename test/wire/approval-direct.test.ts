/** Calls that a person approves in a legacy client's own session with a legacy server: asked there, and passed on as they came. */
import t, { type Test } from 'tap'
import { as, browserOf, messageOf, RUN, TOKENS } from '../support/approving.js'
import { startBridge } from '../support/bridge.js'
import { startCompany } from '../support/company.js'
import { openStream } from '../support/events.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp, type Plan } from '../support/legacy-http.js'
import { post } from '../support/modern.js'

type Json = Record<string, unknown>

const ASKABLE = { capabilities: { elicitation: {} } }
const APPROVED = { approve: ['mirrored'] }

async function start(t: Test, plan: Plan = {}) {
  const server = await LegacyHttp.start(t, plan)
  const { url } = await startBridge(t, { url: server.url, tools: APPROVED })
  const client = await LegacyClient.open(url, { ...ASKABLE, ...(plan.revision && { revision: plan.revision }) })
  const called = () => server.of('tools/call').map(({ body }) => body)
  const answer = (question: Json, result: Json = RUN) => client.post({ jsonrpc: '2.0', id: question['id'], result })
  return { server, url, client, called, answer }
}

const call = (id: number, name = 'mirrored') => ({
  ...{ jsonrpc: '2.0', id, method: 'tools/call' },
  params: { name, arguments: { id } },
})

t.test('asks on the stream of the call, and the server gets it as it came, and nothing of the question', async (t) => {
  const { server, url, client, called, answer } = await start(t)
  t.equal(client.session, 'session-1', 'the session is that of the server')
  const body = `{"jsonrpc":"2.0", "id":"7é","method":"tools/call","params":{"name":"mirrored","arguments":{"n":1.0}, "_meta":{"progressToken":5}}}`
  const stream = await openStream('POST', url, client.headers, body)
  const [question = {}] = await stream.has(1)
  t.match(question['id'], /^mcp-bridge-asks-/, "the server's own requests may have any number")
  t.match(messageOf(question as never), /^Run the tool "mirrored" of the server "test"\?\n\nn: 1\.0$/)
  t.same(called(), [])
  t.equal((await answer(question)).status, 202)
  await stream.ended()
  t.ok(stream.answer('7é')?.['result'])
  t.same(called(), [body])
  t.equal((await answer(question)).status, 202, 'an answer that comes once more')
  t.same(
    server.received.filter(({ method, message }) => method === 'POST' && message['method'] === undefined),
    [],
  )
})

t.test('the other calls of a batch do not wait for the person', async (t) => {
  const { server, url, client, called, answer } = await start(t, { revision: '2025-03-26' })
  const arrays = () => server.received.filter(({ body }) => body.startsWith('[')).map(({ body }) => body)
  const batch = JSON.stringify([call(1, 'echo'), call(2), call(3, 'echo')])
  const stream = await openStream('POST', url, client.headers, batch)
  const [question = {}] = await stream.has(1)
  await until(() => arrays().length === 1, 'the others are at the server')
  await answer(question)
  await stream.ended()
  for (const id of [1, 2, 3]) t.ok(stream.messages.some((message) => message['id'] === id && 'result' in message))
  t.same([arrays(), called()], [[JSON.stringify([call(1, 'echo'), call(3, 'echo')])], [JSON.stringify(call(2))]])
})

t.test('nothing runs for a client that has left, or has cancelled, before the person answers', async (t) => {
  const { client, called, answer, url } = await start(t)
  const ways: ((stream: Awaited<ReturnType<typeof openStream>>) => unknown)[] = [
    (stream) => stream.leave(),
    () => client.notify('notifications/cancelled', { requestId: 9 }),
  ]
  for (const end of ways) {
    const stream = await openStream('POST', url, client.headers, JSON.stringify(call(9)))
    const [question = {}] = await stream.has(1)
    await end(stream)
    if (!stream.over) await stream.ended()
    t.equal((await answer(question)).status, 202)
  }
  t.ok((await client.call('echo')).message.result)
  t.equal(called().length, 1, 'only the last one')
})

t.test(
  'a session from before a restart, whose client nobody knows, is opened again where people are asked',
  async (t) => {
    const { server, client } = await start(t)
    for (const [tools, status] of [
      [{ deny: ['nothing'] }, 200],
      [APPROVED, 404],
    ] as const) {
      const { url, bridge } = await startBridge(t, { url: server.url, tools })
      await bridge.server.warmUp()
      t.equal((await post(url, JSON.stringify(call(1, 'echo')), client.headers)).status, status, JSON.stringify(tools))
    }
  },
)

t.test('after a choice at the page, an equal call runs, whatever token it has for its progress', async (t) => {
  const server = await LegacyHttp.start(t)
  const own = { url: server.url, tools: { ...APPROVED, approveBy: 'page' } }
  const { url, origin } = await startCompany(t, { auth: { tokens: TOKENS }, settings: { mcpServers: { test: own } } })
  const client = await LegacyClient.open(url, { headers: as('ada') })
  const ask = (progressToken: number) => client.call('mirrored', { path: '/a' }, { meta: { progressToken } })
  const { text } = await ask(1)
  const [address = ''] = /http\S+(?=,)/.exec(text) ?? []
  const browser = await browserOf('ada', origin)
  await browser.press(await browser.go(address), 'Run')
  t.ok((await ask(2)).message.result)
  t.equal(server.of('tools/call').length, 1)
})
