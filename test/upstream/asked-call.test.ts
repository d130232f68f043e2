/** What happens to a question that names no call, when the call that the bridge assigned it to ends. */
import t from 'tap'
import { unlimited } from '../../src/base/limits/memory.js'
import type { Id, Request } from '../../src/base/rpc/message.js'
import { Exchange } from '../../src/servers/exchange.js'
import { AskedCall } from '../../src/servers/legacy/asked-call.js'
import { QuestionHistory } from '../../src/servers/legacy/question-history.js'
import { ServerRequests } from '../../src/servers/legacy/server-requests.js'
import type { LegacySession } from '../../src/servers/legacy/session.js'
import type { Peer } from '../../src/servers/peer.js'
import { toolCall } from '../support/calls.js'
import { parseText } from '../support/messages.js'

const memory = unlimited()
const CALL = toolCall('x', { caller: { capabilities: '{"elicitation":{}}' } })

function start() {
  const running: Exchange[] = []
  const said: [id: Id, answer: unknown][] = []
  const peer = {
    get open() {
      return [...running].values()
    },
    reserve: (principal: string) => memory.reserve(principal),
    respond: (id: Id, answer: unknown) => void said.push([id, answer]),
    settled() {},
    notify: () => Promise.resolve(),
    release(exchange: Exchange, reason = '') {
      running.splice(running.indexOf(exchange), 1)
      exchange.end(reason)
    },
  } as unknown as Peer
  const serverRequests = new ServerRequests(peer, {
    capabilities: '{"elicitation":{}}',
    blames: true,
    roots: undefined,
    who: 'alice',
    questionHistory: new QuestionHistory(),
    revision: '2025-11-25',
    client: () => undefined,
  })
  const begin = () => {
    const exchange = new Exchange(memory, running.length + 1, 'alice', CALL)
    running.push(exchange)
    return exchange
  }
  const session = { serverRequests, link: { peer }, use() {}, unuse() {}, trailing: 0 } as unknown as LegacySession
  const call = () => {
    const decode = () => ({ kind: 'result', result: CALL.params }) as const
    return new AskedCall(session, begin(), { decode })
  }
  const ask = (id: number) =>
    serverRequests.asked(
      parseText(`{"jsonrpc":"2.0","id":${id},"method":"elicitation/create","params":{}}`) as Request,
      undefined,
    )
  const given = (at: number) => running[at]?.takeQuestions().map(({ id }) => id)
  /** Reads a call until the server asks its client. */
  const isAsked = async (one: AskedCall) => (await one.leg(CALL, () => true)).kind === 'asks'
  return { call, ask, given, said, isAsked }
}

t.test('a question that was shown to nobody moves to another call when its client leaves', async (t) => {
  const { call, ask, given, said } = start()
  const [one] = [call(), call()]
  ask(1)
  one?.end()
  t.same(given(0), ['1'], 'it may be that of the other')
  t.same(said, [])
})

t.test('without another running call, it is answered as cancelled', async (t) => {
  const { call, ask, said } = start()
  const one = call()
  ask(1)
  one.end()
  t.same(said, [['1', '{"action":"cancel"}']])
})

t.test('it is also cancelled if the client saw it and does not return', async (t) => {
  const { call, ask, given, said, isAsked } = start()
  const [one] = [call(), call()]
  ask(1)
  t.equal(await isAsked(one as AskedCall), true)
  one?.end('The client did not answer in time')
  t.same(said, [['1', '{"action":"cancel"}']])
  t.same(given(0), [])
})
