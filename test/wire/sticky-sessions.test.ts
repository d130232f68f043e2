/** Replicas of a server behind a balancer that knows a session by a cookie. */
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { LegacySse } from '../support/legacy-sse.js'
import { listenUntilEnd } from '../support/listen-until-end.js'
import { call } from '../support/modern.js'
import { ownSessions } from '../support/own-sessions.js'
import { openPipe } from '../support/pipe.js'
import { askOn, shakeHands } from '../support/spelled.js'
import { SseClient } from '../support/sse-client.js'

type Json = Record<string, unknown>

const ECHO = { name: 'echo', arguments: { x: 1 } }
const ECHOED = { result: { structuredContent: { x: 1 } } }

/** What a request brought to the balancer. */
interface Passed {
  method: string
  session: string | undefined
  cookie: string | undefined
  replica: number
}

/** A balancer that sends a request to the replica that its cookie names, others to each replica in turn. */
class Balancer {
  readonly passed: Passed[] = []
  url = ''

  static async start(t: Test, replicas: readonly string[], set = (n: number) => [`LB=${n}; Path=/; HttpOnly`]) {
    const balancer = new Balancer()
    let turn = 0
    const server = createServer((request: IncomingMessage, response: ServerResponse) => {
      const { method = '', url = '', headers } = request
      const named = /(?:^|; )LB=(\d+)/.exec(headers.cookie ?? '')?.[1]
      const replica = named === undefined ? turn++ % replicas.length : Number(named)
      const session = headers['mcp-session-id'] as string | undefined
      balancer.passed.push({ method, session, cookie: headers.cookie, replica })
      const target = new URL(url, replicas[replica])
      const onward = httpRequest(target, { method, headers: { ...headers, host: target.host } }, (answer) => {
        const own = named === undefined ? { 'set-cookie': set(replica) } : {}
        response.writeHead(answer.statusCode ?? 502, { ...answer.headers, ...own })
        response.flushHeaders()
        answer.pipe(response)
      })
      onward.on('error', () => response.destroy())
      response.on('close', () => onward.destroy())
      request.pipe(onward)
    })
    await listenUntilEnd(t, server)
    const { port } = server.address() as AddressInfo
    balancer.url = `http://127.0.0.1:${port}${new URL(replicas[0] as string).pathname}`
    return balancer
  }
}

/** A replica of a server, which knows its own sessions only. */
function startReplica(t: Test): Promise<LegacyHttp> {
  return LegacyHttp.start(t, { override: ownSessions() })
}

const clients: Record<string, (t: Test, server: object) => Promise<(params: object) => Promise<Json>>> = {
  'a modern client': async (t, server) => {
    const { url } = await startBridge(t, server)
    return async (params) => (await call(url, 'tools/call', params as Json)).message
  },
  'a legacy client over HTTP': async (t, server) => {
    const { url } = await startBridge(t, server)
    const client = await LegacyClient.open(url)
    return async (params) => (await client.request('tools/call', params as Json)).message
  },
  'a legacy client on stdio': async (t, server) => {
    const pipe = openPipe(t, server)
    await shakeHands(pipe)
    return (params) => askOn(pipe, 'tools/call', params as Json)
  },
  'a legacy client over HTTP+SSE': async (t, server) => {
    const { url } = await startBridge(t, server)
    const client = await SseClient.open(url, '2025-11-25')
    return (params) => client.request('tools/call', params as Json)
  },
}

for (const [name, connect] of Object.entries(clients))
  t.test(`${name} stays with the replica that a sticky cookie names`, async (t) => {
    const replicas = [await startReplica(t), await startReplica(t)]
    const balancer = await Balancer.start(
      t,
      replicas.map(({ url }) => url),
    )
    const ask = await connect(t, { url: balancer.url })
    for (let n = 0; n < 8; n++) t.match(await ask(ECHO), ECHOED)
    const called = replicas.map((replica) => replica.of('tools/call').length)
    t.strictSame(called.sort(), [0, 8], 'in one session')
    t.equal(replicas.flatMap((replica) => replica.of('initialize')).length, 1)
  })

t.test('sends requests to a server over HTTP+SSE to the replica of the stream', async (t) => {
  const replicas = [await LegacySse.start(t), await LegacySse.start(t)]
  for (const [name, connect] of Object.entries(clients)) {
    const balancer = await Balancer.start(
      t,
      replicas.map(({ url }) => url),
    )
    const ask = await connect(t, { url: balancer.url, transport: 'sse' })
    for (let n = 0; n < 4; n++) t.match(await ask(ECHO), ECHOED, name)
  }
})

for (const [lane, entry] of Object.entries({ '': {}, ' behind a choice of tools': { tools: { deny: ['none'] } } }))
  t.test(`the stream and the end of a session have its cookie, and no cookie reaches a client${lane}`, async (t) => {
    const replicas = [await startReplica(t), await startReplica(t)]
    const balancer = await Balancer.start(
      t,
      replicas.map(({ url }) => url),
    )
    const { url } = await startBridge(t, { url: balancer.url, ...entry })
    const client = await LegacyClient.open(url, { headers: { cookie: 'mine=1' } })
    t.notOk(client.opened.headers['set-cookie'])
    await client.listen()
    t.equal((await client.end()).status, 200)
    const inSession = balancer.passed.filter(({ session }) => session !== undefined)
    t.equal(new Set(inSession.map(({ cookie }) => cookie)).size, 1)
    t.strictSame([...new Set(inSession.map(({ method }) => method))].sort(), ['DELETE', 'GET', 'POST'])
  })

t.test('sessions share no cookies, neither of one principal nor of two', async (t) => {
  let count = 0
  const replica = await startReplica(t)
  const balancer = await Balancer.start(t, [replica.url], () => ['LB=0; Path=/', `who=${++count}; Path=/`])
  const auth = { tokens: { anna: 'a'.repeat(32), ben: 'b'.repeat(32) } }
  const { url } = await startBridge(t, { url: balancer.url }, { auth })
  for (const token of Object.values(auth.tokens)) {
    const headers = { authorization: `Bearer ${token}` }
    for (let n = 0; n < 2; n++) {
      t.match((await call(url, 'tools/call', ECHO, { headers })).message, ECHOED)
      const client = await LegacyClient.open(url, { headers })
      t.match((await client.request('tools/call', ECHO)).message, ECHOED)
      t.match((await client.request('tools/call', ECHO)).message, ECHOED)
    }
  }
  const cookies = new Map<string, Set<string | undefined>>()
  for (const { session, cookie } of balancer.passed)
    if (session !== undefined) cookies.set(session, (cookies.get(session) ?? new Set()).add(cookie))
  t.equal(cookies.size, 6, 'a session for each principal, and one for each legacy client')
  for (const [session, { size }] of cookies) t.equal(size, 1, session)
  t.equal(new Set([...cookies.values()].flatMap((values) => [...values])).size, 6)
})
