/** Servers of a group with lists that are too long. The bridge has a heap of 512 MB. */
import t, { type Test } from 'tap'
import { modernRequest } from '../support/attack.js'
import { startFixture } from '../support/process.js'
import { type Attacked, besideHealthy, startSmall } from '../support/small-heap.js'

type Json = Record<string, unknown>

interface Listed {
  zeros?: number
  tools: number
  bytes: number
  pages?: number
  distinct?: boolean
}

/** Starts the bridge in front of a group of servers with these lists, and of one with two tools, which `healthy.mjs` calls. */
async function startGroup(t: Test, lists: readonly Listed[], group: Json): Promise<Attacked & { ask: Ask }> {
  const started = lists.map((list) => startFixture(t, 'bulky.mjs', 'modern', 'http', JSON.stringify(list)))
  const evil = (await Promise.all(started)).map(({ url }, i) => [`evil${i}`, { url }])
  return startServers(t, Object.fromEntries(evil), group)
}

/** As `startGroup`, with servers that run already. */
async function startServers(t: Test, evil: Json, group: Json): Promise<Attacked & { ask: Ask }> {
  const { url } = await startFixture(t, 'bulky.mjs', 'modern', 'http')
  const mcpServers: Json = { ...evil, good: { url } }
  const groups = { team: { servers: Object.keys(mcpServers), ...group } }
  const attacked = await startSmall(t, {}, { mcpServers, groups })
  const { origin } = attacked
  const ask: Ask = async (method, params) => {
    const answer = await fetch(`${origin}/team/mcp`, { method: 'POST', ...modernRequest(method, params) })
    // An answer that takes long is an event, after comments.
    const text = await answer.text()
    return JSON.parse(text.slice(text.indexOf('{'))) as Awaited<ReturnType<Ask>>
  }
  return { ...attacked, url: `${origin}/good/mcp`, ask }
}

type Ask = (method: string, params: Json) => Promise<{ result?: Json; error?: Json }>

const ENDLESS: Listed = { tools: 20, bytes: 100_000 }
const search = (query: string) => ({ name: 'search_tools', arguments: { query } })

t.test('a list of 2 MB pages without an end is searched up to a bound', async (t) => {
  const attacked = await startGroup(t, [ENDLESS, ENDLESS], { search: true })
  await besideHealthy(t, attacked, async () => {
    const answers = await Promise.all([1, 2, 3].map(() => attacked.ask('tools/call', search('echo'))))
    for (const { result } of answers) {
      t.match(JSON.stringify(result?.['structuredContent']), 'good__echo')
      t.match(JSON.stringify(result?.['content']), /too long: evil0, evil1/)
    }
  })
})

t.test('a name is looked for in a list of 2 MB pages without an end up to a bound', async (t) => {
  const attacked = await startGroup(t, [ENDLESS, ENDLESS], { prefix: 'never' })
  await besideHealthy(t, attacked, async () => {
    const answers = await Promise.all(
      ['none', 'never', 'nothing'].map((name) => attacked.ask('tools/call', { name, arguments: {} })),
    )
    for (const { error } of answers) t.match(error, { code: -32602 })
    t.match(await attacked.ask('tools/call', { name: 'tool_7', arguments: {} }), { result: {} }, 'a known one')
    t.ok((await attacked.ask('tools/list', {})).result)
  })
})

t.test('4,000 tools with 2,000 characters of words that no other tool has are searched up to a bound', async (t) => {
  const attacked = await startGroup(t, [{ tools: 4_000, pages: 1, bytes: 2_000, distinct: true }], { search: true })
  await besideHealthy(t, attacked, async () => {
    for (const query of ['echo', 'bulk']) {
      const { result } = await attacked.ask('tools/call', search(query))
      t.match(JSON.stringify(result?.['structuredContent']), `good__${query}`)
      t.match(JSON.stringify(result?.['content']), /too long: evil0/)
    }
  })
})

t.test('a list of seven million numbers is a mistake of its server', async (t) => {
  const attacked = await startGroup(t, [{ tools: 0, bytes: 0, zeros: 7_000_000 }], { search: true })
  await besideHealthy(t, attacked, async () => {
    for (let times = 0; times < 2; times++) {
      const { result } = await attacked.ask('tools/call', search('echo'))
      t.match(JSON.stringify(result?.['structuredContent']), 'good__echo')
      const listed = await attacked.ask('tools/list', {})
      t.match(listed.result?.['_meta'], {
        'io.github.mcp-bridge/unavailable': [{ server: 'evil0', message: /250000 elements/ }],
      })
    }
  })
})

t.test('200 servers with 500 tools each are listed to the end', async (t) => {
  const list = JSON.stringify({ tools: 500, pages: 1, bytes: 100 })
  const { url } = await startFixture(t, 'bulky.mjs', 'modern', 'http', list)
  const many = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`evil${i}`, { url }]))
  const attacked = await startServers(t, many, { wait: 60_000 })
  await besideHealthy(t, attacked, async () => {
    const names = new Set<unknown>()
    let cursor: unknown
    do {
      const { result = {} } = await attacked.ask('tools/list', cursor === undefined ? {} : { cursor })
      for (const { name } of result['tools'] as Json[]) names.add(name)
      cursor = result['nextCursor']
      t.notOk((result['_meta'] as Json | undefined)?.['io.github.mcp-bridge/unavailable'], 'no server is missing')
    } while (cursor !== undefined)
    t.equal(names.size, 200 * 502 + 2)
  })
})
