/** Parked calls, in what no message shows: the key that several servers share, and what the bridge keeps of each call. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { newKey } from '../../src/base/crypto/seal.js'
import { unlimited } from '../../src/base/limits/memory.js'
import { EMPTY, parseObject, value } from '../../src/base/rpc/splice.js'
import { type Call, type Final, ignoreNotifications, type Reply } from '../../src/mcp/protocol/call.js'
import type { AskedCall, LegEnd } from '../../src/servers/legacy/asked-call.js'
import { CompletedElicitations } from '../../src/servers/legacy/completed-elicitations.js'
import { ParkedCalls } from '../../src/servers/legacy/parked.js'
import type { ServerQuestion } from '../../src/servers/legacy/question.js'
import { type RequiredUrl, UrlElicitation } from '../../src/servers/legacy/required-urls.js'
import type { LegacySession } from '../../src/servers/legacy/session.js'
import type { Parking } from '../../src/servers/options.js'
import { stopClock } from '../support/clock.js'
import { until } from '../support/eventually.js'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const OPTIONS = { ttl: 600_000, max: 4, maxPerPrincipal: 2 }
const PAGE: RequiredUrl = { url: 'https://example.com/', message: 'Go', id: 'id' }
const YES = '{"address-1":{"action":"accept"}}'
const NO = '{"address-1":{"action":"decline"}}'

/** The members of a session that a parked call uses. */
const SESSION = {
  handshake: { serverInfo: undefined },
  completedElicitations: new CompletedElicitations(() => true),
} as unknown as LegacySession
/** Whether the bridge has to repeat the call, because the client has accepted all its URLs. */
const isAgain = (resumed: unknown) => resumed instanceof UrlElicitation

function callOf(more: Partial<Call> = {}): Call {
  return {
    method: 'tools/call',
    params: parseObject('{"name":"x","arguments":{"b":1,"a":[2.0]}}'),
    meta: EMPTY,
    progress: false,
    caller: { revision: '2026-07-28', capabilities: '{}' },
    principal: 'alice',
    notify: ignoreNotifications,
    signal: new AbortController().signal,
    abort: () => {},
    log: { note() {}, warn() {} },
    ...more,
  }
}

const parkedBy = ({ name = 'one', ...bounds }: Partial<Parking> & { name?: string } = {}) =>
  new ParkedCalls({ name, memory: unlimited(), parked: { ...OPTIONS, ...bounds } })
const stateOf = (reply: Reply) => JSON.stringify(value((reply as Reply & { kind: 'input' }).result, 'requestState'))
const park = (parked: ParkedCalls, call = callOf()) => stateOf(parked.afterElicitation(SESSION, call, [PAGE]))
const retry = (state: string, responses = YES, more: Partial<Call> = {}) =>
  callOf({ ...more, answers: { responses, state } })

t.test('a state is valid for one server, although two have the same key', async (t) => {
  const keys = [newKey()]
  const [one, other] = [parkedBy({ keys }), parkedBy({ keys, name: 'two' })]
  const state = park(one)
  await t.rejects(other.resume(retry(state)), { message: /another call/ })
  t.ok(isAgain(await one.resume(retry(state))), 'the call is to be made again')
})

t.test('accepts a state sealed with a configured old key, and none with another key', async (t) => {
  const [older, newer] = [newKey(), newKey()]
  const state = park(parkedBy({ keys: [older] }))
  const now = parkedBy({ keys: [newer, older] })
  await t.rejects(
    now.resume(retry(state)),
    { message: /has ended or was lost/ },
    'it can be read, and nothing is left of its call',
  )
  await t.rejects(parkedBy({ keys: [newer] }).resume(retry(state)), { message: /did not issue it/ })
  const reading = callOf({ method: 'prompts/get' })
  const reads = park(parkedBy({ keys: [older] }), reading)
  t.equal(
    await now.resume({ ...reading, answers: { responses: YES, state: reads } }),
    undefined,
    'what only reads is done anew',
  )
})

t.test('a retry may spell its call differently, but must be the same call', async (t) => {
  const parked = parkedBy()
  const same = ['{"arguments":{"a":[2.0],"b":1},"name":"x"}', '{ "name" : "\\u0078", "arguments":{"b":1,"a":[ 2.0 ]}}']
  for (const params of same) {
    t.ok(isAgain(await parked.resume(retry(park(parked), YES, { params: parseObject(params) }))), params)
  }
  const others = [
    '{"name":"x","arguments":{"b":1,"a":[2]}}',
    '{"name":"x","arguments":{"b":1,"a":[2.0],"c":null}}',
    '{"name":"y","arguments":{"b":1,"a":[2.0]}}',
    '{"name":"x","arguments":{"b":"1","a":[2.0]}}',
    '{"name":"x"}',
    '{}',
  ]
  const state = park(parked)
  for (const params of others)
    await t.rejects(
      parked.resume(retry(state, YES, { params: parseObject(params) })),
      { message: /another call/ },
      params,
    )
  await t.rejects(parked.resume(retry(state, YES, { principal: 'bob' })), { message: /another call/ })
  await t.rejects(parked.resume(retry(state, YES, { method: 'prompts/get' })), { message: /another call/ })
  t.ok(isAgain(await parked.resume(retry(state))))
})

t.test('a parked call expires after its limit, not before', async (t) => {
  const clock = stopClock(t)
  const parked = parkedBy({ ttl: 10_000 })
  const [one, other] = [park(parked), park(parked)]
  await clock.pass(9_999)
  t.ok(isAgain(await parked.resume(retry(one))))
  t.equal(parked.size, 1)
  await clock.pass(1)
  t.equal(parked.size, 0)
  await t.rejects(parked.resume(retry(other)), { message: /expired/ })
})

t.test('bounds parked calls in total and per principal', async (t) => {
  const parked = parkedBy()
  const states = [park(parked), park(parked)]
  t.throws(() => park(parked), { message: /Too many/ })
  for (const principal of ['bob', 'carol']) park(parked, callOf({ principal }))
  t.throws(() => park(parked, callOf({ principal: 'dave' })), { message: /Too many/ })
  t.equal(parked.size, 4)
  await parked.resume(retry(String(states[0]), NO))
  t.equal(parked.size, 3)
  t.ok(park(parked, callOf({ principal: 'dave' })))
  parked.close()
  t.equal(parked.size, 0)
})

/** Makes a call during which the server asks once, and answers the question. */
function asksOnce(reply: Final): AskedCall {
  const legs: LegEnd[] = [{ kind: 'asks' }, reply]
  const question = { method: 'elicitation/create' } as unknown as ServerQuestion
  const running = {
    session: SESSION,
    over: false,
    answered: false,
    questions: new Map([['elicitation-1', question]]),
    leg: async () => legs.shift(),
    inputRequests: () => '{}',
    answer() {},
    sendProgress() {},
    end() {
      running.over = true
    },
  }
  return running as unknown as AskedCall
}

t.test('remembers the last reply of a parked call, and not the call', async (t) => {
  const parked = parkedBy()
  const reply: Final = { kind: 'result', result: parseObject('{"content":[]}'), server: undefined }
  let running: AskedCall | undefined = asksOnce(reply)
  const left = new WeakRef(running)
  const state = stateOf(await parked.run(running, callOf()))
  const answers = '{"elicitation-1":{"action":"decline"}}'
  t.equal(await parked.resume(retry(state, answers)), reply)
  running = undefined
  await until(() => {
    collectGarbage()
    return left.deref() === undefined
  }, 'the end of the call in memory')
  t.equal(await parked.resume(retry(state, answers)), reply, 'a client that repeats its answers gets it again')
  parked.close()
})
