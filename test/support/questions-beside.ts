/**
 * Questions of legacy servers that belong to no call of their legacy client: on which stream they come, and that no answer
 * waits for theirs. In a group, with one server behind a policy that the bridge translates for, and in direct sessions, with and
 * without a policy.
 */
import type { Test } from 'tap'
import { ABLE, ADA, type Asker, FOLDERS, NAME, of, ROOTS, type Step, startAsker, WAYS } from './asking.js'
import { startBridge } from './bridge.js'
import { until, untilFound } from './eventually.js'
import { LegacyClient } from './legacy-client.js'
import type { Plan } from './legacy-http.js'
import { combinations, type Part } from './part.js'
import { SseClient } from './sse-client.js'

type Json = Record<string, unknown>
type Way = (typeof WAYS)[number]

/** Ways in which a server asks beside its calls. */
const BESIDE = WAYS.filter((way) => way !== 'on the stream of the call over HTTP')
const GROUP = 'in a group'
const POLICY = 'behind a policy'
const DIRECT = 'in a direct session behind a policy'
const PLAIN = 'in a direct session'
const PLACES = [GROUP, POLICY, DIRECT, PLAIN]
/** Without a policy, messages of a server over HTTP to a client over HTTP pass unchanged: nothing of it is asked beside a call. */
const isPair = ([way, place]: [Way, string]) => place !== PLAIN || !way.includes('over HTTP') || way.includes('SSE')
/** Updates of hidden resources have to be kept from a session: the bridge translates. */
const POLICIES: Readonly<Record<string, object>> = {
  [POLICY]: { resources: { deny: ['none:*'] } },
  [DIRECT]: { tools: { deny: ['none_*'] } },
}
const greet = [{ ...ROOTS, id: 'early' }]
const OPTIONS = { capabilities: ABLE }

async function start(t: Test, way: Way, place: string, plan: Plan = {}, settings: object = {}) {
  const asker = await startAsker(t, way, plan)
  const isGroup = place === GROUP
  const alone = { ...asker.server, ...POLICIES[place] }
  const all = isGroup ? { mcpServers: { test: asker.server, other: asker.server }, groups: { team: {} } } : {}
  const { url } = await startBridge(t, alone, { ...all, ...settings })
  const tool = (name: string) => (isGroup ? `test__${name}` : name)
  /** The params of a call of the tool that goes these steps. */
  const going = (steps: readonly Step[]) => ({ name: tool('steps'), arguments: { steps, by: 'session' } })
  const greetings = isGroup ? 2 : 1
  return { asker, url: isGroup ? new URL('/team/mcp', url).href : url, tool, going, greetings }
}

const ROOTS_LIST = { method: 'roots/list' }
/** Without what servers of a group tell that start one after the other: that their lists have changed. */
const questions = ({ messages }: { messages: readonly Json[] }) => messages.filter((message) => 'id' in message)
const said = (answers: unknown) => [{ type: 'text', text: JSON.stringify(answers) }]
const signal = ({ asker, tool }: { asker: Asker; tool(name: string): string }, client: LegacyClient, name: string) =>
  client.call(tool('signal'), { name, for: asker.name })

/** Tests a part of the ways and places. */
export function testBeside(t: Test, part: Part): void {
  for (const [way, place] of combinations(BESIDE, PLACES, part).filter(isPair)) {
    t.test(`a question ${way} that belongs to no call comes on the GET stream ${place}`, async (t) => {
      const { asker, url, tool, greetings } = await start(t, way, place, { greet })
      const client = await LegacyClient.open(url, OPTIONS)
      const stream = await client.listen()
      await until(() => questions(stream).length >= greetings, 'the questions')
      t.match(
        questions(stream),
        Array.from({ length: greetings }, () => ROOTS_LIST),
      )
      const answered = await client.call(tool('echo'), { x: 1 })
      t.match(answered.message.result, { structuredContent: { x: 1 } }, 'the answer does not wait for theirs')
      t.match(answered.headers['content-type'], /json/, 'and nothing else comes on its stream')
      t.same(of(asker), [])
      for (const { id } of questions(stream)) await client.post({ jsonrpc: '2.0', id, result: FOLDERS })
      await until(() => of(asker).length === greetings, 'the answer')
      t.same(
        of(asker),
        Array.from({ length: greetings }, () => ({ jsonrpc: '2.0', id: 'early', result: FOLDERS })),
      )
    })

    t.test(`a question ${way} that belongs to no call waits for a GET stream ${place}`, async (t) => {
      const { url, tool, greetings } = await start(t, way, place, { greet })
      const client = await LegacyClient.open(url, OPTIONS)
      const answered = await client.call(tool('echo'), { x: 1 })
      t.match(answered.message.result, { structuredContent: { x: 1 } })
      t.match(answered.headers['content-type'], /json/)
      const stream = await client.listen()
      await until(() => questions(stream).length >= greetings, 'the questions')
      t.match(questions(stream), [ROOTS_LIST])
    })

    t.test(`without a GET stream, a question ${way} reaches a client whose call waits for it ${place}`, async (t) => {
      const { url, going } = await start(t, way, place)
      const client = await LegacyClient.open(url, OPTIONS)
      const stream = await client.stream('tools/call', going([{ ask: [NAME] }]), { id: 'waits' })
      const { id } = await untilFound(
        () => stream.messages.find(({ method }) => method === NAME.method),
        'the question on the stream of the call',
      )
      await client.post({ jsonrpc: '2.0', id, result: ADA })
      await until(() => stream.answer('waits') !== undefined, 'the answer')
      t.match(stream.answer('waits'), { result: { content: said([ADA]) } })
    })

    t.test(`a question ${way} that is withdrawn is withdrawn at the client ${place}`, async (t) => {
      const started = await start(t, way, place)
      const client = await LegacyClient.open(started.url, OPTIONS)
      const stream = await client.listen()
      const name = `${way} ${place}`
      const call = client.request('tools/call', started.going([{ ask: [NAME], withdraw: name }]))
      const { id } = await untilFound(
        () => stream.messages.find(({ method }) => method === NAME.method),
        'the question',
      )
      await signal(started, client, name)
      t.match((await call).message.result, { content: said([{ withdrawn: true }]) })
      const isWithdrawal = ({ method, params }: Json) =>
        method === 'notifications/cancelled' && (params as Json)['requestId'] === id
      await until(() => stream.messages.some(isWithdrawal), 'the withdrawal')
    })

    t.test(`a withdrawn question ${way} no longer waits for a GET stream ${place}`, async (t) => {
      const started = await start(t, way, place)
      const client = await LegacyClient.open(started.url, OPTIONS)
      const call = await client.request(
        'tools/call',
        started.going([
          { ask: [NAME], withdraw: 1 },
          { ask: [NAME], withdraw: 1 },
        ]),
      )
      t.match(call.message.result, { content: said([{ withdrawn: true }, { withdrawn: true }]) })
      const stream = await client.listen()
      const later = client.request('tools/call', started.going([{ ask: [ROOTS] }]))
      await until(() => stream.messages.length > 0, 'a message')
      t.match(stream.messages, [ROOTS_LIST], 'only the later question is there')
      await client.post({ jsonrpc: '2.0', id: stream.messages[0]?.['id'], result: FOLDERS })
      t.match((await later).message.result, { content: said([FOLDERS]) })
    })
  }

  for (const [way, place] of combinations(BESIDE, [GROUP, POLICY], part)) {
    t.test(`while a client thinks about a question ${way}, its call does not time out ${place}`, async (t) => {
      const timeouts = { call: 3_000 }
      const started = await start(t, way, place, {}, { timeouts })
      const client = await LegacyClient.open(started.url, OPTIONS)
      const stream = await client.listen()
      const call = client.request('tools/call', started.going([{ ask: [NAME] }]))
      const { id } = await untilFound(() => questions(stream).at(0), 'the question')
      const other = await LegacyClient.open(started.url, { clientInfo: { name: 'other', version: '1' } })
      for (let n = 0; n < 3; n++) {
        const silent = await other.request('tools/call', started.going([{ wait: `never ${way} ${place} ${n}` }]))
        t.match(silent.message, { error: { code: Number } }, 'others do')
      }
      await client.post({ jsonrpc: '2.0', id, result: ADA })
      t.match((await call).message.result, { content: said([ADA]) })
    })

    t.test(`a question ${way} goes to another window when its client leaves ${place}`, async (t) => {
      const { asker, url, greetings } = await start(t, way, place, { greet })
      const clients = [await LegacyClient.open(url, OPTIONS), await LegacyClient.open(url, OPTIONS)]
      const streams = await Promise.all(clients.map((client) => client.listen()))
      const asked = () => streams.findIndex((stream) => questions(stream).length >= greetings)
      await until(() => asked() >= 0, 'the questions at one of them')
      const first = asked()
      const other = streams[1 - first] as (typeof streams)[number]
      t.same(questions(other), [])
      await clients[first]?.end()
      const client = clients[1 - first] as LegacyClient
      await until(() => questions(other).length === greetings, 'the questions at the other one')
      for (const { id } of questions(other)) await client.post({ jsonrpc: '2.0', id, result: FOLDERS })
      await until(() => of(asker).length === greetings, 'the answers')
      t.match(of(asker), [{ id: 'early', result: FOLDERS }])
    })

    t.test(`a client of HTTP+SSE is asked beside its calls ${way} ${place}`, async (t) => {
      const { asker, url, tool, greetings } = await start(t, way, place, { greet })
      const client = await SseClient.open(url, '2025-03-26', OPTIONS)
      const questions = () => client.messages.filter(({ method }) => method === 'roots/list')
      await until(() => questions().length === greetings, 'the questions')
      const answered = await client.request('tools/call', { name: tool('echo'), arguments: { x: 1 } })
      t.match(answered, { result: { content: [] } })
      t.same(of(asker), [])
      for (const { id } of questions()) await client.post({ jsonrpc: '2.0', id, result: FOLDERS })
      await until(() => of(asker).length === greetings, 'the answers')
    })
  }
}

/** Tests that questions of a call which are withdrawn end it. */
export function testWithdrawn(t: Test): void {
  for (const place of [GROUP, POLICY]) {
    for (const steps of [
      [{ ask: [NAME], withdraw: 'enough' }],
      [{ ask: [NAME, ROOTS], withdraw: 'enough' }],
    ] satisfies Step[][]) {
      const many = steps[0]?.ask.length
      t.test(`a call whose own ${many} questions are withdrawn is answered ${place}`, async (t) => {
        const started = await start(t, 'on the stream of the call over HTTP', place)
        const client = await LegacyClient.open(started.url, OPTIONS)
        const name = `enough ${place} ${many}`
        const params = {
          name: started.tool('steps'),
          arguments: { steps: steps.map((step) => ({ ...step, withdraw: name })) },
        }
        const stream = await client.stream('tools/call', params, { id: 'asks' })
        const questions = () => stream.messages.filter(({ method, id }) => method !== undefined && id !== undefined)
        await until(() => questions().length === many, 'the questions')
        await signal(started, client, name)
        await until(() => stream.answer('asks') !== undefined, 'the answer')
        t.match(stream.answer('asks'), { result: { content: said(steps[0]?.ask.map(() => ({ withdrawn: true }))) } })
        const cancelled = stream.messages.filter(({ method }) => method === 'notifications/cancelled')
        t.same(
          cancelled.map(({ params: about }) => (about as Json)['requestId']).sort(),
          questions()
            .map(({ id }) => id)
            .sort(),
          'the client is told that nobody waits for it',
        )
      })
    }
  }
}
