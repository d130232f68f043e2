/** The complete lists of a group's servers survive a restart of the bridge, each for the person to whom it was listed. */
import t from 'tap'
import type { ListStore } from '../../src/mcp/ports/list-store.js'
import type { Call, Final } from '../../src/mcp/protocol/call.js'
import type { GroupPlan, Member } from '../../src/middle/group/member.js'
import { until } from '../support/eventually.js'
import { ask, callOf, FakeServer, groupOf, named, paramsOf, resultOf } from './fakes.js'

const WAIT = { known: 1, first: 60_000 }
const OTHER_APPLICATION = { caller: { revision: '2026-07-28' as const, capabilities: '{"sampling":{}}' } }
const CHANGED = 'notifications/tools/list_changed'

const namesIn = (list: unknown) => (list as { tools: { name: string }[] }).tools.map(({ name }) => name)
const missingIn = (list: unknown) =>
  (list as { _meta?: Record<string, unknown[]> })._meta?.['io.github.mcp-bridge/unavailable']

/** A server that lists these tools, page by page; held, it does not answer. */
class Listing extends FakeServer {
  held: Promise<void> | undefined

  constructor(...pages: string[][]) {
    super({ 'server/discover': { capabilities: { tools: {} } } })
    const { 'server/discover': discovered } = this.answers
    this.answers['server/discover'] = async () => {
      await this.held
      return resultOf(discovered as Record<string, unknown>)
    }
    this.answers['tools/list'] = async (call: Call): Promise<Final> => {
      await this.held
      const at = Number(paramsOf(call)['cursor'] ?? 0)
      return resultOf({ tools: named(...(pages[at] ?? [])), ...(at + 1 < pages.length && { nextCursor: `${at + 1}` }) })
    }
  }

  /** Answers nothing until the returned function is called. */
  hold(): () => void {
    let go = () => {}
    this.held = new Promise((resolve) => {
      go = resolve
    })
    return go
  }
}

/** A store in memory. */
class Texts implements ListStore {
  readonly texts = new Map<string, string>()
  /** Keys of records that were not as they had been written. */
  readonly unusableKeys: string[] = []

  read(key: string): Promise<string | undefined> {
    return Promise.resolve(this.texts.get(key))
  }

  write(key: string, text: string): Promise<void> {
    this.texts.set(key, text)
    return Promise.resolve()
  }

  unusable(key: string): void {
    this.unusableKeys.push(key)
  }
}

interface Start {
  plan?: Partial<GroupPlan>
  version?: string
  lists?: string
  prefix?: string
}

/** A bridge with a group of these servers. */
function started(
  store: ListStore,
  servers: Record<string, FakeServer>,
  { plan, version = '1', lists = 'same', prefix }: Start = {},
) {
  const members = Object.entries(servers).map(
    ([server, upstream]): Member => ({ server, prefix: prefix ?? server, upstream, lists, takesPart: () => true }),
  )
  return groupOf(servers, { wait: WAIT, ...plan, members }, { store, version }).group
}

/** What a first bridge has listed is in the store when it has ended. */
async function listedOnce(servers: Record<string, FakeServer>, more: Partial<Call> = {}): Promise<Texts> {
  const store = new Texts()
  const group = started(store, servers)
  await ask(group, 'server/discover', {}, more)
  let cursor: unknown
  do {
    const list = await ask(group, 'tools/list', cursor === undefined ? {} : { cursor }, more)
    cursor = list['nextCursor']
  } while (cursor !== undefined)
  await group.flush()
  group.close()
  return store
}

t.test('after a restart a list is whole before any server has answered', async (t) => {
  const store = await listedOnce({ a: new Listing(['x', 'y']), b: new Listing(['z']) })
  for (const more of [{}, OTHER_APPLICATION]) {
    const [a, b] = [new Listing(['x', 'y']), new Listing(['z'])]
    const go = [a.hold(), b.hold()]
    const group = started(store, { a, b }, {})
    t.match(await ask(group, 'server/discover', {}, more), { capabilities: { tools: {} } })
    const list = await ask(group, 'tools/list', {}, more)
    t.same(namesIn(list), ['a__x', 'a__y', 'b__z'])
    t.match(missingIn(list), [{ server: 'a' }, { server: 'b' }])
    for (const open of go) open()
    await until(async () => missingIn(await ask(group, 'tools/list', {}, more)) === undefined, 'all have answered')
    group.close()
  }
})

t.test('clients are told if a server lists something else after the restart, and only then', async (t) => {
  const store = await listedOnce({ a: new Listing(['x']), b: new Listing(['z']) })
  for (const [tools, changes] of [
    [['x'], false],
    [['x', 'new'], true],
  ] as const) {
    const a = new Listing([...tools])
    const go = a.hold()
    const group = started(store, { a, b: new Listing(['z']) })
    const listening = callOf('subscriptions/listen', { notifications: { toolsListChanged: true } })
    const over = group.handle(listening).catch(() => {})
    t.same(namesIn(await ask(group, 'tools/list')), ['a__x', 'b__z'])
    go()
    await until(async () => missingIn(await ask(group, 'tools/list')) === undefined, 'it has answered')
    const isTold = () => listening.told.some(({ method }) => method === CHANGED)
    if (changes) await until(isTold, 'word of the change')
    else t.notOk(isTold())
    listening.abort()
    await over
    group.close()
  }
})

t.test('nobody gets what was listed to another person', async (t) => {
  const store = await listedOnce({ a: new Listing(['x']) })
  const stranger = { principal: 'bob' }
  const credential = { credential: { authorization: 'other' } }
  for (const more of [stranger, credential]) {
    const a = new Listing(['own'])
    const go = a.hold()
    const group = started(store, { a }, {})
    const list = ask(group, 'tools/list', {}, more)
    await until(() => a.got('tools/list').length > 0, 'the server is asked')
    go()
    t.same(namesIn(await list), ['a__own'])
    group.close()
  }
})

const OTHERS: Record<string, Start> = {
  'another server': { lists: 'other' },
  'another version of the bridge': { version: '2' },
  'another prefix': { prefix: 'other' },
  'a group without prefixes': { plan: { bareNames: true } },
  'a group with unchanged URIs': { plan: { bareUris: true } },
}
for (const [what, start] of Object.entries(OTHERS))
  t.test(`what is kept is not for ${what}`, async (t) => {
    const store = await listedOnce({ a: new Listing(['x']), b: new Listing(['z']) })
    const servers = { a: new Listing(['own']), b: new Listing(['theirs']) }
    const go = servers.a.hold()
    const group = started(store, servers, start)
    const list = ask(group, 'tools/list')
    await until(() => servers.a.got('tools/list').length > 0, 'the server is asked')
    go()
    t.equal(namesIn(await list).length, 2)
    t.match(namesIn(await list).join(), /own.*theirs/)
    group.close()
  })

t.test('pages are kept if they are all there, and not at all otherwise', async (t) => {
  const pages = [['x'], ['y'], ['z']]
  const store = await listedOnce({ a: new Listing(...pages), b: new Listing(['b']) })
  const a = new Listing(...pages)
  a.hold()
  const group = started(store, { a, b: new Listing(['b']) })
  const names: string[] = []
  let cursor: unknown
  do {
    const list = await ask(group, 'tools/list', cursor === undefined ? {} : { cursor })
    names.push(...namesIn(list))
    cursor = list['nextCursor']
  } while (cursor !== undefined)
  t.same(names, ['a__x', 'b__b', 'a__y', 'a__z'])
  group.close()

  const half = new Texts()
  const first = started(half, { a: new Listing(...pages) })
  await ask(first, 'tools/list')
  await first.flush()
  t.equal(half.texts.size, 0)
  first.close()
})

t.test('a broken record, or one of another place, is not used', async (t) => {
  const servers = () => ({ a: new Listing(['x']), b: new Listing(['z']) })
  const whole = await listedOnce(servers())
  const [[key, text] = ['', ''], [otherKey] = ['']] = [...whole.texts]
  for (const [what, broken] of [
    ['half of it', text.slice(0, -10)],
    ['something else', '{"lists":[]}'],
    ['empty', ''],
    ['of another server', whole.texts.get(otherKey) ?? ''],
    ['changed', text.replace('x', 'q')],
  ] as const) {
    const store = new Texts()
    store.texts.set(key, broken)
    const { a, b } = { ...servers() }
    const go = a.hold()
    const group = started(store, { a, b })
    const list = ask(group, 'tools/list')
    await until(() => a.got('tools/list').length > 0, 'the server is asked')
    go()
    t.same(namesIn(await list), ['a__x', 'b__z'], what)
    t.same(store.unusableKeys, [key], what)
    group.close()
  }
})

t.test('lists that are too long are not kept', async (t) => {
  const long = new Listing(['x'])
  long.answers['tools/list'] = {
    tools: [{ name: 'x', description: 'd'.repeat(5_000_000), inputSchema: { type: 'object' } }],
  }
  const store = await listedOnce({ long, short: new Listing(['y']) })
  t.equal(store.texts.size, 1)
})

t.test('an unchanged list is not kept again', async (t) => {
  const store = new Texts()
  let writes = 0
  const counting: ListStore = {
    read: (key) => store.read(key),
    write: (key, text) => {
      writes++
      return store.write(key, text)
    },
    unusable: (key) => store.unusable(key),
  }
  const group = started(counting, { a: new Listing(['x']) })
  for (let times = 0; times < 5; times++) {
    await ask(group, 'tools/list')
    await group.flush()
  }
  t.equal(writes, 1)
  group.close()
})
