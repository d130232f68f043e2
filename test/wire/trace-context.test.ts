/** The trace context of a client goes on to the server: in `_meta`, and over HTTP in headers as well, in every lane. */
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { LegacySse } from '../support/legacy-sse.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { call } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { modernStdio } from '../support/modern-stdio.js'
import { openPipe } from '../support/pipe.js'
import { askOn, shakeHands } from '../support/spelled.js'
import { SseClient } from '../support/sse-client.js'

type Json = Record<string, unknown>
type Headers = Record<string, string>

const TRACE = {
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  tracestate: 'congo=t61rcWkgMzE',
  baggage: 'userId=alice,serverNode=DF%2028',
}
const ECHO = { name: 'echo', arguments: { x: 1 } }

/** What a server got with a call: its headers, if it has any, and `_meta`. */
interface Got {
  headers: Json | undefined
  meta: Json
}

interface Server {
  entry: object
  got(): Got
}

const metaOf = (message: unknown) => ((message as { params: { _meta?: Json } }).params._meta ?? {}) as Json
const overHttp = (server: { url: string; received: { headers: object; message?: Json | undefined }[] }): Server => ({
  entry: { url: server.url },
  got: () => {
    const last = server.received.filter(({ message }) => message?.['method'] === 'tools/call').at(-1)
    return { headers: last?.headers as Json, meta: metaOf(last?.message) }
  },
})
const onStdio = ({ server, messages }: { server: object; messages(): Json[] }): Server => ({
  entry: server,
  got: () => ({
    headers: undefined,
    meta: metaOf(
      messages()
        .filter(({ method }) => method === 'tools/call')
        .at(-1),
    ),
  }),
})

const servers: Record<string, (t: Test) => Promise<Server>> = {
  'modern, over HTTP': async (t) => overHttp(await ModernHttp.start(t)),
  'modern, on stdio': async (t) => onStdio(modernStdio(t)),
  'legacy, over HTTP': async (t) => overHttp(await LegacyHttp.start(t)),
  'legacy, over HTTP+SSE': async (t) => {
    const { entry, got } = overHttp(await LegacySse.start(t))
    return { entry: { ...entry, transport: 'sse' }, got }
  },
  'legacy, on stdio': async (t) => onStdio(legacyStdio(t)),
}

type Ask = (headers: Headers, meta: Json) => Promise<unknown>
const clients: Record<string, (t: Test, server: object, settings: object) => Promise<Ask>> = {
  'a modern client over HTTP': async (t, server, settings) => {
    const { url, bridge } = await startBridge(t, server, settings)
    await bridge.server.warmUp()
    return (headers, meta) => call(url, 'tools/call', ECHO, { headers, meta })
  },
  'a modern client on stdio': async (t, server, settings) => {
    const pipe = openPipe(t, server, settings)
    return (_headers, meta) => pipe.call('tools/call', ECHO, { meta })
  },
  'a legacy client over HTTP': async (t, server, settings) => {
    const { url } = await startBridge(t, server, settings)
    const client = await LegacyClient.open(url)
    return (headers, meta) => client.request('tools/call', ECHO, { headers, meta })
  },
  'a legacy client over HTTP+SSE': async (t, server, settings) => {
    const { url } = await startBridge(t, server, settings)
    const client = await SseClient.open(url, '2025-11-25')
    let id = 100
    return async (headers, meta) => {
      const params = { ...ECHO, _meta: meta }
      await client.post({ jsonrpc: '2.0', id: ++id, method: 'tools/call', params }, headers)
      return client.answer(id)
    }
  },
  'a legacy client on stdio': async (t, server, settings) => {
    const pipe = openPipe(t, server, settings)
    await shakeHands(pipe)
    return (_headers, meta) => askOn(pipe, 'tools/call', { ...ECHO, _meta: meta })
  },
}

/** A header that Node.js joins, so that raw headers are read. */
const REPEATED = { 'x-other': ['1', '2'] } as unknown as Headers

/** Whether params pass byte for byte, so that `_meta` stays as it came. */
function isPassedUnchanged(client: string, server: string): boolean {
  if (client === 'a modern client over HTTP') return server === 'modern, over HTTP'
  return client === 'a legacy client over HTTP' && server === 'legacy, over HTTP'
}

/** Options that have nothing to do with the wire. */
const OPTIONS = { alone: {}, 'with a choice of tools': { tools: ['*'] } }

t.jobs = 4
for (const [client, connect] of Object.entries(clients))
  for (const [what, startServer] of Object.entries(servers))
    for (const [how, option] of Object.entries(OPTIONS))
      t.test(`${client}, a server that is ${what}, ${how}`, { buffered: true }, async (t) => {
        const { entry, got } = await startServer(t)
        const ask = await connect(t, { ...entry, ...option }, {})
        const isUnchanged = isPassedUnchanged(client, what)
        if (client.includes('HTTP')) {
          for (const more of [{}, REPEATED]) {
            await ask({ ...TRACE, ...more }, {})
            const { headers, meta } = got()
            if (headers) t.match(headers, TRACE, 'headers in headers')
            if (!isUnchanged) t.match(meta, TRACE, 'headers in _meta')
          }
        }
        await ask({}, TRACE)
        const { headers, meta } = got()
        t.match(meta, TRACE, '_meta in _meta')
        if (headers) t.match(headers, TRACE, '_meta in headers')
        await ask({}, {})
        t.notOk(
          ['traceparent', 'tracestate', 'baggage'].some((key) => key in got().meta || key in (got().headers ?? {})),
        )
        await ask({}, { traceparent: 'a\r\nb', baggage: 7 })
        t.notMatch(got().headers?.['traceparent'], 'a', 'no value that a header cannot have')
      })
