/** What a client asks for, and what it is answered. */
import type { Test } from 'tap'
import { type Cell, only, paramsOf, resultOf, sameMeta } from './cell.js'
import type { Answer, Json, RpcError } from './client.js'
import { headerText } from './http.js'
import { crosses, toldTools } from './told.js'

const LISTS: Record<string, string> = {
  'tools/list': 'ListToolsResult',
  'prompts/list': 'ListPromptsResult',
  'resources/list': 'ListResourcesResult',
  'resources/templates/list': 'ListResourceTemplatesResult',
}

export const text = (said: string) => ({ content: [{ type: 'text', text: said }] })

/** Each list comes whole and in order, page by page, with the cursors that the server has given. */
export async function lists(t: Test, cell: Cell): Promise<void> {
  const { pair } = cell
  for (const [method, definition] of Object.entries(LISTS)) {
    const { member = '', items = [], second } = pair.server.lists[method] ?? {}
    const told = method === 'tools/list' ? toldTools(pair, items) : items
    // Where nothing is translated, what the specification says of lists is the server's affair.
    const pages = await walk(t, cell, method, crosses(pair) ? definition : undefined)
    t.equal(pages.length, 2, `${method} has two pages`)
    t.same(
      pages.flatMap((page) => page[member]),
      told,
      method,
    )
    const reached = cell.reached(method)
    const cursors = reached.map((one) => paramsOf(one))
    t.same(cursors, [{}, { cursor: pair.server.era === 'modern' ? 'page 2' : second }], `the cursors of ${method}`)
    for (const one of reached) sameMeta(t, cell, one)
  }
}

/** All pages of a list, one after the other. */
export async function walk(t: Test, cell: Cell, method: string, definition?: string): Promise<Json[]> {
  const pages: Json[] = []
  for (let cursor: unknown; pages.length === 0 || cursor !== undefined; ) {
    const answer = await cell.client.request(method, cursor === undefined ? {} : { cursor }).answer
    keptFor(t, cell, answer)
    const page = resultOf(t, cell, answer, definition)
    pages.push(page)
    cursor = page['nextCursor']
  }
  return pages
}

/** Nobody but who asked may keep it, and not for any time. */
function keptFor(t: Test, { client }: Cell, { message }: Answer): void {
  if (client.era === 'legacy') return
  const { ttlMs, cacheScope } = message.result ?? {}
  t.same({ ttlMs, cacheScope }, { ttlMs: 0, cacheScope: 'private' }, 'for how long it holds')
}

/** A tool is called, and one whose arguments are mirrored into headers by whoever speaks modern HTTP. */
export async function call(t: Test, cell: Cell): Promise<void> {
  const { client, pair } = cell
  const echo = { name: 'echo', arguments: { say: 'hé', deep: { list: [1, null, true] } } }
  const answer = await client.request('tools/call', echo).answer
  const result = resultOf(t, cell, answer, 'CallToolResult')
  t.same(result, { ...text(JSON.stringify(echo.arguments)), structuredContent: echo.arguments })
  t.same(paramsOf(only(t, cell, 'tools/call')), echo, 'the call at the server')

  const from = cell.reached('tools/call').length
  await walk(t, cell, 'tools/list')
  const mirrored = { name: 'mirrored', arguments: { region: 'Zürich', count: 42 } }
  const mirrors = { region: headerText('Zürich'), count: '42' }
  const second = await client.request('tools/call', mirrored, { mirrored: mirrors }).answer
  t.same(resultOf(t, cell, second, 'CallToolResult'), text(JSON.stringify(mirrored.arguments)))
  const [reached, another] = cell.reached('tools/call').slice(from)
  t.notOk(another, 'it is called once')
  if (reached) t.same(paramsOf(reached), mirrored)
  if (pair.server.era === 'legacy' || !reached?.headers) return
  const { 'mcp-param-region': region, 'mcp-param-count': count } = reached.headers
  t.same({ region, count }, mirrors, 'the headers at the server')
}

/** What is wrong is told with the code that the client knows it by, and errors of tools stay results. */
export async function errors(t: Test, cell: Cell): Promise<void> {
  const { client, pair } = cell
  const failing = (error: Partial<RpcError>) =>
    client.request('tools/call', { name: 'fail', arguments: { error } }).answer

  const own = { code: 4711, message: 'It broke: é', data: { deep: [1, { a: null }] } }
  same(t, cell, await failing(own), own, 200)
  const reserved = { code: -32050, message: 'Reserved' }
  const told = crosses(pair) ? { ...reserved, code: -32603, data: { upstreamCode: -32050 } } : reserved
  same(t, cell, await failing(reserved), told, 200)

  const result = resultOf(t, cell, await client.request('tools/call', { name: 'fail', arguments: {} }).answer)
  t.same(result, { ...text('It did not work'), isError: true })

  const nobody = await client.request('tools/call', { name: 'nobody', arguments: {} }).answer
  same(t, cell, nobody, { code: -32602, message: 'Unknown tool: nobody' }, 200)

  const uri = 'test://missing'
  const missing = await client.request('resources/read', { uri }).answer
  same(t, cell, missing, notFound(cell, uri), 200)

  const nope = await client.request('com.example/nope').answer
  same(t, cell, nope, { code: -32601, message: 'Method not found: com.example/nope' }, 404)
  t.equal(cell.reached('com.example/nope').length, 1, 'a method that nobody knows is the server’s to refuse')
}

/** A resource that is not there, in the words of the client's era; what is not translated is said as the server says it. */
function notFound({ pair }: Cell, uri: string): RpcError {
  const code = pair.client.era === 'modern' ? -32602 : -32002
  const isSilent = pair.server.era === 'legacy' && !crosses(pair)
  return { code, message: 'Resource not found', ...(!isSilent && { data: { uri } }) }
}

/** `status` is what a modern client over HTTP is answered with. For all others an error is a message like any. */
function same(t: Test, { client, pair }: Cell, answer: Answer, error: RpcError, status: number): void {
  t.same(answer.message.error, error, `the error ${error.code}`)
  if (pair.client.transport !== 'HTTP') return
  t.equal(answer.status, client.era === 'modern' ? status : 200, `the status of ${error.code}`)
}

export async function read(t: Test, cell: Cell): Promise<void> {
  for (const uri of ['test://static', 'test://item/é 1']) {
    const from = cell.reached('resources/read').length
    const answer = await cell.client.request('resources/read', { uri }).answer
    t.same(resultOf(t, cell, answer, 'ReadResourceResult'), { contents: [{ uri, text: 'x' }] })
    keptFor(t, cell, answer)
    const reached = cell.reached('resources/read').slice(from)
    t.same(reached.map(paramsOf), [{ uri }], 'the request at the server')
    for (const one of reached) sameMeta(t, cell, one)
  }
}

export async function prompt(t: Test, cell: Cell): Promise<void> {
  const params = { name: 'greet', arguments: { who: 'Zoë' } }
  const answer = await cell.client.request('prompts/get', params).answer
  const messages = [{ role: 'user', content: { type: 'text', text: 'Greet Zoë' } }]
  t.same(resultOf(t, cell, answer, 'GetPromptResult'), { messages })
  t.same(paramsOf(only(t, cell, 'prompts/get')), params, 'the request at the server')
}

export async function complete(t: Test, cell: Cell): Promise<void> {
  const params = {
    ref: { type: 'ref/prompt', name: 'greet' },
    argument: { name: 'who', value: 'Zo' },
    context: { arguments: { language: 'de' } },
  }
  const answer = await cell.client.request('completion/complete', params).answer
  const { completion } = resultOf(t, cell, answer, 'CompleteResult') as { completion: { values: string[] } }
  t.same(completion.values, ['Zo…'])
  t.same(paramsOf(only(t, cell, 'completion/complete')), params, 'the request at the server')
}
