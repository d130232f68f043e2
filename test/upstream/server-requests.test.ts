/** To which call the bridge assigns a server's question that names none, and how long a question waits for a call. */
import t, { type Test } from 'tap'
import { unlimited } from '../../src/base/limits/memory.js'
import type { Id, Request, RpcError } from '../../src/base/rpc/message.js'
import { parseObject } from '../../src/base/rpc/splice.js'
import type { Call } from '../../src/mcp/protocol/call.js'
import { Exchange } from '../../src/servers/exchange.js'
import { ServerRequests } from '../../src/servers/legacy/server-requests.js'
import type { Peer } from '../../src/servers/peer.js'
import { toolCall } from '../support/calls.js'
import { stopClock } from '../support/clock.js'
import { parseText } from '../support/messages.js'

const memory = unlimited()
const ALL = '{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}'

function start(t: Test, { capabilities = ALL, roots }: { capabilities?: string; roots?: string } = {}) {
  const clock = stopClock(t)
  const running: Exchange[] = []
  let lists: Exchange[] = []
  const said: [id: Id, answer: string | number][] = []
  let settled = 0
  const questionHistory = new Set<Call | undefined>()
  const peer = {
    get open() {
      return [...running, ...lists].values()
    },
    reserve: (principal: string) => memory.reserve(principal),
    respond: (id: Id, answer: string | RpcError) =>
      void said.push([id, typeof answer === 'string' ? answer : answer.code]),
    settled: () => void settled++,
    notify: () => Promise.resolve(),
  } as unknown as Peer
  const serverRequests = new ServerRequests(peer, {
    capabilities,
    blames: true,
    roots,
    who: 'alice',
    questionHistory,
    revision: '2025-11-25',
    client: () => undefined,
  })
  let ids = 0
  /** Starts a call, and reads its messages unless it waits for its client. */
  const call = ({ task, read = true }: { task?: string; read?: boolean } = {}) => {
    const exchange = new Exchange(memory, ++ids, 'alice', toolCall('x'))
    exchange.read = read
    exchange.task = task
    running.push(exchange)
    serverRequests.giveHeld(exchange)
    return exchange
  }
  const ask = (id: unknown, method: string, params: object = {}, exchange?: Exchange) => {
    const text = JSON.stringify({ jsonrpc: '2.0', id, method, params })
    serverRequests.asked(parseText(text) as Request, exchange)
  }
  const withdraw = (requestId: unknown) => serverRequests.withdraw(parseObject(JSON.stringify({ requestId })))
  /** Starts a request for a list, which the bridge makes on its own. */
  const list = () => {
    const exchange = new Exchange(memory, ++ids)
    Object.assign(exchange, { method: 'tools/list', sentAt: performance.now() })
    lists.push(exchange)
  }
  const listed = () => {
    lists = []
  }
  return {
    serverRequests,
    clock,
    said,
    running,
    list,
    listed,
    askers: questionHistory,
    call,
    ask,
    withdraw,
    settled: () => settled,
  }
}

const FORM = 'elicitation/create'
const idsIn = (exchange: Exchange) => exchange.takeQuestions().map(({ id }) => id)
const answers = (exchange: Exchange) => {
  for (const question of exchange.takeQuestions()) question.respond('{}')
}

t.test('a request for roots without a call waits for one, or is refused after 55 s', async (t) => {
  const { clock, said, call, ask } = start(t)
  ask('roots', 'roots/list')
  ask('form', FORM)
  await clock.pass(1_999)
  t.same(said, [])
  await clock.pass(1)
  t.same(said.splice(0), [['"form"', -32603]], 'other questions do not wait that long')
  await clock.pass(52_999)
  t.same(said, [])
  await clock.pass(1)
  t.same(said.splice(0), [['"roots"', -32603]])

  ask('roots', 'roots/list')
  await clock.pass(54_000)
  const exchange = call()
  t.same(idsIn(exchange), ['"roots"'])
  await clock.pass(60_000)
  t.same(said, [], 'from then on it is for the call to answer it')
  t.same(idsIn(call()), [], 'and for that one only')
  t.equal(clock.waiting, 0)
})

t.test('rejects questions at once while only a list is open', async (t) => {
  const { clock, said, call, ask, list, listed } = start(t)
  list()
  ask('first', 'roots/list')
  await clock.pass(999)
  t.same(said, [], 'the first question may be due to the beginning of the session')
  await clock.pass(1)
  t.same(said.splice(0), [['"first"', -32603]], 'but the list seems to wait for it')
  for (const method of ['roots/list', FORM, 'sampling/createMessage']) {
    ask('again', method)
    t.same(said.splice(0), [['"again"', -32600]], method)
  }
  listed()
  ask('later', 'roots/list')
  t.same(said, [], 'without an open list it waits for a call')
  await clock.pass(10_000)
  list()
  await clock.pass(999)
  t.same(said, [])
  await clock.pass(1_001)
  t.same(said.splice(0), [['"later"', -32603]], 'unless a list waits for it')
  list()
  const exchange = call()
  ask('in a call', 'roots/list')
  t.same(idsIn(exchange), ['"in a call"'], 'beside a call it belongs to that')
  t.same(said, [])
})

t.test("a question during a list does not count as one of the session's start if that was long ago", async (t) => {
  const { clock, said, ask, list } = start(t)
  await clock.pass(5_000)
  list()
  ask('first', 'roots/list')
  t.same(said, [['"first"', -32600]])
})

t.test('a list that is answered in time rejects nothing', async (t) => {
  const { clock, said, call, ask, list, listed } = start(t)
  list()
  ask('roots', 'roots/list')
  await clock.pass(500)
  listed()
  await clock.pass(50_000)
  t.same(said, [])
  t.same(idsIn(call()), ['"roots"'])
})

t.test('configured roots are answered without a client', async (t) => {
  const { said, call, ask } = start(t, { roots: '{"roots":[]}', capabilities: '{"roots":{}}' })
  const exchange = call()
  ask(1, 'roots/list', {}, exchange)
  ask(2, 'ping')
  t.same(said, [
    ['1', '{"roots":[]}'],
    ['2', '{}'],
  ])
  t.same(idsIn(exchange), [])
})

t.test('a question on the stream of a call belongs to it, and is refused if its client cannot answer it', async (t) => {
  const { said, call, ask, running } = start(t)
  const [one, other] = [call(), call()]
  ask(1, FORM, {}, other)
  t.same([idsIn(one), idsIn(other)], [[], ['1']])
  running.splice(running.indexOf(other), 1)
  ask(2, FORM, {}, other)
  t.same(said, [['2', -32600]])
})

t.test('an unaddressed question goes to the oldest waiting call that has had none', async (t) => {
  const { call, ask } = start(t)
  const parked = call({ read: false })
  const [one, two] = [call(), call()]
  ask(1, FORM)
  ask(2, FORM)
  ask(3, FORM)
  const [first] = one.takeQuestions()
  t.same([first?.id, ...idsIn(one), ...idsIn(two), ...idsIn(parked)], ['1', '2'], 'and then to the oldest')
  if (first) first.respond('{}')
  t.equal(first?.addressed, false)
})

t.test('an unaddressed question goes to a call of a tool that has asked before', async (t) => {
  const { call, ask, askers } = start(t)
  const [quiet, asker, another] = [call(), call(), call()]
  askers.add(asker.call).add(another.call)
  ask(1, FORM)
  t.same(idsIn(asker), ['1'], 'the oldest of those')
  ask(2, FORM)
  ask(3, FORM)
  t.same([idsIn(quiet), idsIn(asker), idsIn(another)], [[], ['3'], ['2']], 'rather than one that never asked')
  asker.read = another.read = false
  ask(4, FORM)
  t.same(idsIn(quiet), ['4'], 'unless only a call that never asked has a client that waits')
  answers(quiet)
})

t.test('a call is known to ask if no other can have asked, and not otherwise', async (t) => {
  const { call, ask, askers, running } = start(t)
  const [one, two] = [call(), call()]
  ask(1, FORM)
  t.equal(askers.size, 0)
  ask(2, FORM, {}, two)
  t.same([...askers], [two.call], 'it came on the stream of the call')
  running.splice(running.indexOf(two), 1)
  ask(3, FORM)
  t.same([...askers], [two.call, one.call], 'no other call runs')
})

t.test('keeps a question that can only belong to a call whose client is thinking for that call', async (t) => {
  const { call, ask } = start(t)
  const [one, two] = [call({ read: false }), call({ read: false })]
  one.arrive(parseText('{"jsonrpc":"2.0","id":1,"result":{}}') as never)
  ask(1, FORM)
  t.same([idsIn(one), idsIn(two)], [[], ['1']], 'a call that has been answered is asked nothing')
})

t.test('a question of a task goes to the caller that waits for the task, and no other does', async (t) => {
  const { call, ask, running } = start(t)
  const waiting = call({ task: 'task-1' })
  const plain = call()
  const about = (taskId: string) => ({ _meta: { 'io.modelcontextprotocol/related-task': { taskId } } })
  ask(1, FORM, about('task-1'))
  ask(2, FORM)
  ask(3, FORM, about('unknown'))
  t.same([idsIn(waiting), idsIn(plain)], [['1'], ['2', '3']])
  running.shift()
  ask(4, FORM, about('task-1'))
  t.same(idsIn(plain), ['4'])
})

t.test('if only callers that wait for a task are there, the question goes to one of them', async (t) => {
  const { call, ask } = start(t)
  const waiting = call({ task: 'task-1' })
  ask(1, FORM)
  t.same(idsIn(waiting), ['1'])
})

t.test('an unanswered question moves on at the end of its call, or waits', async (t) => {
  const { serverRequests, clock, said, call, ask, running } = start(t)
  const [one, two] = [call(), call()]
  ask(1, FORM)
  const [question] = one.takeQuestions()
  if (!question) throw new Error('It was asked')
  running.splice(0, 1)
  serverRequests.moveOn(question)
  t.same(idsIn(two), ['1'])
  running.splice(0, 1)
  serverRequests.moveOn(question)
  const three = call()
  t.same(idsIn(three), ['1'])
  running.splice(0, 1)
  serverRequests.moveOn(question)
  await clock.pass(2_000)
  t.same(said, [['1', -32603]])
  serverRequests.moveOn(question)
  question.respond('{}')
  t.equal(said.length, 1, 'it is answered once')
})

t.test('a withdrawn question gets no answer', async (t) => {
  const { clock, said, call, ask, withdraw, settled } = start(t)
  ask('held', 'roots/list')
  withdraw('held')
  t.same(idsIn(call()), [])
  const exchange = call()
  ask(1, FORM, {}, exchange)
  withdraw('1')
  withdraw(2)
  t.equal(settled(), 1)
  withdraw(1)
  t.equal(settled(), 2)
  const [question] = exchange.takeQuestions()
  t.equal(question?.withdrawn, true)
  if (question) question.respond('{}')
  await clock.pass(60_000)
  t.same(said, [])
})

t.test('refuses what was not declared, and names the calls that may have caused it', async (t) => {
  const { said, call, ask } = start(t, { capabilities: '{"elicitation":{}}' })
  const [one, two] = [call(), call()]
  ask(1, 'sampling/createMessage', {}, one)
  t.match(one.refusals, [{ name: 'sampling', certain: true }])
  ask(2, 'roots/list')
  t.match(two.refusals, [{ name: 'roots', certain: false }])
  t.equal(one.refusals?.length, 2)
  ask(3, FORM, { mode: 'url', url: 'https://example.com' })
  ask(4, 'vendor/ask')
  ask(5, FORM, { mode: 'form' })
  t.same(said, [
    ['1', -32601],
    ['2', -32601],
    ['3', -32602],
    ['4', -32601],
  ])
  answers(one)
  t.same(said.at(-1), ['5', '{}'])
})

t.test('refuses an address that nobody may be sent to', async (t) => {
  const { said, call, ask } = start(t)
  const exchange = call()
  const urls = ['http://example.com', 'ftp://example.com', 'javascript:alert(1)', '/x', '', undefined, 7]
  for (const [n, url] of urls.entries()) ask(n, FORM, { mode: 'url', url })
  t.same(
    said,
    urls.map((_, n) => [String(n), -32602]),
  )
  ask('good', FORM, { mode: 'url', url: 'https://example.com' })
  ask('own', FORM, { mode: 'url', url: 'http://127.0.0.1:8080/x' })
  t.same(idsIn(exchange), ['"good"', '"own"'])
})

t.test('does not ask what the client has not declared with this request', async (t) => {
  const { serverRequests, said, call, ask } = start(t)
  const exchange = call()
  ask(1, FORM, {}, exchange)
  const [question] = exchange.takeQuestions()
  if (!question) throw new Error('It was asked')
  t.equal(serverRequests.refuses(question, exchange, parseObject('{"elicitation":{}}')), false)
  t.same(said, [])
  t.equal(serverRequests.refuses(question, exchange, parseObject('{"sampling":{}}')), true)
  t.equal(serverRequests.refuses(question, exchange, parseObject('{}')), true)
  t.same(said, [['1', -32601]], 'it is refused once')
  t.match(exchange.refusals, [{ name: 'elicitation' }])
})
