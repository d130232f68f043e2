/** The policy that cuts results: what it keeps, what it leaves alone, and whose results it cuts. */
import fc from 'fast-check'
import t from 'tap'
import { unlimited } from '../../../src/base/limits/memory.js'
import { write } from '../../../src/base/rpc/splice.js'
import type { BridgeEvent } from '../../../src/mcp/ports/events.js'
import type { Call, Final, ServerNotification } from '../../../src/mcp/protocol/call.js'
import { cutting } from '../../../src/middle/policy/cut/cutting.js'
import { KeptResults, type PartStore } from '../../../src/middle/policy/cut/kept-results.js'
import { callOf, payload, result, toolCall } from '../../support/calls.js'

type Block = Record<string, unknown>
const LIMIT = 1_024

/** Everything that is kept, by id. */
function store(): PartStore & { kept: Map<string, readonly string[]> } {
  const kept = new Map<string, readonly string[]>()
  return {
    kept,
    keep: async ({ id }, _principal, parts) => {
      kept.set(id, parts)
      return 0
    },
    part: async ({ id }, number) => kept.get(id)?.[number],
  }
}

function setUp(parts: PartStore = store(), tools: object[] = [{ name: 'x' }, { name: 'declared', outputSchema: {} }]) {
  const kept = new KeptResults([], parts)
  const events: BridgeEvent[] = []
  const observe = (event: BridgeEvent) => events.push(event)
  const policy = cutting({ server: 's', limitOf: () => LIMIT, kept, memory: unlimited(), observe })
  const answer = async (call: Call, given: Final) =>
    policy(async ({ method }) => (method === 'tools/list' ? result({ tools }) : given))(call)
  /** The whole text that the last block but one names. */
  const rest = async (call: Call, uri: string) => {
    const texts: string[] = []
    for (let number = 1; ; number++) {
      const named = kept.named(`${uri}/${number}`)
      const part = named && (await kept.read(call, named))
      if (!part || part === 'foreign') return texts
      texts.push(part.text)
    }
  }
  return { answer, rest, kept, events }
}

const blocksIn = (last: Final) =>
  (JSON.parse(write((last as Final & { kind: 'result' }).result)).content ?? []) as Block[]
const linkIn = (blocks: readonly Block[]) => String(blocks.find(({ type }) => type === 'resource_link')?.['uri'])
const baseOf = (uri: string) => uri.slice(0, uri.lastIndexOf('/'))

const texts = fc.array(
  fc.string({ unit: fc.constantFrom('a', '"', '\n', 'é', '\u{1f600}', '\ud83d'), minLength: 0, maxLength: 600 }),
  { minLength: 1, maxLength: 6 },
)

t.test('what is shown begins the text, and the parts are all of it; short results are the same object', async () => {
  await fc.assert(
    fc.asyncProperty(texts, async (all) => {
      const { answer, rest } = setUp()
      const call = toolCall('x')
      const given = result({ content: all.map((text) => ({ type: 'text', text })) })
      const last = await answer(call, given)
      const joined = all.join('\n')
      if (Buffer.byteLength(joined) <= LIMIT) return last === given
      const blocks = blocksIn(last)
      const at = blocks.findIndex(({ type }) => type === 'resource_link')
      const shown = blocks
        .slice(0, at - 1)
        .map(({ text }) => text)
        .join('\n')
      const parts = await rest(call, baseOf(linkIn(blocks)))
      return (
        parts.join('') === joined &&
        [parts[0], `${shown}\n`, shown].includes(parts[0] as string) &&
        joined.startsWith(shown)
      )
    }),
    { numRuns: 200 },
  )
})

t.test('a result that cannot be kept passes whole', async (t) => {
  const given = result({ content: [{ type: 'text', text: 'x'.repeat(5_000) }] })
  for (const keep of [async () => undefined, () => Promise.reject(new Error('no store'))]) {
    const { answer, events } = setUp({ keep, part: async () => undefined })
    t.equal(await answer(toolCall('x'), given), given)
    t.same(events, [{ kind: 'cut', server: 's', what: 'whole' }])
  }
})

t.test('structured content is replaced only for a tool that is known to declare none', async (t) => {
  const given = result({ content: [], structuredContent: { rows: 'x'.repeat(5_000) } })
  const { answer } = setUp()
  t.equal(await answer(toolCall('declared'), given), given)
  t.equal(await answer(toolCall('unknown'), given), given)
  t.equal(blocksIn(await answer(toolCall('x'), given)).length, 2)
})

t.test('answers that are no results of tools pass', async (t) => {
  const { answer } = setUp()
  const text = 'x'.repeat(5_000)
  const given = result({ content: [{ type: 'text', text }], messages: [], contents: [{ uri: 'a:b', text }] })
  for (const method of ['prompts/get', 'resources/read', 'vendor/tool'])
    t.equal(await answer(callOf({ method }), given), given, method)
  const others: Final[] = [
    { ...given, type: 'task' } as Final,
    { kind: 'error', error: { code: -1, message: text } },
    { kind: 'input', result: payload({ inputRequests: {}, content: [{ type: 'text', text }] }) },
  ]
  for (const other of others) t.equal(await answer(toolCall('x'), other), other)
})

t.test('results of tasks are cut wherever they come, and kept once', async (t) => {
  const parts = store()
  const { answer, rest } = setUp(parts)
  const done = { content: [{ type: 'text', text: 'é'.repeat(2_000) }] }
  const call = callOf({ method: 'tasks/result' })
  const link = linkIn(blocksIn(await answer(call, result(done))))
  t.equal((await rest(call, baseOf(link))).join(''), 'é'.repeat(2_000))
  for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
    const last = await answer(callOf({ method }), result({ taskId: 't', status: 'completed', result: done }))
    const state = JSON.parse(write((last as Final & { kind: 'result' }).result))
    t.match(state, { taskId: 't', result: { content: [{ type: 'text' }, {}, { type: 'resource_link' }] } }, method)
  }
  t.equal(parts.kept.size, 1)
  const working = result({ taskId: 't', status: 'working' })
  t.equal(await answer(callOf({ method: 'tasks/get' }), working), working)
})

t.test('a notification that a task has ended has its result cut', async (t) => {
  const kept = new KeptResults([], store())
  const heard: ServerNotification[] = []
  const policy = cutting({ server: 's', limitOf: () => LIMIT, kept, memory: unlimited() })
  const told = (params: object): ServerNotification => ({
    kind: 'notification',
    method: 'notifications/tasks',
    params: payload(params),
  })
  const working = told({ taskId: 't', status: 'working' })
  const handle = policy(async ({ notify }) => {
    await notify(working)
    await notify(told({ taskId: 't', result: { content: [{ type: 'text', text: 'x'.repeat(5_000) }] } }))
    return result({})
  })
  const notify = (one: ServerNotification) => {
    heard.push(one)
    return undefined
  }
  await handle(callOf({ method: 'subscriptions/listen', notify }))
  t.equal(heard[0], working)
  t.equal(JSON.parse(write((heard[1] as ServerNotification).params)).result.content.length, 3)
})

t.test('a URI is sealed: another one, also of another process, names nothing', async (t) => {
  const { answer, kept } = setUp()
  const given = result({ content: [{ type: 'text', text: 'x'.repeat(5_000) }] })
  const link = linkIn(blocksIn(await answer(toolCall('x'), given)))
  t.ok(kept.named(link))
  t.equal(kept.named(`one+${link}`)?.base, baseOf(`one+${link}`), 'with the prefix of a group')
  for (const other of [`x${link}`, `${link}/1`, link.replace('mcp-bridge', 'other'), `${baseOf(link)}x/2`])
    t.equal(kept.named(other), undefined, other)
  t.equal(setUp().kept.named(link), undefined)
  const named = kept.named(link)
  t.equal(named && (await kept.read(toolCall('x', { principal: 'bob' }), named)), 'foreign')
})
