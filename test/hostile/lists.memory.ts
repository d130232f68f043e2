/** Servers of a group with lists that are too long. The bridge has a heap of 512 MB. */
import t, { type Test } from 'tap'
import { modernRequest } from '../support/attack.js'
import { startFixture } from '../support/process.js'
import { type Attacked, besideHealthy, startSmall } from '../support/small-heap.js'

type Json = Record<string, unknown>

interface Listed {
  tools: number
  bytes: number
  pages?: number
  distinct?: boolean
}

/** Starts the bridge in front of a group of servers with these lists, and of one with two tools, which `healthy.mjs` calls. */
async function startGroup(t: Test, lists: readonly Listed[], group: Json): Promise<Attacked & { ask: Ask }> {
  const started = lists.map((list) => startFixture(t, 'bulky.mjs', 'modern', 'http', JSON.stringify(list)))
  const evil = (await Promise.all(started)).map(({ url }, i) => [`evil${i}`, { url }])
  const { url } = await startFixture(t, 'bulky.mjs', 'modern', 'http')
  const mcpServers = Object.fromEntries([...evil, ['good', { url }]]) as Json
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
