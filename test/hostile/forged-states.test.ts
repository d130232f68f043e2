/** What a client makes up costs little: it is bounded before it is parsed, split or looked up, whoever asks for what. */
import t from 'tap'
import { Sealer } from '../../src/base/crypto/seal.js'
import { TextSealer } from '../../src/base/crypto/text-sealer.js'
import type { Request } from '../../src/base/rpc/message.js'
import { readMessage } from '../../src/mcp/protocol/classify.js'
import { checkHeaders } from '../../src/mcp/protocol/headers.js'
import { RetryStates } from '../../src/servers/legacy/retry-state.js'
import { startBridge } from '../support/bridge.js'
import { toolCall } from '../support/calls.js'
import { LegacyClient } from '../support/legacy-client.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { envelope, headersFor, post } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'

const MEGABYTE = 1024 * 1024
/** More than a sealed text has, with each character written as an escape. */
const LOOKED_AT = 16 * 1024

const members = (many: number) => Array.from({ length: many }, (_, i) => `"k${i}":1`).join()

/** The longest text that is parsed as JSON or split while `work` runs. */
function longestLookedAt(work: () => unknown): number {
  const { parse } = JSON
  const { split } = String.prototype
  let longest = 0
  const seen = (text: unknown) => {
    longest = Math.max(longest, String(text).length)
  }
  JSON.parse = (text: string, ...more: []) => {
    seen(text)
    return parse(text, ...more) as unknown
  }
  String.prototype.split = function (this: string, ...how: [string]) {
    seen(this)
    return split.apply(this, how as never) as string[]
  } as typeof split
  try {
    work()
  } catch {
    // Refused.
  } finally {
    JSON.parse = parse
    String.prototype.split = split
  }
  return longest
}

t.test('a forged state is neither parsed nor split, unless it is as short as a sealed one', (t) => {
  const states = new RetryStates({ name: 'test', parked: {}, replicas: { id: 'a' } })
  const sealer = new Sealer([], 'test')
  const forms = {
    'an object': `{${members(100_000)}}`,
    'a list': `[${'1,'.repeat(MEGABYTE / 2)}1]`,
    dots: `"${'.'.repeat(MEGABYTE)}"`,
    escapes: `"${'\\u002e'.repeat(MEGABYTE / 6)}"`,
    'our beginning': `"b1.${'a'.repeat(MEGABYTE)}.${'b.'.repeat(MEGABYTE / 2)}"`,
  }
  for (const [form, state] of Object.entries(forms)) {
    const call = toolCall('x', { answers: { responses: undefined, state } })
    t.ok(longestLookedAt(() => states.open(state, call)) < LOOKED_AT, `${form} of a call`)
    t.ok(longestLookedAt(() => states.checkOwner(call)) < LOOKED_AT, `${form} of another replica's call`)
    if (!state.startsWith('"')) t.equal(new TextSealer([], 'x').open(state), undefined, `${form} of a group`)
    t.ok(longestLookedAt(() => sealer.open(state)) < LOOKED_AT, `${form} for anything sealed`)
    t.ok(longestLookedAt(() => sealer.isSigned(state, '')) < LOOKED_AT, `${form} for anything signed`)
  }
  t.ok(longestLookedAt(() => new TextSealer([], 'x').open(forms['an object'])) < LOOKED_AT, 'an object of a group')
  t.end()
})

t.test('a state is opened however its characters are written', (t) => {
  const states = new RetryStates({ name: 'test', parked: {} })
  const call = toolCall('x')
  const state = states.seal(call, { id: 'a', round: 1, lifetime: 60_000 })
  const escaped = (JSON.parse(state) as string).replace(
    /./g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
  t.equal(states.open(`"${escaped}"`, call).x, 'a')
  t.end()
})

t.test('a name that is a long object is not parsed', (t) => {
  const json = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":{${members(100_000)}}}}`
  const request = readMessage([Buffer.from(json)]) as Request
  const headers = { 'mcp-method': ['tools/call'], 'mcp-name': ['x'] } as never
  t.ok(longestLookedAt(() => checkHeaders(request, headers)) < LOOKED_AT)
  t.end()
})

t.test(
  'refuses requests with more members than a protocol has, in each lane, and takes as many arguments',
  async (t) => {
    const program = legacyStdio(t)
    const server = await ModernHttp.start(t)
    const mcpServers = { legacy: program.server, modern: { url: server.url } }
    const { url: base } = await startBridge(t, program.server, { mcpServers, groups: { all: {} } })
    const many = members(5_000)
    const meta = JSON.stringify(envelope()).slice(0, -1)
    for (const endpoint of ['legacy', 'modern', 'all']) {
      const url = new URL(`/${endpoint}/mcp`, base).href
      const client = await LegacyClient.open(url)
      const name = endpoint === 'all' ? 'legacy__echo' : 'echo'
      const sent = (message: string) => ({
        modern: () => post(url, message, headersFor('tools/call', { name })),
        legacy: () => client.post(message),
      })
      const request = (params: string, rest = '') =>
        `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{${params}}${rest}}`
      const forged = '"requestState":"b1.00000000.aaaa"'
      const forms = {
        params: (own: string) => request(`${own},"name":"${name}",${forged},${many}`),
        _meta: (own: string) => request(`${own.slice(0, -1)},${many}},"name":"${name}"`),
        'a message': (own: string) => request(`${own},"name":"${name}"`, `,${many}`),
      }
      for (const [form, message] of Object.entries(forms)) {
        for (const [era, own] of Object.entries({ modern: `"_meta":${meta}}`, legacy: '"_meta":{"x":1}' })) {
          // Between modern peers, the bridge does not look into a body.
          if (endpoint === 'modern' && era === 'modern') continue
          const answer = await sent(message(own))[era as 'modern']()
          t.equal(answer.status, 400, `${endpoint}, ${era}: ${form}`)
          t.match(answer.message, { error: { code: -32600, message: /^More members than are accepted/ } })
        }
      }
      const args = `"arguments":{${members(20_000)}}`
      t.ok(
        (await sent(request(`"_meta":${meta}},"name":"${name}",${args}`)).modern()).message.result,
        'modern arguments',
      )
      t.ok((await sent(request(`"name":"${name}",${args}`)).legacy()).message.result, 'legacy arguments')
    }
    const calls = program.messages().filter(({ method }) => method === 'tools/call')
    t.equal(calls.length, 4, 'the server has seen those with arguments alone')
  },
)

t.test('counts the members of all messages of a batch together', (t) => {
  const message = (many: number) => `{"jsonrpc":"2.0","method":"x","params":{${members(many)}}}`
  const batch = (many: number) => () => readMessage([Buffer.from(`[${Array(10).fill(message(many)).join()}]`)])
  t.throws(batch(500), { message: /^More members than are accepted/ })
  t.match(batch(100)(), { kind: 'batch' })
  t.end()
})
