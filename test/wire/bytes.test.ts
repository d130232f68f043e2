/** What a payload is made of comes out as it went in, between any two eras and over any two transports. */
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { openStream } from '../support/events.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { LegacySse } from '../support/legacy-sse.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { envelope, headersFor } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { modernStdio } from '../support/modern-stdio.js'
import { openPipe } from '../support/pipe.js'
import { SseClient } from '../support/sse-client.js'

interface TestServer {
  server: object
  /** Every message that arrived, to the letter; on a pipe, every line. */
  heard(): string[]
}

const SERVERS: Record<string, (t: Test) => Promise<TestServer>> = {
  'a modern server over HTTP': async (t) => {
    const modern = await ModernHttp.start(t)
    return { server: { url: modern.url }, heard: () => modern.received.map(({ body }) => body) }
  },
  'a modern server on a pipe': async (t) => {
    const modern = modernStdio(t)
    return { server: modern.server, heard: () => modern.seen().map(({ line }) => line) }
  },
  'a legacy server over HTTP': async (t) => {
    const legacy = await LegacyHttp.start(t)
    return { server: { url: legacy.url }, heard: () => legacy.received.map(({ body }) => body) }
  },
  'a legacy server over HTTP+SSE': async (t) => {
    const legacy = await LegacySse.start(t)
    return { server: { url: legacy.url, type: 'sse' }, heard: () => legacy.received.map(({ body }) => body) }
  },
  'a legacy server on a pipe': async (t) => {
    const legacy = legacyStdio(t)
    return { server: legacy.server, heard: () => legacy.seen().map(({ line }) => line) }
  },
}

/** Arguments to the letter: each would come out otherwise if anybody had read it and written it again. */
const ARGUMENTS: [name: string, json: string][] = [
  ['large numbers', '{"n":12345678901234567890,"m":-9007199254740993,"exp":1e400,"neg":-0}'],
  ['numbers as they are written', '{"a":1.0,"b":1E+2,"c":0.10,"d":100000000000000000000000}'],
  ['members in their order', '{"b":1,"2":2,"a":3,"1":4,"":5}'],
  ['members twice', '{"a":1,"a":2,"a":{"b":1,"b":2}}'],
  ['names that objects have', '{"__proto__":{"polluted":1},"constructor":{"prototype":1},"toString":2}'],
  ['escapes', '{"e":"\\u00e9","s":"\\/","u":"\\ud83d\\ude00","l":"\\ud800","n":"\\u0000"}'],
  ['characters of all lengths', '{"text":"é\u2028\u2029日本😀\u007f\ufeff"}'],
  ['names of the protocol', '{"resultType":"x","_meta":{"progressToken":7},"jsonrpc":"1.0","id":null,"method":"m"}'],
  ['space inside', '{ "a" : [ 1 ,\t2 ] , "b" : { } }'],
  ['a large text', `{"text":"${'x'.repeat(100_000)}","é":"${'é'.repeat(40_000)}","end":1.0}`],
]

type Send = (id: string, args: string) => Promise<string>

const echo = (id: string, args: string, meta?: string) =>
  `{"jsonrpc":"2.0","id":"${id}","method":"tools/call","params":{"name":"echo","arguments":${args}${meta ? `,"_meta":${meta}` : ''}}}`

/** Clients by how they send a call; what comes back is the text of all that came. */
const CLIENTS: Record<string, (t: Test, server: object) => Promise<Send>> = {
  'a modern client over HTTP': async (t, server) => {
    const { url } = await startBridge(t, server)
    const meta = JSON.stringify(envelope())
    return (id, args) => textOf(url, headersFor('tools/call', { name: 'echo' }), echo(id, args, meta))
  },
  'a modern client on a pipe': async (t, server) => {
    const pipe = openPipe(t, server)
    const meta = JSON.stringify(envelope())
    return async (id, args) => {
      pipe.line(echo(id, args, meta))
      return lineOf(pipe, id)
    }
  },
  'a legacy client over HTTP': async (t, server) => {
    const { url } = await startBridge(t, server)
    const client = await LegacyClient.open(url)
    return (id, args) => textOf(url, client.headers, echo(id, args))
  },
  'a legacy client over HTTP+SSE': async (t, server) => {
    const { url } = await startBridge(t, server)
    const client = await SseClient.open(url, '2025-11-25')
    return async (id, args) => {
      await client.post(echo(id, args))
      await client.answer(id)
      return client.stream.text
    }
  },
}

for (const [who, connect] of Object.entries(CLIENTS)) {
  for (const [whom, start] of Object.entries(SERVERS)) {
    t.test(`between ${who} and ${whom} no byte of a payload changes`, async (t) => {
      const { server, heard } = await start(t)
      const send = await connect(t, server)
      for (const [at, [name, args]] of ARGUMENTS.entries()) {
        const text = await send(`call ${at}`, args)
        const arrived = heard().findLast((message) => message.includes('"tools/call"')) ?? ''
        t.ok(arrived.includes(`"arguments":${args}`), `${name}, on the way there`)
        t.ok(text.includes(`"structuredContent":${args}`), `${name}, on the way back`)
        t.ok(text.includes(`"text":${JSON.stringify(args)}`), `${name}, as the server saw it`)
      }
    })
  }
}

t.test('a message in many lines reaches a server on a pipe in one', async (t) => {
  for (const stdio of [modernStdio(t), legacyStdio(t)]) {
    const { url } = await startBridge(t, stdio.server)
    const pretty = '{\r\n  "a": [\n 1.0,\r2 ],\n  "text": "\\n"\n}'
    const modern = `{\n  "jsonrpc": "2.0",\n  "id": "m",\r\n  "method": "tools/call",\n  "params": {\n    "name": "echo",\n    "arguments":${pretty},\n    "_meta": ${JSON.stringify(envelope(), null, 2)}\n  }\n}\n`
    const answers = [await textOf(url, headersFor('tools/call', { name: 'echo' }), modern)]
    const client = await LegacyClient.open(url)
    const legacy = `{\n  "jsonrpc": "2.0",\n  "id": "l",\n  "method": "tools/call",\r\n  "params": {\n    "name": "echo",\n    "arguments":${pretty}\n  }\n}`
    answers.push(await textOf(url, client.headers, legacy))
    const flat = pretty.replace(/\r\n|\r|\n/g, ' ')
    const lines = stdio.seen().filter(({ line }) => line.includes('"tools/call"'))
    t.equal(lines.length, 2, 'one line each')
    for (const { line } of lines) {
      t.doesNotThrow(() => JSON.parse(line))
      t.ok(line.includes(`"arguments":${flat}`), 'and nothing of it but the line breaks is another')
      t.notMatch(line, /\r/)
    }
    for (const answer of answers) t.ok(answer.includes(`"structuredContent":${flat}`))
  }
})

t.test('an answer in many lines from a server over HTTP is one event, or one line', async (t) => {
  const result = '{\n  "content": [],\r\n  "structuredContent": { "a": 1.0 }\n}'
  const legacy = await LegacyHttp.start(t, {
    override: ({ message }, response) => {
      if (message['method'] !== 'tools/call') return false
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(`{\n"jsonrpc": "2.0",\n"id": ${JSON.stringify(message['id'])},\n"result": ${result}\n}`)
      return true
    },
  })
  const pipe = openPipe(t, { url: legacy.url })
  t.match(await pipe.call('tools/call', { name: 'x' }, { id: 'p' }), { result: { structuredContent: { a: 1 } } })
  t.match(await lineOf(pipe, 'p'), '"structuredContent": { "a": 1.0 }')
  const { url } = await startBridge(t, { url: legacy.url }, { timeouts: { commitAfter: 1 } })
  const body = echo('s', '{}', JSON.stringify(envelope()))
  t.match(await textOf(url, headersFor('tools/call', { name: 'echo' }), body), '"structuredContent": { "a": 1.0 }')
})

async function textOf(url: string, headers: Record<string, string | undefined>, body: string): Promise<string> {
  const stream = await openStream('POST', url, headers, body)
  await stream.ended()
  return stream.text
}

/** The line that answers a request, to the letter. */
async function lineOf(pipe: ReturnType<typeof openPipe>, id: string): Promise<string> {
  const found = () => pipe.lines().find((line) => line.includes(`"id":"${id}"`))
  await until(() => found() !== undefined, `an answer to ${id}`)
  return found() as string
}
