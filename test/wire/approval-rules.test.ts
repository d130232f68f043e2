/** Whose an approval is, and for what: attacks, groups, searches, tasks, batches, replicas, and clients that cannot be asked. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { describeServer, serverInWords } from '../../src/middle/describe/server.js'
import { Metrics } from '../../src/services/telemetry/metrics.js'
import type { Json, Question } from '../matrix/client.js'
import { CLIENTS, type ClientKind, connect, type Reachable } from '../matrix/clients.js'
import { nameOf } from '../matrix/run.js'
import { as, messageOf, person, RUN, TOKENS, toolResult } from '../support/approving.js'
import { startBridge } from '../support/bridge.js'
import { temporaryFolder } from '../support/folder.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import {
  type Answer,
  call,
  envelope,
  headersFor,
  CAPABILITIES as MODERN_CAPABILITIES,
  post,
} from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { noRedis, RedisServer } from '../support/redis.js'

const NAMED = { type: 'object', properties: { name: { type: 'string' } } }

/** A modern client of few words. */
const ABLE = { [MODERN_CAPABILITIES]: { elicitation: {} } }
const ask = (url: string, params: Json, headers: Record<string, string> = {}, meta: Json = ABLE) =>
  call(url, 'tools/call', params, { meta, headers })
type Asked = { inputRequests: Record<string, Question>; requestState: string }
const askedIn = ({ message }: Answer) => message.result as unknown as Asked
const answeredBy = (asked: Answer, answer: Json = RUN): Json => ({
  inputResponses: { approval: answer },
  requestState: askedIn(asked).requestState,
})
const isAsked = ({ message }: Answer) => message.result?.['resultType'] === 'input_required'
const textIn = ({ message }: Answer) => toolResult(message).content[0]?.text ?? JSON.stringify(message)

t.test('what is not asked for is the same as without approval, byte for byte', async (t) => {
  const server = await ModernHttp.start(t)
  const plain = await startBridge(t, { url: server.url })
  const asking = await startBridge(t, { url: server.url, tools: { approve: ['mirrored'] } })
  const texts: string[] = []
  for (const { url } of [plain, asking]) {
    const body = `{"jsonrpc":"2.0", "id":7,"method":"tools/call","params":{"name":"echo","arguments":{"n":1.0,"é":"\\u0041"},"_meta":${JSON.stringify(envelope())}}}`
    const { text } = await post(url, body, headersFor('tools/call', { name: 'echo' }))
    texts.push(text, server.received.filter(({ message }) => message?.['method'] === 'tools/call').at(-1)?.body ?? '')
  }
  t.same(texts.slice(2), texts.slice(0, 2))
  t.match(texts[1], /"n":1\.0,"é":"\\u0041"/)
})

t.test('an approval reaches neither another person nor other arguments, and works once', async (t) => {
  const server = await ModernHttp.start(t)
  const file = join(temporaryFolder(t), 'audit.jsonl')
  const entry = { url: server.url, tools: { approve: ['echo'], approveFor: '10m' } }
  const { url } = await startBridge(t, entry, { auth: { tokens: TOKENS }, audit: { file } })
  const params = { name: 'echo', arguments: { path: '/a' } }
  const asked = await ask(url, params, as('ada'))
  const reply = answeredBy(asked)
  t.match((await ask(url, { ...params, ...reply }, as('bob'))).message.error, { code: -32602 })
  t.ok(isAsked(await ask(url, { name: 'echo', arguments: { path: '/' }, ...reply }, as('ada'))))
  t.equal(server.of('tools/call').length, 0)
  t.equal(textIn(await ask(url, { ...params, ...reply }, as('ada'))), '{"path":"/a"}')
  t.match(textIn(await ask(url, { ...params, ...reply }, as('ada'))), /was used before/)
  t.ok(isAsked(await ask(url, params, as('ada'))), 'the next call is asked for again')
  const window = { action: 'accept', content: { answer: 'Run, and ask no more for 10 minutes' } }
  await ask(url, { ...params, ...answeredBy(await ask(url, params, as('ada')), window) }, as('ada'))
  t.equal(textIn(await ask(url, { name: 'echo', arguments: { path: '/b' } }, as('ada'))), '{"path":"/b"}')
  t.ok(isAsked(await ask(url, params, as('bob'))))
  t.match(textIn(await ask(url, params, as('ada'), {})), /"\/a"/, 'for a while, the client need not be able to ask')
  t.match(textIn(await ask(url, params, as('bob'), {})), /this client cannot ask/)
  const lines = readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Json)
  t.same(
    lines.map(({ principal, approval, outcome, reason }) => [principal, approval, outcome, reason]),
    [
      ['ada', 'asked', 'asks', undefined],
      ['bob', undefined, 'refused', 'foreignState'],
      ['ada', 'asked', 'asks', undefined],
      ['ada', 'form', 'ok', undefined],
      ['ada', 'used', 'refused', 'approval_expired'],
      ['ada', 'asked', 'asks', undefined],
      ['ada', 'asked', 'asks', undefined],
      ['ada', 'form', 'ok', undefined],
      ['ada', 'window', 'ok', undefined],
      ['bob', 'asked', 'asks', undefined],
      ['ada', 'window', 'ok', undefined],
      ['bob', 'impossible', 'refused', 'approval_required'],
    ],
  )
  t.equal(new Set([lines[0], lines[3]].map((line) => line?.['digest'])).size, 1, 'of the same arguments')
})

t.test('chosen and renamed tools are asked for by both names, without what the operator has set', async (t) => {
  const server = await ModernHttp.start(t)
  const override = { echo: { name: 'repeat', set: { org: 'acme' } } }
  for (const approve of [['echo'], ['repeat'], ['test__repeat'], 'destructive'])
    for (const tools of [
      { approve, override },
      { approve, override, allow: ['echo'] },
    ]) {
      const { url } = await startBridge(t, { url: server.url, tools })
      const asked = await ask(url, { name: 'repeat', arguments: { n: 1 } })
      // What the server says of this tool is that it is read-only.
      t.equal(isAsked(asked), approve !== 'destructive', JSON.stringify(tools))
      if (!isAsked(asked)) continue
      t.notMatch(asked.text, /acme/)
      const ran = await ask(url, { name: 'repeat', arguments: { n: 1 }, ...answeredBy(asked) })
      t.same(JSON.parse(textIn(ran)), { n: 1, org: 'acme' })
    }
})

/** A bridge in front of a group of two, with or without a search. */
async function startGroup(t: Test, group: object, settings: object = {}) {
  const [one, two] = [await ModernHttp.start(t), await LegacyHttp.start(t)]
  const mcpServers = {
    one: { url: one.url, tools: { approve: ['echo'] } },
    two: { url: two.url, tools: { approve: ['two__echo'] } },
  }
  const { url } = await startBridge(t, {}, { mcpServers, groups: { all: group }, ...settings })
  const called = () => [one, two].map((server) => server.of('tools/call').length)
  return { url: new URL('/all/mcp', url).href, called }
}

for (const kind of CLIENTS)
  t.test(`${nameOf(kind)} client: the servers of a group have their own rules, also through call_tool`, async (t) => {
    for (const search of [false, true]) {
      const { url, called } = await startGroup(t, search ? { search } : {})
      const started = { url } as Reachable
      if (kind.transport === 'stdio') return
      let said: Json = RUN
      const client = connect(
        kind,
        started,
        person(() => said),
      )
      await client.open()
      const use = (name: string) =>
        search
          ? client.call('tools/call', { name: 'call_tool', arguments: { name, arguments: { n: 1 } } })
          : client.call('tools/call', { name, arguments: { n: 1 } })
      for (const [name, server] of [
        ['one__echo', 'one'],
        ['two__echo', 'two'],
      ] as const) {
        const { message } = await use(name)
        t.match(JSON.stringify(message), /\\"n\\":1/, JSON.stringify(message))
        t.match(messageOf(client.asked.at(-1) as Question), `${server}: Run the tool "echo" of the server "${server}"?`)
      }
      t.same(called(), [1, 1])
      said = { action: 'decline' }
      t.match(
        toolResult((await use('two__echo')).message).content[0]?.text,
        /"two__echo" was not run: the person has refused it/,
      )
      t.same(called(), [1, 1])
      await client.close()
    }
  })

/** A legacy client over HTTP, whose person answers so. */
async function legacyClient(url: string, said: Json | undefined) {
  const isLegacy = ({ era, transport }: ClientKind) => era === 'legacy' && transport === 'HTTP'
  const reachable = { url } as Reachable
  const client = connect(
    CLIENTS.find(isLegacy) as ClientKind,
    reachable,
    person(() => said),
  )
  await client.open()
  return client
}

t.test('the call of a task is approved when its result is waited for', async (t) => {
  const server = await ModernHttp.start(t)
  const { url } = await startBridge(
    t,
    { url: server.url, tools: { approve: ['echo'] } },
    { compat: { emulateTasks: true } },
  )
  const client = await legacyClient(url, RUN)
  const { message } = await client.call('tools/call', { name: 'echo', arguments: { n: 1 }, task: {} })
  const { taskId } = (message.result as { task: { taskId: string } }).task
  t.equal(server.of('tools/call').length, 0)
  t.match(JSON.stringify((await client.call('tasks/result', { taskId })).message), /\\"n\\":1/)
  t.equal(client.asked.length, 1)
  await client.close()
})

t.test('each call of a batch is approved by itself', async (t) => {
  const server = await LegacyHttp.start(t, { revision: '2025-03-26' })
  const { url } = await startBridge(t, { url: server.url, tools: { approve: ['mirrored'] } })
  const client = await LegacyClient.open(url, { revision: '2025-03-26' })
  const part = (id: number, name: string) => ({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name, arguments: { id } },
  })
  const { messages } = await client.post([part(1, 'echo'), part(2, 'mirrored')])
  const all = JSON.stringify(messages)
  t.match(all, /"mirrored\\" was not run|approval_required/)
  t.match(all, /\\"id\\":1/)
  const reached = server.received.flatMap(({ message }) => [message].flat())
  t.equal(reached.filter(({ method }) => method === 'tools/call').length, 1)
})

t.test('a client of 2024-11-05 is told the way out', async (t) => {
  const server = await LegacyHttp.start(t)
  const { url } = await startBridge(t, { url: server.url, tools: { approve: 'destructive' } })
  const client = await LegacyClient.open(url, { revision: '2024-11-05' })
  const answer = await client.call('act')
  t.match(textIn(answer), /A person has to approve "act" first, and this client cannot ask/)
  t.ok(Object.keys(toolResult(answer.message)._meta ?? {}).includes('io.github.mcp-bridge/approval_required'))
  t.match(textIn(await client.call('echo', { n: 1 })), '{"n":1}')
  t.equal(server.of('tools/call').length, 1)
})

t.test('a question that a legacy client leaves open runs nothing', async (t) => {
  const server = await LegacyHttp.start(t)
  const metrics = new Metrics({ version: '1' })
  const entry = { url: server.url, tools: { approve: ['act'] } }
  const { url } = await startBridge(t, entry, { timeouts: { answer: 1_000 } }, { metrics })
  const client = await legacyClient(url, undefined)
  const { message } = await client.call('tools/call', { name: 'act', arguments: {} })
  t.match(toolResult(message).content[0]?.text, /the answer came too late/)
  t.equal(server.of('tools/call').length, 0)
  const counted = await metrics.text([])
  for (const [event, count] of Object.entries({ asked: 1, approved: 0, refused: 0, expired: 1 }))
    t.match(counted, `mcp_bridge_approvals_total{server="test",event="${event}"} ${count}`)
  await client.close()
})

t.test('a question that is open when the bridge ends is counted and written once', async (t) => {
  const server = await ModernHttp.start(t)
  const metrics = new Metrics({ version: '1' })
  const file = join(temporaryFolder(t), 'audit.jsonl')
  const entry = { url: server.url, tools: { approve: ['echo'] } }
  const { url, bridge } = await startBridge(t, entry, { audit: { file } }, { metrics })
  const params = { name: 'echo', arguments: {} }
  await ask(url, { ...params, ...answeredBy(await ask(url, params)) })
  await ask(url, params)
  await bridge.close(true)
  await bridge.close(true)
  const counted = await metrics.text([])
  for (const [event, count] of Object.entries({ asked: 2, approved: 1, refused: 0, expired: 1 }))
    t.match(counted, `mcp_bridge_approvals_total{server="test",event="${event}"} ${count}`)
  const lines = readFileSync(file, 'utf8').trim().split('\n')
  const steps = lines.map((line) => (JSON.parse(line) as Json)['approval'])
  t.same(steps, ['asked', 'form', 'asked', 'expired'])
})

t.test('another replica takes the answer, and no two of them take the same', { skip: noRedis }, async (t) => {
  const redis = await RedisServer.start(t)
  const server = await ModernHttp.start(t)
  const entry = { url: server.url, tools: { approve: ['echo'], approveFor: '1h' } }
  const settings = {
    redis: { url: redis.url },
    stateKeys: ['a key of at least thirty-two characters'],
    auth: { tokens: TOKENS },
  }
  const replicas = await Promise.all([1, 2].map(() => startBridge(t, entry, settings)))
  const [one, two] = replicas.map(({ url }) => url) as [string, string]
  const own = as('ada')
  const params = { name: 'echo', arguments: { n: 1 } }
  const reply = answeredBy(await ask(one, params, own))
  const both = await Promise.all([one, two].map((url) => ask(url, { ...params, ...reply }, own)))
  t.equal(both.filter((answer) => textIn(answer) === '{"n":1}').length, 1)
  t.equal(both.filter((answer) => /was used before/.test(textIn(answer))).length, 1)
  const window = { action: 'accept', content: { answer: 'Run, and ask no more for 1 hour' } }
  await ask(two, { ...params, ...answeredBy(await ask(one, params, own), window) }, own)
  t.equal(textIn(await ask(one, { name: 'echo', arguments: { n: 2 } }, own)), '{"n":2}')
  await redis.stop()
  t.match((await ask(two, params, own)).message.error, { code: -32603 }, 'without the Redis, nothing is run')
  t.equal(server.of('tools/call').length, 3)
})

t.test(
  'a question of the server after the approval is answered at the replica that waits for it',
  { skip: noRedis },
  async (t) => {
    const redis = await RedisServer.start(t)
    const server = await LegacyHttp.start(t)
    const entry = { url: server.url, tools: { approve: ['ask'] } }
    const shared = { redis: { url: redis.url }, stateKeys: ['a key of at least thirty-two characters'] }
    const [one, two] = [await startBridge(t, entry, shared), await startBridge(t, entry, shared)]
    const rounds = [
      { name: { method: 'elicitation/create', params: { mode: 'form', message: '?', requestedSchema: NAMED } } },
    ]
    const params = { name: 'ask', arguments: { rounds } }
    const name = { name: { action: 'accept', content: { name: 'Zoë' } } }
    for (const [first, second, third] of [
      [one, two, one],
      [two, two, one],
    ] as const) {
      const asked = await ask(first.url, params)
      const later = askedIn(await ask(second.url, { ...params, ...answeredBy(asked) }))
      const [key = ''] = Object.keys(later.inputRequests)
      const reply = { ...params, inputResponses: { [key]: name.name }, requestState: later.requestState }
      t.match(textIn(await ask(third.url, reply)), /Zoë/)
      t.match(textIn(await ask(third.url, reply)), /was used before/)
    }
    t.equal(server.of('tools/call').length, 2)
  },
)

t.test('probe says which tools are asked for', async (t) => {
  const server = await LegacyHttp.start(t)
  const { bridge } = await startBridge(t, { url: server.url })
  const words = async (tools: object, name = 'test') =>
    serverInWords('x', await describeServer(bridge.server, { choice: { tools } as never, name }))
  t.match(
    await words({ approve: ['a*', 'test__echo'], deny: [], override: {} }),
    /approved {3}by a person before each call: echo, act, ask\n/,
  )
  const destructive = await words({ approve: 'destructive', deny: [], override: {} })
  t.match(destructive, /before each call: act, wait/)
  t.notMatch(destructive, /for clients/)
  t.match(await words({ approve: ['nothing'], deny: [], override: {} }), /before each call: none/)
})
