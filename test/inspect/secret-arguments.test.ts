/** Arguments that the schema of a tool calls secret: they are hidden once a list of tools has passed. */
import t from 'tap'
import type { Wire } from '../../src/base/rpc/source.js'
import type { MessageBody, TraceEvent } from '../../src/inspector/recorder/events.js'
import { bytesOf } from '../../src/inspector/recorder/message.js'
import { EventRecorder } from '../../src/inspector/recorder/recorder.js'
import { redactor } from '../../src/inspector/redact.js'
import { Ring } from '../../src/inspector/ring.js'
import { SecretArguments } from '../../src/inspector/secret-arguments.js'
import { startBridge } from '../support/bridge.js'
import { main } from '../support/cli.js'
import { startInspector, TOKEN } from '../support/inspector.js'
import { call } from '../support/modern.js'
import { eventsIn } from '../support/sights.js'

type Message = TraceEvent & MessageBody
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
  const sent = wire(text)
  known.note({ ...message, dir: 'in', form: 'result', bytes: bytesOf(sent) } as Message, sent)
}

const redact = redactor([])
const shownOf = (known: SecretArguments, args: unknown, server = 'a') => {
  const text = JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tools/call', params: { arguments: args, name: 't' } })
  return redact(text, (path) => known.has(server, path)).text
}

t.test('writeOnly and format: password hide an argument at any place of the schema', async (t) => {
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
    [{ properties: { '*': SECRET } }, { '*': 'CANARY' }],
    [{ properties: { '**': { properties: { pin: SECRET } } } }, { '**': { pin: 'CANARY' } }],
    [{ dependentSchemas: { city: { properties: { pin: SECRET } } } }, { pin: 'CANARY' }],
    [{ dependencies: { city: { properties: { pin: SECRET } }, a: ['b'] } }, { pin: 'CANARY' }],
    [{ unevaluatedProperties: SECRET }, { pin: 'CANARY' }],
    [{ properties: { a: { unevaluatedItems: SECRET, items: {} } } }, { a: ['CANARY'] }],
    [{ properties: { a: { additionalItems: SECRET, items: [{}] } } }, { a: [1, 'CANARY'] }],
    // Schemas that refer to themselves, directly or through others.
    [{ properties: { pin: SECRET, next: { $ref: '#' } } }, { next: { next: { pin: 'CANARY' } } }],
    [
      {
        $ref: '#/$defs/list',
        $defs: { list: { properties: { pin: SECRET, all: { items: { $ref: '#/$defs/list' } } } } },
      },
      { all: [{ all: [{ pin: 'CANARY' }] }] },
    ],
    [{ allOf: [{ $ref: '#' }], properties: { pin: SECRET } }, { pin: 'CANARY' }],
    // References that are not followed.
    [{ properties: { pin: { $ref: '#pin' }, other: SECRET }, $defs: { a: { $anchor: 'pin' } } }, { pin: 'CANARY' }],
    [{ properties: { pin: { $ref: 'https://example.com/pin' }, other: SECRET } }, { pin: 'CANARY' }],
    [{ properties: { pin: { $dynamicRef: '#pin' }, other: SECRET } }, { pin: 'CANARY' }],
    [{ properties: { pin: { $ref: '#/$defs/a%20b' } }, $defs: { 'a b': SECRET } }, { pin: 'CANARY' }],
    [nested(40, SECRET), at(40, 'CANARY')],
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

/** A schema with an object within an object, and so on, and what it describes. */
function nested(levels: number, schema: object): object {
  return levels === 0 ? schema : { properties: { a: nested(levels - 1, schema) } }
}
function at(levels: number, value: unknown): unknown {
  return levels === 0 ? value : { a: at(levels - 1, value) }
}

t.test('shows arguments that the schema does not mark as secret', async (t) => {
  const known = new SecretArguments()
  const inputSchema = {
    $ref: '#/$defs/node',
    $defs: {
      node: { properties: { pin: SECRET, label: {}, left: { $ref: '#/$defs/node' }, right: { $ref: '#/$defs/node' } } },
    },
    properties: { pair: { prefixItems: [SECRET, {}] }, '*': SECRET, 'a*': SECRET },
  }
  list(known, [{ name: 't', inputSchema }])
  const node = { label: 'shown', left: { label: 'shown', pin: 'CANARY' }, pair: ['CANARY', 'shown'], a1: 'shown' }
  const shown = shownOf(known, node)
  t.notMatch(shown, /CANARY/)
  t.equal(shown.match(/shown/g)?.length, 4, shown)
  const result = JSON.stringify({ id: 1, result: { structuredContent: { params: { arguments: { pin: 'seen' } } } } })
  t.match(redact(result, (path) => known.has('a', path)).text, /seen/, 'a result has no arguments')
  const batch = JSON.stringify([{ id: 1 }, { method: 'tools/call', params: { arguments: { pin: 'CANARY' } } }])
  t.notMatch(redact(batch, (path) => known.has('a', path)).text, /CANARY/, 'a request in a batch')
})

t.test('hides all arguments of a server whose schema takes too long to examine', async (t) => {
  const twice = (name: string) => ({ properties: { x: { $ref: `#/$defs/${name}` }, y: { $ref: `#/$defs/${name}` } } })
  const levels = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`l${i}`, twice(`l${i + 1}`)]))
  for (const inputSchema of [
    { $ref: '#/$defs/l0', $defs: { ...levels, l30: SECRET } },
    { properties: Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`p${i}`, { format: 'password' }])) },
  ]) {
    const known = new SecretArguments()
    list(known, [{ name: 't', inputSchema }])
    t.notMatch(shownOf(known, { anything: 'CANARY' }), /CANARY/)
  }
})

t.test('follows references to the same schema once', async (t) => {
  const known = new SecretArguments()
  const all = Array.from({ length: 20 }, () => ({ $ref: '#/$defs/a' }))
  list(known, [
    { name: 't', inputSchema: { $ref: '#/$defs/a', $defs: { a: { allOf: all, properties: { pin: SECRET } } } } },
  ])
  t.match(shownOf(known, { pin: 'CANARY', city: 'Oslo' }), /"pin":"‹hidden›","city":"Oslo"/)
})

t.test('a name of any length, and with any characters, is compared in little time', async (t) => {
  const known = new SecretArguments()
  const stars = '*a'.repeat(100)
  list(known, [
    { name: 't', inputSchema: { properties: { [stars]: SECRET, ['n'.repeat(4_000_000)]: SECRET, pin: SECRET } } },
  ])
  t.match(shownOf(known, { ['a'.repeat(1_900)]: 'seen', pin: 'CANARY' }), /seen.*"pin":"‹hidden›"/)
  t.notMatch(
    shownOf(known, { ['n'.repeat(4_000_000)]: 'CANARY' }),
    /CANARY/,
    'a value below a very long name is hidden',
  )
})

t.test('hides all arguments of a server whose list cannot be read completely', async (t) => {
  for (const [about, bytes, wire] of [
    ['it is larger than what is examined', 5_000_000, (text: string) => text],
    ['only its beginning was told', 1_000, (text: string) => text.slice(0, 10)],
  ] as const) {
    const known = new SecretArguments()
    const message = { kind: 'message', hop: 'server', id: 1, server: 'a' } as const
    known.note({ ...message, dir: 'out', form: 'request', method: 'tools/list', bytes: 50 } as Message, '{}')
    known.note({ ...message, dir: 'in', form: 'result', bytes } as Message, wire('{"result":{"tools":[]}}'))
    t.notMatch(shownOf(known, { city: 'CANARY' }), /CANARY/, about)
    t.match(shownOf(known, { city: 'seen' }, 'b'), /seen/)
  }
})

t.test('keeps equal request ids of two clients apart', async (t) => {
  const known = new SecretArguments()
  const text = JSON.stringify({ result: { tools: [{ name: 't', inputSchema: { properties: { pin: SECRET } } }] } })
  const message = { kind: 'message', hop: 'client', id: 2, server: 'a', bytes: text.length } as const
  known.note({ ...message, call: 1, dir: 'in', form: 'request', method: 'tools/list' } as Message, '{}')
  known.note({ ...message, call: 2, dir: 'in', form: 'request', method: 'tools/call' } as Message, '{}')
  known.note({ ...message, call: 2, dir: 'out', form: 'result' } as Message, '{}')
  known.note({ ...message, call: 1, dir: 'out', form: 'result' } as Message, text)
  t.notMatch(shownOf(known, { pin: 'CANARY' }), /CANARY/)
})

t.test('reads a list in pieces, and ignores anything else', async (t) => {
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

t.test('hides all arguments of a server with very many secret ones', async (t) => {
  const known = new SecretArguments()
  const properties = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`p${i}`, SECRET]))
  list(known, [
    { name: 'one', inputSchema: { properties } },
    { name: 'two', inputSchema: { properties: Object.fromEntries([['q', SECRET]]) } },
  ])
  t.notMatch(shownOf(known, { q: 'CANARY', p499: 'CANARY' }), /CANARY/)
})

t.test('keeps a secret argument of a real server out of all output of the inspector', async (t) => {
  const ring = new Ring({ payloads: 'all' })
  const server = { command: process.execPath, args: [main, 'demo', 'server'] }
  const { url } = await startBridge(t, server, {}, { recorder: new EventRecorder(ring.record) })
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
