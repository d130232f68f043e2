/** A client that knows what the configuration hides, and wants through. */
import type { Test } from 'tap'
import type { Client } from '../matrix/client.js'
import { type Json, Raw } from '../matrix/wire.js'

/** Hidden in every test. Whatever has one of these names reaches no server. */
export const HIDDEN = /\b(?:act|wait|greet)\b|test:\/+(?:x|ask|part)\b/i
export const CHOICE = {
  tools: {
    deny: ['act', 'wait'],
    override: { echo: { name: 'say', description: 'Says it', set: { org: 'acme' } }, log: { name: 'wait' } },
  },
  prompts: { deny: ['greet'] },
  resources: { deny: ['test://x', 'test://ask', 'test://part/*'] },
}

const tool = (name: unknown, more: Json = {}) => ['tools/call', { name, arguments: {}, ...more }] as const
const read = (uri: unknown) => ['resources/read', { uri }] as const
const complete = (ref: unknown) => ['completion/complete', { argument: { name: 'id', value: 'a' }, ref }] as const

/** Requests for what is hidden. `n` and `u` are what names and URIs begin with, as in a group. */
export const attempts = (n = '', u = ''): readonly (readonly [method: string, params: Json])[] => [
  tool(`${n}act`),
  tool(`${n}echo`),
  tool(`${n}Act`),
  tool(`${n}ACT`),
  tool(`${n} act`),
  tool(` ${n}act`),
  tool(`${n}act `),
  tool(`${n}act\n`),
  tool(`${n}\u202eact`),
  tool(`${n}./act`),
  tool(`${n}test__act`),
  tool(`${n}test.act`),
  tool(`${n}${n}act`),
  tool(`${n.toUpperCase()}act`),
  tool([`${n}act`]),
  tool({ name: `${n}act` }),
  tool(new Raw(`"${n}\\u0061ct"`)),
  tool(new Raw(`"${n}a\\u0063t"`)),
  tool(`${n}act`, { task: { ttl: 1_000 } }),
  tool(`${n}act`, { task: {}, inputResponses: {}, requestState: 'x' }),
  tool(new Raw(`"${n}say","name":"${n}act"`)),
  tool(new Raw(`"${n}say","name":"act"`)),
  tool(new Raw(`"${n}act","name":"${n}say"`)),
  tool(new Raw(`"act","name":"${n}say"`)),
  tool(new Raw(`"${n}say","Name":"${n}act"`)),
  tool(new Raw(`"${n}say","Name":"act"`)),
  tool(new Raw(`"${n}say","\\u006eame":"${n}act"`)),
  tool(`${n}say`, { arguments: { org: 'act' } }),
  tool(`${n}say`, { arguments: { Org: 'act' } }),
  tool(`${n}say`, { arguments: new Raw('{"\\u006frg":"act"}') }),
  tool(`${n}say`, { arguments: new Raw('{},"arguments":{"org":"act"}') }),
  tool(`${n}say`, { arguments: new Raw('{},"Arguments":{"org":"act"}') }),
  tool(`${n}say`, { arguments: ['act'] }),
  ['prompts/get', { name: `${n}greet` }],
  ['prompts/get', { name: `${n}Greet` }],
  ['prompts/get', { name: new Raw(`"${n}ask","name":"${n}greet"`) }],
  read(`${u}test://x`),
  read(`${u}TEST://x`),
  read(`${u}test://X`),
  read(`${u}test:/x`),
  read(`${u}test:///x`),
  read(`${u}test://x/`),
  read(`${u}test://x?y`),
  read(`${u}test://x#y`),
  read(`${u}test://static/../x`),
  read(`${u}test://static%2f..%2fx`),
  read(`${u}test://%78`),
  read(`${u}test://%2578`),
  read(`${u}test://user@x`),
  read(`${u}//x`),
  read(`${u.toUpperCase()}test://x`),
  read(new Raw(`"${u}test://\\u0078"`)),
  read(new Raw(`"${u}test://static","uri":"${u}test://x"`)),
  read(new Raw(`"${u}test://static","URI":"${u}test://x"`)),
  read(`${u}test://part/1`),
  read(`${u}test://part/../part/1`),
  ['resources/subscribe', { uri: `${u}test://x` }],
  ['skills/get', { uri: `${u}test://x` }],
  ['resources/directory/read', { uri: `${u}test://part` }],
  complete({ type: 'ref/prompt', name: `${n}greet` }),
  complete({ type: 'ref/resource', uri: `${u}test://part/{id}` }),
  complete({ type: 'ref/resource', uri: `${u}test://item/{id}`, name: `${n}greet` }),
  complete(new Raw(`{"type":"ref/prompt","name":"${n}ask","name":"${n}greet"}`)),
  complete({ type: 'ref/tool', name: `${n}act` }),
  ['tasks/get', { taskId: `${n}x` }],
  ['vendor/echo', { name: `${n}act` }],
  ['TOOLS/CALL', { name: `${n}act` }],
  ['Tools/Call', { name: `${n}act`, arguments: {} }],
  ['tools/call/act', { name: `${n}act` }],
]

/** The same calls of tools through `call_tool` of a group that is searched. */
export const throughSearch = (tried: ReturnType<typeof attempts>): ReturnType<typeof attempts> =>
  tried.filter(([method]) => method === 'tools/call').map(([, params]) => tool('call_tool', { arguments: params }))

const isError = (message: Json) =>
  message['error'] !== undefined || (message['result'] as Json | undefined)?.['isError'] === true

/** Makes these attempts, all at once. Resolves to those that were not refused. */
export async function admitted(client: Client, tried: ReturnType<typeof attempts>): Promise<string[]> {
  const answers = tried.map(async ([method, params]) => {
    const { message } = await client.request(method, params).answer
    return isError(message) ? [] : [`${method} ${JSON.stringify(params)} ${JSON.stringify(message)}`]
  })
  return (await Promise.all(answers)).flat()
}

/** All items of a list. */
export async function listed(client: Client, method: string, member: string): Promise<Json[]> {
  const items: Json[] = []
  for (let cursor: unknown; ; ) {
    const { result = {} } = (await client.call(method, cursor === undefined ? {} : { cursor })).message
    items.push(...((result[member] ?? []) as Json[]))
    cursor = result['nextCursor']
    if (cursor === undefined) return items
  }
}

/** Fails if a list has something that is hidden, or not what is shown. */
export async function showsOnlyWhatIsChosen(t: Test, client: Client, n = ''): Promise<void> {
  const tools = await listed(client, 'tools/list', 'tools')
  t.match(
    tools.find(({ name }) => name === `${n}say`),
    { description: 'Says it' },
  )
  t.notOk(tools.some(({ name }) => name === `${n}act` || name === `${n}echo`))
  const others = [
    ['prompts/list', 'prompts'],
    ['resources/list', 'resources'],
    ['resources/templates/list', 'resourceTemplates'],
  ] as const
  for (const [method, member] of others) {
    const items = await listed(client, method, member)
    t.ok(items.length > 0, method)
    t.notMatch(JSON.stringify(items), HIDDEN, method)
  }
}
