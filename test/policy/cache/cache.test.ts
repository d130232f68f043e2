/** Which results are cached, for whom and how long, with a scripted server and a fake clock. */
import t, { type Test } from 'tap'
import { unlimited } from '../../../src/base/limits/memory.js'
import { sourceOfBytes } from '../../../src/base/rpc/source.js'
import { EMPTY, edit, parseSource, wire, write } from '../../../src/base/rpc/splice.js'
import type { CacheHint, Call, CallLog, Final, Notify, Reply } from '../../../src/mcp/protocol/call.js'
import { methods, methodTraits } from '../../../src/mcp/protocol/methods.js'
import { Cache, type CacheOptions } from '../../../src/middle/policy/cache/cache.js'
import { keepResults, type Results } from '../../../src/middle/policy/cache/results.js'
import { answerFrom, type Changes, callOf, payload } from '../../support/calls.js'
import { type Clock, stopClock } from '../../support/clock.js'

const LISTEN = 'subscriptions/listen'
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged'
const UPDATED = 'notifications/resources/updated'
const LISTS = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true }
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const CACHEABLE = [
  'server/discover',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'skills/list',
  'skills/get',
  'resources/directory/read',
]
const QUIET: CallLog = { note() {}, warn() {} }
const PRIVATE: CacheHint = { ttlMs: MINUTE, scope: 'private' }
const PUBLIC: CacheHint = { ttlMs: MINUTE, scope: 'public' }

type Filter = Record<string, unknown> & { resourceSubscriptions?: string[] }
type Answer = (call: Call, nth: number) => Final | Promise<Final>

const notice = (method: string, params: object = {}) =>
  ({ kind: 'notification', method, params: payload(params) }) as const
const changed = (list: string) => notice(`notifications/${list}/list_changed`)
/** A result with a number that identifies it. */
const numbered =
  (cache?: CacheHint): Answer =>
  (_call, nth) => ({ kind: 'result', result: payload({ nth }), server: '{"name":"s","version":"1"}', cache })

/** One subscription, as the server sees it. */
class Subscription {
  readonly call: Call
  readonly filter: Filter
  readonly #replies: Reply[] = []
  #over = false
  #wake = () => {}

  constructor(call: Call) {
    this.call = call
    this.filter = (JSON.parse(write(call.params)) as { notifications: Filter }).notifications
    call.signal.addEventListener('abort', () => this.#wake())
  }

  get isOpen(): boolean {
    return !this.#over && !this.call.signal.aborted
  }

  agree(filter: object = this.filter): void {
    this.say(notice(ACKNOWLEDGED, { notifications: filter }))
  }

  say(...replies: Reply[]): void {
    this.#replies.push(...replies)
    this.#wake()
  }

  /** Ends the subscription, with a result, an error, or neither. */
  end(last?: Reply): void {
    this.#over = true
    this.say(...(last ? [last] : []))
  }

  async *replies(): AsyncGenerator<Reply> {
    for (;;) {
      for (const reply of this.#replies.splice(0)) yield reply
      if (this.#over) throw new Error('the connection is gone')
      this.call.signal.throwIfAborted()
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }
}

function start(t: Test, answer: Answer = numbered(PRIVATE), options: Partial<CacheOptions> = {}, clock?: Clock) {
  const { pass } = clock ?? stopClock(t)
  const fetched: Call[] = []
  const subscriptions: Subscription[] = []
  const counted: string[] = []
  const results = options.results ?? keepResults(unlimited(), () => Date.now())
  const cache = new Cache({
    server: 'test',
    mode: 'hints',
    shared: false,
    results,
    subscriptions: 256,
    observe: (event) => counted.push(`${event.kind} ${event.server} ${'what' in event ? event.what : ''}`),
    ...options,
  })
  const handle = cache.policy(async function server(call) {
    if (call.method === LISTEN) {
      const subscription = new Subscription(call)
      subscriptions.push(subscription)
      return answerFrom(subscription.replies(), call.notify)
    }
    fetched.push(call)
    return answer(call, fetched.length)
  })
  /** Sends a call, and returns its answer. */
  const ask = (changes: Changes = {}): Promise<Final> => handle(callOf(changes))
  /** Sends a call, and returns whether the server received it. */
  const reaches = async (changes: Changes = {}): Promise<boolean> => {
    const before = fetched.length
    await ask(changes)
    return fetched.length > before
  }
  t.teardown(() => cache.close())
  return { cache, handle, ask, reaches, fetched, subscriptions, counted, results, pass }
}

/** The content of a result, and its cache hint. */
function said(reply: Reply): object {
  if (reply.kind !== 'result') return reply
  return { ...(JSON.parse(write(reply.result)) as object), cache: reply.cache, server: reply.server }
}

t.test('caches complete results of cacheable methods only', async (t) => {
  const error: Reply = { kind: 'error', error: { code: -32603, message: 'no' } }
  const result = (more: object): Answer => {
    return () => ({ kind: 'result', result: EMPTY, cache: PRIVATE, ...more }) as Final
  }
  const rows: [name: string, changes: Changes, answer: Answer, kept: boolean][] = [
    ...Object.keys(methods).map(
      (method) => [method, { method }, numbered(PRIVATE), CACHEABLE.includes(method)] as (typeof rows)[number],
    ),
    ['a method of an extension', { method: 'vendor/list' }, numbered(PRIVATE), false],
    ['without a hint', {}, numbered(), false],
    ['which holds for no time', {}, numbered({ ttlMs: 0, scope: 'public' }), false],
    ['of a type of an extension', {}, result({ type: 'task' }), false],
    ['a question', {}, () => ({ kind: 'input', result: EMPTY }), false],
    ['an error', {}, () => error, false],
    ['a fault', {}, () => Promise.reject(new Error('no')), false],
    ['of a retry with answers', { answers: { responses: '{}', state: undefined } }, numbered(PRIVATE), false],
    ['of a retry with a state', { answers: { responses: undefined, state: '"s"' } }, numbered(PRIVATE), false],
    ['of a call with a key of a vendor', { meta: { 'com.example/tenant': 1 } }, numbered(PRIVATE), false],
    [
      'of a call in a trace',
      { meta: { traceparent: '00-1-2-03', tracestate: 'a', baggage: 'b' } },
      numbered(PRIVATE),
      true,
    ],
    ['of a call with progress', { progress: true }, numbered(PRIVATE), true],
    ['of a call with log messages', { caller: { logLevel: 'debug' } }, numbered(PRIVATE), true],
    ['of a call with much to say', { params: { cursor: 'x'.repeat(9_000) } }, numbered(PRIVATE), false],
    ['of a call that nobody waits for', { signal: AbortSignal.abort() }, numbered(PRIVATE), false],
  ]
  const clock = stopClock(t)
  for (const [name, changes, answer, kept] of rows.filter(([, { method }]) => method !== LISTEN)) {
    const { ask, fetched, results } = start(t, answer, {}, clock)
    for (let n = 0; n < 2; n++) await ask(changes).catch(() => {})
    t.equal(fetched.length, kept ? 1 : 2, name)
    t.equal(results.size, kept ? 1 : 0, name)
  }
  t.same(
    Object.keys(methods)
      .filter((method) => methodTraits(method).cacheable)
      .sort(),
    [...CACHEABLE].sort(),
  )
})

t.test('answers equal requests from the cache, and no others', async (t) => {
  const first: Changes = {
    params: '{"cursor":"a","more":{"x":1,"y":[true,null]}}',
    caller: { capabilities: '{"roots":{},"sampling":{"tools":{}}}', clientInfo: '{"name":"one","version":"1"}' },
    credential: { authorization: 'Bearer one' },
  }
  const rows: [name: string, changes: Changes, same: boolean][] = [
    ['the same', {}, true],
    ['in another order', { params: '{ "more" : {"y":[true,null],"x":1}, "cursor":"\\u0061" }' }, true],
    ['another cursor', { params: '{"cursor":"b","more":{"x":1,"y":[true,null]}}' }, false],
    ['no cursor', { params: '{"more":{"x":1,"y":[true,null]}}' }, false],
    ['another number', { params: '{"cursor":"a","more":{"x":1.0,"y":[true,null]}}' }, false],
    ['another order of a list', { params: '{"cursor":"a","more":{"x":1,"y":[null,true]}}' }, false],
    ['another method', { method: 'prompts/list' }, false],
    ['another principal', { principal: 'bob' }, false],
    ['another credential', { credential: { authorization: 'Bearer two' } }, false],
    ['no credential', { credential: undefined }, false],
    ['capabilities in another order', { caller: { capabilities: '{"sampling": {"tools": {}}, "roots":{}}' } }, true],
    ['other capabilities', { caller: { capabilities: '{"roots":{}}' } }, false],
    ['another client', { caller: { ...first.caller, clientInfo: '{"name":"two","version":"1"}' } }, true],
    ['log messages', { caller: { ...first.caller, logLevel: 'info' } }, true],
    ['progress', { progress: true }, true],
    ['a trace', { meta: { traceparent: '00-1-2-03' } }, true],
    ['a key of a vendor', { meta: { traceparent: '00-1-2-03', 'com.example/x': 1 } }, false],
    ['headers', { paramHeaders: new Map() }, false],
    ['answers', { answers: { responses: '{}', state: undefined } }, false],
  ]
  const { reaches, fetched, results } = start(t)
  await reaches(first)
  for (const [name, changes, same] of rows) {
    t.equal(!(await reaches({ ...first, ...changes })), same, name)
  }
  t.notMatch(JSON.stringify([...results.keys()]), /Bearer|alice|cursor/, 'keys say nothing')
  t.equal(fetched.length, 1 + rows.filter(([, , same]) => !same).length)
})

t.test('shares public results with everybody, and private ones with nobody', async (t) => {
  const NONE: CacheHint = { ttlMs: 0, scope: 'private' }
  const OPEN: CacheHint = { ttlMs: 0, scope: 'public' }
  const rows: [mode: 'hints' | number, shared: boolean, hint: CacheHint | undefined, own: boolean, others: boolean][] =
    [
      ['hints', false, PRIVATE, true, false],
      ['hints', false, PUBLIC, true, true],
      ['hints', true, PRIVATE, true, false],
      ['hints', true, PUBLIC, true, true],
      ['hints', true, NONE, false, false],
      ['hints', true, OPEN, false, false],
      ['hints', true, undefined, false, false],
      [MINUTE, false, undefined, true, false],
      [MINUTE, false, NONE, true, false],
      [MINUTE, false, PRIVATE, true, false],
      [MINUTE, false, PUBLIC, true, false],
      [MINUTE, true, undefined, true, true],
      [MINUTE, true, NONE, true, false],
      [MINUTE, true, PRIVATE, true, false],
      [MINUTE, true, OPEN, true, true],
      [MINUTE, true, PUBLIC, true, true],
    ]
  const clock = stopClock(t)
  for (const [mode, shared, hint, own, others] of rows) {
    const name = `${mode}, ${shared ? 'for everybody' : 'for who has asked'}, ${JSON.stringify(hint)}`
    const { reaches } = start(t, numbered(hint), { mode, shared }, clock)
    t.ok(await reaches(), name)
    t.equal(!(await reaches()), own, `${name}, again`)
    t.equal(!(await reaches({ principal: 'bob' })), others, `${name}, by another`)
    const capable = { principal: 'bob', caller: { capabilities: '{"roots":{}}' } }
    t.ok(await reaches(capable), `${name}, by one who can do other things`)
  }
})

t.test("never shares a result that was requested with the caller's credential", async (t) => {
  const clock = stopClock(t)
  for (const mode of ['hints', MINUTE] as const) {
    const { reaches } = start(t, numbered(PUBLIC), { mode, shared: true }, clock)
    const [one, other] = ['Bearer one', 'Bearer two'].map((authorization) => ({
      principal: 'same',
      credential: { authorization },
    }))
    t.ok(await reaches(one))
    t.notOk(await reaches(one))
    t.ok(await reaches(other), 'only the server knows what the other one is worth')
    t.ok(await reaches({ principal: 'same' }))
    t.notOk(await reaches({ principal: 'another' }), 'which is public')
    t.ok(
      await reaches({ principal: 'another', credential: { authorization: 'Bearer three' } }),
      'but not for who has to show something',
    )
  }
})

t.test('returns a result unchanged, with its remaining time', async (t) => {
  const { ask, pass } = start(t, (_call, nth) => ({
    kind: 'result',
    result: edit(payload(` { "b" : 1.0, "a":9007199254740993, "b2":"\\u00e9ü", "nth":${nth} } `.trim()), { b: '[ ]' }),
    server: '{"name":"s","version":"1"}',
    cache: PUBLIC,
  }))
  const first = await ask()
  await pass(20_000)
  const second = await ask()
  if (first.kind !== 'result' || second.kind !== 'result') throw new Error('There are results')
  t.equal(write(second.result), write(first.result))
  t.match(write(second.result), /"b" : \[ \],"a":9007199254740993, "b2":"\\u00e9ü"/)
  t.same({ ...second, result: 0 }, { ...first, result: 0, cache: { ttlMs: 40_000, scope: 'public' } })
  await pass(39_999)
  t.match(said(await ask()), { nth: 1, cache: { ttlMs: 1 } })
  await pass(2)
  t.match(said(await ask()), { nth: 2, cache: PUBLIC }, 'it has come to its end')
})

t.test('caches nothing for longer than an hour, or the configured time', async (t) => {
  const clock = stopClock(t)
  const day = 24 * HOUR
  const rows: [mode: 'hints' | number, ttlMs: number | undefined, kept: number, told: number | undefined][] = [
    ['hints', MINUTE, MINUTE, MINUTE - 10_000],
    ['hints', day, HOUR, HOUR - 10_000],
    ['hints', 2 ** 63, HOUR, HOUR - 10_000],
    [MINUTE, undefined, MINUTE, undefined],
    [MINUTE, 0, MINUTE, 0],
    [MINUTE, 15_000, MINUTE, 5_000],
    [MINUTE, day, MINUTE, MINUTE - 10_000],
    [day, undefined, HOUR, undefined],
  ]
  for (const [mode, ttlMs, kept, told] of rows) {
    const name = `${mode}, ${ttlMs}`
    const hint: CacheHint | undefined = ttlMs === undefined ? undefined : { ttlMs, scope: 'private' }
    const { ask, reaches, pass } = start(t, numbered(hint), { mode }, clock)
    t.same(said(await ask()), { nth: 1, cache: hint, server: '{"name":"s","version":"1"}' }, `${name}: as it came`)
    await pass(10_000)
    const cache = told === undefined ? undefined : { ttlMs: told, scope: 'private' }
    t.same(said(await ask()), { nth: 1, cache, server: '{"name":"s","version":"1"}' }, name)
    await pass(kept - 10_000 - 1)
    t.notOk(await reaches(), name)
    await pass(2)
    t.ok(await reaches(), name)
  }
})

t.test('bounds the cache in number and in bytes, and each single result', async (t) => {
  const clock = stopClock(t)
  const sized = (bytes: number, character = 'x') => {
    const text = character.repeat((bytes - '{"x":""}'.length) / Buffer.byteLength(character))
    return (): Final => ({ kind: 'result', result: payload({ x: text }), cache: PRIVATE })
  }
  const rows: [name: string, answer: Answer, kept: boolean][] = [
    ['a mebibyte', sized(1024 * 1024), true],
    ['a byte more', sized(1024 * 1024 + 1), false],
    ['fewer characters than bytes', sized(1024 * 1024 + 2, 'é'), false],
    ['much more', sized(5 * 1024 * 1024), false],
  ]
  for (const [name, answer, kept] of rows) {
    const { ask, results } = start(t, answer, {}, clock)
    await ask()
    t.equal(results.size, kept ? 1 : 0, name)
  }

  const many = start(t, numbered(PRIVATE), {}, clock)
  for (let n = 0; n < 4_096; n++) await many.ask({ params: { n } })
  t.notOk(await many.reaches({ params: { n: 0 } }), 'all of them are kept')
  await many.ask({ params: { n: 4_096 } })
  t.equal(many.results.size, 4_096)
  t.ok(await many.reaches({ params: { n: 1 } }), 'nobody has asked for it longest')
  t.notOk(await many.reaches({ params: { n: 0 } }))

  const large = start(t, sized(1024 * 1024), {}, clock)
  for (let n = 0; n < 70; n++) await large.ask({ params: { n } })
  t.equal(large.results.size, 64)
  t.equal(large.results.calculatedSize, 64 * 1024 * 1024)
})

t.test('keeps long strings as bytes', async (t) => {
  const blob = 'A'.repeat(100_000)
  const bytes = new TextEncoder().encode(`{"contents":[{"uri":"a:b","blob":"${blob}"}]}`)
  const result = parseSource(sourceOfBytes([bytes], () => true))
  const { ask } = start(t, () => ({ kind: 'result', result, cache: PRIVATE }))
  await ask()
  const again = await ask()
  if (again.kind !== 'result') throw new Error('There is a result')
  const pieces = wire(again.result)
  t.ok(Array.isArray(pieces) && pieces.some((piece) => typeof piece !== 'string' && piece.length > blob.length))
  t.equal(write(again.result), write(result))
})

t.test('fetches only changed results again', async (t) => {
  const asked: Changes[] = [
    ...CACHEABLE.filter((method) => method !== 'resources/read').map((method) => ({ method })),
    ...['test://a', 'test://a/b', 'test://ab'].map((uri) => ({ method: 'resources/read', params: { uri } })),
  ]
  const nameOf = ({ method, params }: Changes) => (params ? String((params as { uri: string }).uri) : String(method))
  const rows: [name: string, notice: ReturnType<typeof notice>, dropped: string[]][] = [
    ['tools', changed('tools'), ['server/discover', 'tools/list']],
    ['prompts', changed('prompts'), ['server/discover', 'prompts/list']],
    [
      'resources',
      changed('resources'),
      [
        ...['server/discover', 'resources/list', 'resources/templates/list'],
        ...['skills/list', 'skills/get', 'resources/directory/read'],
      ],
    ],
    ['a resource', notice(UPDATED, { uri: 'test://a' }), ['test://a']],
    ['what lies below one', notice(UPDATED, { uri: 'test://a/b/c' }), ['test://a', 'test://a/b']],
    ['another', notice(UPDATED, { uri: 'test://c' }), []],
    ['none', notice(UPDATED, { uri: 7 }), []],
    ['a log message', notice('notifications/message', { level: 'info', data: 'x' }), []],
    ['nothing that is known', notice('constructor'), []],
  ]
  const ways: Record<string, (started: ReturnType<typeof start>, said: ReturnType<typeof notice>) => Promise<void>> = {
    'from outside': async ({ cache }, said) => cache.drop(said),
    'by its own subscription': async ({ subscriptions, pass }, said) => {
      for (const subscription of subscriptions.filter(({ isOpen }) => isOpen)) {
        subscription.agree()
        subscription.say(said)
      }
      await pass(0)
    },
    'by the subscription of a client': async ({ handle, subscriptions, pass }, said) => {
      const client = new AbortController()
      const told: Reply[] = []
      const notify: Notify = (one) => {
        told.push(one)
        return undefined
      }
      const listen = callOf({ method: LISTEN, params: { notifications: LISTS }, signal: client.signal, notify })
      const listening = handle(listen)
      subscriptions.at(-1)?.say(said)
      await pass(0)
      t.same(told, [said], 'who hears it as well')
      client.abort()
      await t.rejects(listening)
    },
  }
  const clock = stopClock(t)
  for (const [way, tell] of Object.entries(ways)) {
    const started = start(t, numbered(PRIVATE), {}, clock)
    for (const [name, said, dropped] of rows) {
      for (const changes of asked) await started.ask(changes)
      started.counted.length = 0
      await tell(started, said)
      t.same(started.counted, Array(dropped.length).fill('cache test dropped'), `${name} ${way}`)
      const gone: string[] = []
      for (const changes of asked) if (await started.reaches(changes)) gone.push(nameOf(changes))
      t.same(gone.sort(), dropped.sort(), `${name} ${way}`)
    }
  }
})

t.test('a change notification to one caller invalidates the results of all', async (t) => {
  const { reaches, subscriptions, pass } = start(t)
  await reaches()
  await reaches({ principal: 'bob' })
  subscriptions[0]?.agree()
  subscriptions[0]?.say(changed('tools'))
  await pass(0)
  t.ok(await reaches())
  t.ok(await reaches({ principal: 'bob' }))
})

t.test('does not cache a result that was requested before a change', async (t) => {
  const open: ((reply: Final) => void)[] = []
  const { cache, ask, reaches, results } = start(t, () => new Promise((resolve) => open.push(resolve)))
  const answer = () => open.shift()?.({ kind: 'result', result: EMPTY, cache: PRIVATE })
  const rows: [name: string, changes: Changes, said: ReturnType<typeof notice>, kept: boolean][] = [
    ['a list that has changed', {}, changed('tools'), false],
    ['another list', {}, changed('prompts'), true],
    [
      'a resource that has changed',
      { method: 'resources/read', params: { uri: 'a' } },
      notice(UPDATED, { uri: 'a' }),
      false,
    ],
    ['another resource', { method: 'resources/read', params: { uri: 'b' } }, notice(UPDATED, { uri: 'a' }), true],
  ]
  for (const [name, changes, said, kept] of rows) {
    const asking = ask(changes)
    cache.drop(said)
    answer()
    await asking
    t.equal(results.size, kept ? 1 : 0, name)
    results.clear()
    const again = reaches(changes)
    answer()
    await again
    t.equal(results.size, 1, `${name}, and then again`)
    results.clear()
  }
})

t.test('drops everything after changes may have been missed', async (t) => {
  const { cache, reaches, results } = start(t)
  t.ok(await reaches())
  t.ok(await reaches({ method: 'resources/read', params: { uri: 'a' } }))
  cache.missed()
  t.equal(results.size, 0)
  t.ok(await reaches())
})

t.test('a caller that leaves before the end of an answer leaves nothing behind', async (t) => {
  const { handle, reaches } = start(t)
  const client = new AbortController()
  const answering = handle(callOf({ signal: client.signal }))
  t.equal((await answering).kind, 'result')
  client.abort()
  t.notOk(await reaches(), 'what came is kept')
})

t.test('holds one subscription per principal while results are cached', async (t) => {
  const { ask, subscriptions, pass, cache } = start(t)
  const caller = { capabilities: '{"roots":{}}', clientInfo: '{"name":"c","version":"1"}', logLevel: 'debug' as const }
  await ask({ caller, credential: { authorization: 'Bearer one' }, progress: true })
  await ask({ caller, credential: { authorization: 'Bearer one' }, method: 'prompts/list' })
  t.equal(subscriptions.length, 1)
  const [first] = subscriptions as [Subscription]
  t.same(first.filter, LISTS)
  const { principal, credential, caller: shown, progress } = first.call
  t.match(
    { principal, credential, progress },
    { principal: 'alice', credential: { authorization: 'Bearer one' }, progress: false },
  )
  t.same(shown, { revision: '2026-07-28', capabilities: caller.capabilities, clientInfo: caller.clientInfo })
  first.agree()
  await pass(0)
  await ask({ principal: 'bob' })
  t.equal(subscriptions.length, 2, 'and one for each')
  subscriptions[1]?.agree()

  await pass(MINUTE + 9_000)
  t.ok(first.isOpen, 'what has expired may be asked for again')
  await pass(2_000)
  t.notOk(first.isOpen, 'afterwards there is nothing to listen for')
  t.notOk(subscriptions[1]?.isOpen)
  await pass(HOUR)
  t.equal(subscriptions.length, 2)
  await ask()
  t.equal(subscriptions.length, 3)
  cache.close()
  t.notOk(subscriptions[2]?.isOpen)
})

t.test('subscribes to further resources together, without a gap', async (t) => {
  const { ask, subscriptions, pass } = start(t)
  const read = (uri: string) => ask({ method: 'resources/read', params: { uri } })
  await read('a')
  const [first] = subscriptions as [Subscription]
  t.same(first.filter, { ...LISTS, resourceSubscriptions: ['a'] })
  first.agree()
  for (const uri of ['b', 'c', 'a']) await read(uri)
  await pass(999)
  t.equal(subscriptions.length, 1)
  await pass(1)
  t.equal(subscriptions.length, 2)
  const [, second] = subscriptions as [Subscription, Subscription]
  t.same(second.filter, { ...LISTS, resourceSubscriptions: ['a', 'b', 'c'] })
  t.ok(first.isOpen, 'the server has not agreed yet')
  second.agree()
  await pass(0)
  t.notOk(first.isOpen)
  t.ok(second.isOpen)
  await ask()
  await pass(10_000)
  t.equal(subscriptions.length, 2, 'lists are listened for already')

  for (let n = 0; n < 300; n++) await read(`item ${n}`)
  subscriptions.at(-1)?.agree()
  await pass(1_000)
  const uris = subscriptions.at(-1)?.filter.resourceSubscriptions ?? []
  t.same([uris.length, uris.at(-1)], [256, 'item 299'])
})

t.test('retries a subscription that is accepted late or not at all', async (t) => {
  const { ask, reaches, subscriptions, pass } = start(t, numbered({ ttlMs: HOUR, scope: 'private' }))
  await ask()
  await pass(9_999)
  t.ok(subscriptions[0]?.isOpen)
  await pass(1)
  t.notOk(subscriptions[0]?.isOpen)
  await pass(1_000)
  t.equal(subscriptions.length, 2)
  subscriptions[1]?.end({ kind: 'error', error: { code: -32601, message: 'no' } })
  await pass(1_999)
  t.equal(subscriptions.length, 2)
  await pass(1)
  t.equal(subscriptions.length, 3, 'twice as long after the second time')
  subscriptions[2]?.end()
  await pass(4_000)
  t.equal(subscriptions.length, 4)
  t.notOk(await reaches(), 'what is kept lives by its time')
})

t.test('does not subscribe again to a server without notifications', async (t) => {
  const { ask, reaches, subscriptions, pass } = start(t, numbered({ ttlMs: HOUR, scope: 'private' }))
  await ask()
  subscriptions[0]?.agree({})
  subscriptions[0]?.end({ kind: 'result', result: EMPTY })
  await pass(MINUTE)
  t.notOk(await reaches())
  t.equal(subscriptions.length, 1)
  await ask({ method: 'resources/read', params: { uri: 'a' } })
  t.equal(subscriptions.length, 2, 'but for resources')
  subscriptions[1]?.agree({})
  subscriptions[1]?.end({ kind: 'result', result: EMPTY })
  await ask({ method: 'resources/read', params: { uri: 'b' } })
  await pass(MINUTE)
  t.equal(subscriptions.length, 2)
})

t.test('drops all results of a subscription when it ends', async (t) => {
  const open: ((reply: Final) => void)[] = []
  const answer: Answer = ({ params }, nth) =>
    write(params) === '{"slow":1}'
      ? new Promise((resolve) => open.push(resolve))
      : { kind: 'result', result: payload({ nth }), cache: { ttlMs: HOUR, scope: 'private' } }
  const { ask, reaches, subscriptions, pass, counted } = start(t, answer)
  await ask()
  await ask({ principal: 'bob' })
  for (const subscription of subscriptions) subscription.agree()
  await pass(0)
  const slow = ask({ params: { slow: 1 } })
  counted.length = 0
  subscriptions[0]?.end({ kind: 'result', result: EMPTY })
  await pass(0)
  t.same(counted, ['cache test dropped'])
  open[0]?.({ kind: 'result', result: EMPTY, cache: PRIVATE })
  await slow
  t.same(counted, ['cache test dropped'], 'nor is kept what was on its way')
  t.equal(subscriptions.length, 2)
  t.ok(await reaches())
  t.notOk(await reaches({ principal: 'bob' }), 'and nothing else')
  t.equal(subscriptions.length, 2, 'it is not opened again at once')
  await pass(1_000)
  t.equal(subscriptions.length, 3)
  subscriptions[2]?.agree()
  await pass(30_000)
  subscriptions[2]?.end()
  await pass(0)
  t.ok(await reaches())
  await pass(1_000)
  t.equal(subscriptions.length, 4, 'one that has served well is opened again soon')
})

t.test('bounds subscriptions, and results beyond the bound only expire', async (t) => {
  const { reaches, subscriptions, pass } = start(t, numbered(PRIVATE), { subscriptions: 2 })
  const names = ['one', 'two', 'three']
  for (const principal of names) await reaches({ principal })
  t.same(
    subscriptions.map(({ call }) => call.principal),
    ['one', 'two'],
  )
  for (const principal of names) t.notOk(await reaches({ principal }))
  await pass(2 * MINUTE)
  await reaches({ principal: 'three' })
  t.equal(subscriptions.at(-1)?.call.principal, 'three', 'when the others have gone')
})

t.test('servers share the store, but no entries', async (t) => {
  const results: Results = keepResults(unlimited(), () => Date.now())
  const clock = stopClock(t)
  const [one, other] = [1, 2].map(() => start(t, numbered(PUBLIC), { results }, clock)) as [
    ReturnType<typeof start>,
    ReturnType<typeof start>,
  ]
  t.ok(await one.reaches())
  t.ok(await other.reaches())
  one.cache.drop(changed('tools'))
  t.ok(await one.reaches())
  t.notOk(await other.reaches())
  one.cache.close()
  t.equal(results.size, 1)
  t.ok(await one.reaches(), 'what is closed keeps nothing')
  t.ok(await one.reaches())
  t.notOk(await other.reaches())
})

t.test('counts hits and misses, and logs a hit with its call', async (t) => {
  const noted: object[] = []
  const log = { ...QUIET, note: (fields: object) => noted.push(fields) }
  const { ask, cache, counted } = start(t)
  await ask({ log })
  await ask({ log })
  await ask({ log, method: 'tools/call' })
  cache.drop(changed('tools'))
  t.same(
    counted,
    ['miss', 'stored', 'hit', 'dropped'].map((what) => `cache test ${what}`),
  )
  t.same(noted, [{ cached: true }])
})
