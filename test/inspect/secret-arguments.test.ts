/** Arguments that the schema of a tool calls secret: they are hidden once a list of tools has passed. */
import t from 'tap'
import { Watch } from '../../src/downstream/watch.js'
import { redactor } from '../../src/inspect/redact.js'
import { Ring } from '../../src/inspect/ring.js'
import { SecretArguments } from '../../src/inspect/secret-arguments.js'
import type { MessageSeen, Sight } from '../../src/ports/seen.js'
import type { Wire } from '../../src/rpc/source.js'
import { startBridge } from '../support/bridge.js'
import { main } from '../support/cli.js'
import { startInspector, TOKEN } from '../support/inspector.js'
import { call } from '../support/modern.js'
import { eventsIn } from '../support/sights.js'

type Message = Sight & MessageSeen
const SECRET = { type: 'string', writeOnly: true }

/** Tells of a list of tools on the wire of a server. */
function list(
  known: SecretArguments,
  tools: object[],
  { server = 'a', wire = (text: string): Wire => text } = {},
): void {
  const message = { kind: 'message', hop: 'server', id: 1, server } as const
  const text = JSON.stringify({ jsonrpc: '2.0', id: 1, result: { tools } })
  known.note({ ...message, dir: 'out', form: 'request', method: 'tools/list', bytes: 50 } as Message, '{}')
  known.note({ ...message, dir: 'in', form: 'result', bytes: text.length } as Message, wire(text))
}

const redact = redactor([])
const shownOf = (known: SecretArguments, args: unknown, server = 'a') => {
  const text = JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tools/call', params: { arguments: args, name: 't' } })
  return redact(text, (pointer) => known.has(server, pointer)).text
}

t.test('writeOnly and format: password hide an argument, wherever its schema stands', async (t) => {
  const schemas: [object, unknown][] = [
    [{ properties: { pin: SECRET } }, { pin: 'CANARY' }],
    [{ properties: { pin: { type: 'string', format: 'password' } } }, { pin: 'CANARY' }],
    [{ properties: { a: { properties: { pin: SECRET } } } }, { a: { pin: 'CANARY' } }],
    [{ properties: { a: { ...SECRET, type: 'object' } } }, { a: { deep: ['CANARY', { x: 'CANARY' }] } }],
    [{ properties: { a: { type: 'array', items: { properties: { pin: SECRET } } } } }, { a: [{}, { pin: 'CANARY' }] }],
    [{ properties: { a: { prefixItems: [SECRET] } } }, { a: ['CANARY'] }],
    [{ additionalProperties: SECRET }, { anything: 'CANARY' }],
    [{ patternProperties: { '^p': SECRET } }, { pin: 'CANARY' }],
    [{ oneOf: [{}, { properties: { pin: SECRET } }] }, { pin: 'CANARY' }],
    [{ properties: { pin: { $ref: '#/$defs/a~1b' } }, $defs: { 'a/b': SECRET } }, { pin: 'CANARY' }],
    [{ properties: { 'a/b~c': SECRET } }, { 'a/b~c': 'CANARY' }],
  ]
  for (const [inputSchema, args] of schemas) {
    const known = new SecretArguments()
    t.match(shownOf(known, args), /CANARY/, 'nothing is known yet')
    list(known, [{ name: 't', inputSchema }])
    t.notMatch(shownOf(known, args), /CANARY/, JSON.stringify(inputSchema))
    t.match(shownOf(known, args, 'b'), /CANARY/, 'another server is another matter')
    t.match(shownOf(known, { city: 'Oslo' }), /additional|Oslo|hidden/)
  }
})

t.test('a list may come in pieces, and what is no list does no harm', async (t) => {
  const tools = [{ name: 't', inputSchema: { properties: { pin: SECRET, city: { type: 'string' } } } }]
  const known = new SecretArguments()
  list(known, tools, { wire: (text) => [text.slice(0, 30), Buffer.from(text.slice(30))] })
  t.match(shownOf(known, { pin: 'CANARY', city: 'Oslo' }), /"pin":"‹hidden›","city":"Oslo"/)
  for (const text of ['', 'null', '[]', '{"result":{"tools":5}}', '{"result":{"tools":[null,{"inputSchema":7}]}}']) {
    const other = new SecretArguments()
    list(other, [], { wire: () => `${text}"writeOnly"` })
    list(other, [], { wire: () => text })
    t.match(shownOf(other, { pin: 'seen' }), /seen/)
  }
  const endless: Record<string, unknown> = { properties: { pin: SECRET } }
  endless['allOf'] = [{ $ref: '#' }]
  list(known, [{ name: 'endless', inputSchema: { ...endless, allOf: [{ $ref: '#/allOf/0' }, { $ref: '#' }] } }])
})

t.test('a server with very many secret arguments has all of its arguments hidden', async (t) => {
  const known = new SecretArguments()
  const properties = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`p${i}`, SECRET]))
  list(known, [
    { name: 'one', inputSchema: { properties } },
    { name: 'two', inputSchema: { properties: Object.fromEntries([['q', SECRET]]) } },
  ])
  t.notMatch(shownOf(known, { q: 'CANARY', p499: 'CANARY' }), /CANARY/)
})

t.test('a secret argument of a real server is in nothing that the inspector gives', async (t) => {
  const ring = new Ring({ payloads: 'all' })
  const server = { command: process.execPath, args: [main, 'demo', 'server'] }
  const { url } = await startBridge(t, server, {}, { watch: new Watch(ring.witness) })
  await call(url, 'tools/list')
  const args = { safe: 'small', combination: 'CANARY-12-34' }
  t.match((await call(url, 'tools/call', { name: 'open_safe', arguments: args })).message, { result: {} })
  t.ok(
    eventsIn(ring).some((seen) => seen.kind === 'message' && seen.payload?.text.includes('CANARY')),
    'it is in memory, because it is hidden when somebody reads it',
  )
  const base = await startInspector(t, ring)
  const headers = { authorization: `Bearer ${TOKEN}` }
  const id = eventsIn(ring).find((seen) => seen.kind === 'call' && seen.name === 'open_safe')?.call
  for (const path of ['export?format=jsonl', 'export?format=har', `calls/${id}`]) {
    const text = await (await fetch(`${base}/inspect/${path}`, { headers })).text()
    t.match(text, /small.*hidden/s, path)
    t.notMatch(text, /CANARY/, path)
  }
})
