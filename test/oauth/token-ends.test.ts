/** Streams and calls end with the token of their request: when it expires, is refused, or is removed by a reload. */
import t, { type Test } from 'tap'
import { Fault } from '../../src/base/fault/fault.js'
import { TokenLife } from '../../src/services/oauth/server/token-life.js'
import { nameOf } from '../matrix/run.js'
import { SERVERS } from '../matrix/servers.js'
import { settingsOf, startBridge } from '../support/bridge.js'
import { type EventStream, openStream } from '../support/events.js'
import { until } from '../support/eventually.js'
import { startGuarded } from '../support/guarded-bridge.js'
import { LegacyClient } from '../support/legacy-client.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { ALL_LISTS, listen } from '../support/listening.js'
import { call, envelope, headersFor } from '../support/modern.js'
import { SseClient } from '../support/sse-client.js'
import { TokenIssuer } from '../support/token-issuer.js'

type Json = Record<string, unknown>
/** Answers are event streams at once, and calls wait for longer than any test. */
const TIMEOUTS = { commitAfter: 1, call: 3_600_000, callTotal: 3_600_000 }
const WAIT = { name: 'wait', arguments: { ms: 3_600_000 } }
const TOKENS = { alice: 'token-of-alice-0123456789', bob: 'token-of-bob-0123456789' }
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** An answer whose head may still be to come, because the bridge waits for that of the server. */
class Awaited {
  #stream: EventStream | undefined
  #failed = false

  constructor(opening: Promise<EventStream>) {
    opening.then(
      (stream) => (this.#stream = stream),
      () => (this.#failed = true),
    )
  }

  get over(): boolean {
    return this.#failed || this.#stream?.over === true
  }

  get messages(): Json[] {
    return this.#stream?.messages ?? []
  }
}

/** Opens a stream and a call of each kind of client. */
async function openAll(url: string, headers: { authorization: string }): Promise<Record<string, Awaited>> {
  const params = { ...WAIT, _meta: envelope() }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
  const legacy = await LegacyClient.open(url, { headers })
  const sse = await SseClient.open(url, '2025-06-18', {}, headers)
  await sse.post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: WAIT })
  return {
    'a subscription': new Awaited(listen(url, ALL_LISTS, { headers })),
    'a modern call': new Awaited(openStream('POST', url, { ...headersFor('tools/call', WAIT), ...headers }, body)),
    'a GET stream': new Awaited(legacy.listen()),
    'a legacy call': new Awaited(legacy.stream('tools/call', WAIT)),
    'a stream of HTTP+SSE': new Awaited(Promise.resolve(sse.stream)),
  }
}

async function allEnd(t: Test, streams: Record<string, Awaited>): Promise<void> {
  for (const [what, stream] of Object.entries(streams)) await until(() => stream.over, `the end of ${what}`)
  t.pass('all have ended')
}

for (const kind of SERVERS)
  for (const [lane, entry] of Object.entries({ 'as it is': {}, 'with scopes': { scopes: { act: ['admin'] } } }))
    t.test(`a reload that replaces a token ends what is open with it: ${nameOf(kind)} server ${lane}`, async (t) => {
      const server = await kind.start(t)
      const settings = { mcpServers: { test: { ...server.entry, ...entry } }, timeouts: TIMEOUTS }
      const { url, bridge } = await startBridge(t, {}, { ...settings, auth: { tokens: TOKENS } })
      const ofAlice = await openAll(url, bearer(TOKENS.alice))
      const ofBob = await openAll(url, bearer(TOKENS.bob))
      await until(() => server.reached().filter(({ text }) => text.includes('"wait"')).length === 6, 'the calls')
      const tokens = { ...TOKENS, alice: 'token-of-alice-that-is-new' }
      await bridge.reload(settingsOf({ ...settings, listen: 'http://127.0.0.1:0/mcp', auth: { tokens } }))
      await allEnd(t, ofAlice)
      for (const [what, stream] of Object.entries(ofBob)) t.notOk(stream.over, `${what} of another token`)
      t.equal((await call(url, 'tools/list', {}, { headers: bearer(TOKENS.alice) })).status, 401)
    })

t.test(
  'a call of an expired token ends with an error that names the reason, and is cancelled at the server',
  async (t) => {
    const issuer = await TokenIssuer.start(t)
    const it = legacyStdio(t)
    const auth = { issuers: [{ issuer: issuer.url }] }
    const publicUrl = 'http://localhost:1'
    const { url } = await startBridge(
      t,
      {},
      {
        mcpServers: { test: { ...it.server, scopes: { act: ['admin'] } } },
        ...{ publicUrl, auth, timeouts: TIMEOUTS },
      },
    )
    const token = (exp: number) => issuer.token({ aud: `${publicUrl}/mcp`, exp: Math.floor(Date.now() / 1_000) + exp })
    const lasting = await openAll(url, bearer(await token(600)))
    const ending = await openAll(url, bearer(await token(10)))
    await allEnd(t, ending)
    for (const what of ['a modern call', 'a legacy call'])
      t.match(
        ending[what]?.messages.at(-1),
        { error: { message: /has expired/, data: { reason: 'token_ended', outcome: 'unknown' } } },
        what,
      )
    const cancelled = () => it.messages().filter(({ method }: Json) => method === 'notifications/cancelled')
    await until(() => cancelled().length >= 3, 'the calls are cancelled')
    for (const [what, stream] of Object.entries(lasting)) t.notOk(stream.over, `${what} of another token`)
  },
)

t.test('an issuer that is removed by a reload takes what is open with its tokens along', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const { url, bridge, settings } = await startGuarded(t, { auth: { issuers: [{ issuer: issuer.url }] } })
  const headers = bearer(await issuer.token({ aud: url }))
  const client = await LegacyClient.open(url, { headers })
  const stream = await client.listen()
  const same = { ...settings, listen: url }
  await bridge.reload(settingsOf({ ...same, allowedHosts: ['other.example'] }))
  t.equal((await call(url, 'tools/list', {}, { headers })).status, 200)
  t.notOk(stream.over, 'another change leaves it open')
  await bridge.reload(settingsOf({ ...same, auth: { tokens: TOKENS } }))
  await stream.ended()
  t.equal((await call(url, 'tools/list', {}, { headers })).status, 401)
})

t.test('a token lives until it expires or is refused, whichever comes first', async (t) => {
  let now = 0
  const clock = () => now
  const ends = (life: TokenLife) =>
    new Promise<unknown>((resolve) => life.addEventListener('abort', () => resolve(life.reason)))
  const expired = new TokenLife(10, clock)
  const listening = ends(expired)
  now = 10
  t.match(await listening, { fault: 'tokenEnded', message: /has expired/ })
  const refused = new TokenLife(Number.POSITIVE_INFINITY, clock)
  const waiting = ends(refused)
  refused.refuse()
  t.match(await waiting, { message: /no longer accepted/ })
  t.ok(refused.reason instanceof Fault)
  const unheard = new TokenLife(20, clock)
  const listener = () => t.fail('nobody listens any more')
  unheard.addEventListener('abort', listener)
  unheard.removeEventListener('abort', listener)
  now = 20
  unheard.refuse()
})
