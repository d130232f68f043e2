/** The configuration changes many times under load: what stays the same notices nothing. */
import t from 'tap'
import { talk } from './support/asking.js'
import { settingsOf, startBridge } from './support/bridge.js'
import { until } from './support/eventually.js'
import { LegacyClient } from './support/legacy-client.js'
import { LegacyHttp } from './support/legacy-http.js'
import { legacyStdio } from './support/legacy-stdio.js'
import { ALL_LISTS, changed, hears, listen } from './support/listening.js'
import { call } from './support/modern.js'

type Servers = Record<string, object>

const SERVERS = 50
const RELOADS = 20
const CLIENTS = 16

const at = (url: string, path: string) => new URL(path, url).href
const echo = (url: string) => call(url, 'tools/call', { name: 'echo', arguments: { a: 1 } })
const wanted = (mcpServers: Servers, more: object = {}) =>
  settingsOf({ mcpServers, timeouts: { drainTimeout: 5_000 }, ...more })

t.test(
  `${SERVERS} servers are reconfigured ${RELOADS} times under load, and no call of an unchanged one fails`,
  async (t) => {
    const http = await LegacyHttp.start(t, { asks: true })
    const servers: Servers = {}
    for (let i = 0; i < SERVERS; i++) servers[`s${i}`] = { url: `${http.url}?n=${i}` }
    servers['s0'] = legacyStdio(t, { asks: true }).server
    const { url, bridge } = await startBridge(t, {}, { mcpServers: servers, timeouts: { drainTimeout: 5_000 } })
    // Those from the 40th on are changed; the others stay.
    const stays = Array.from({ length: 40 }, (_, i) => at(url, `/s${i}/mcp`))
    const session = await LegacyClient.open(stays[0] as string)
    const stream = await listen(stays[0] as string, ALL_LISTS)
    await stream.has(1)
    const parked = await talk(stays[0] as string).steps([{ ask: [{ method: 'roots/list' }] }])

    let over = false
    let calls = 0
    const failed: unknown[] = []
    const load = Array.from({ length: CLIENTS }, async (_, client) => {
      for (let i = client; !over; i += CLIENTS) {
        const answer = await echo(stays[i % stays.length] as string)
        calls++
        if (!answer.message.result) failed.push(answer.text)
      }
    })
    let now = servers
    for (let round = 0; round < RELOADS; round++) {
      const which = 40 + (round % 10)
      now = { ...now, [`s${which}`]: { url: `${http.url}?n=${which}`, headers: { 'x-round': String(round) } } }
      if (round % 3 === 0) now = { ...now, [`new${round}`]: { url: http.url } }
      if (round % 3 === 2) now = Object.fromEntries(Object.entries(now).filter(([name]) => name !== `new${round - 2}`))
      const wait = call(at(url, `/s${which}/mcp`), 'tools/call', { name: 'wait', arguments: { ms: 150 } })
      await until(() => http.received.some(({ path, body }) => path.endsWith(`=${which}`) && body.includes('"wait"')))
      const changes = await bridge.reload(wanted(now))
      t.same(changes.changed, [`s${which}`])
      t.match(
        await wait,
        { status: 200, message: { result: {} } },
        'a call with a server that is changed ends where it began',
      )
      t.match(await echo(at(url, `/s${which}/mcp`)), { status: 200 })
      t.equal((await echo(at(url, '/new0/mcp'))).status, round < 2 ? 200 : 404)
    }
    over = true
    await Promise.all(load)
    t.same(failed, [])
    t.ok(calls > 100, `${calls} calls`)
    t.equal((await session.request('ping')).status, 200, 'the session is the same')
    const first = talk(stays[0] as string, { capabilities: {} })
    await first.call('tools/call', { name: 'touch', arguments: { tools: true } })
    t.same(await hears(stream, 1), [changed('tools')], 'the subscription is the same')
    t.match(await talkAgain(stays[0] as string, parked), { roots: [] }, 'and the call that waited for an answer')
  },
)

async function talkAgain(url: string, parked: Awaited<ReturnType<ReturnType<typeof talk>['steps']>>): Promise<unknown> {
  const [key = ''] = parked.keys
  const args = { steps: [{ ask: [{ method: 'roots/list' }] }] }
  const params = {
    name: 'steps',
    arguments: args,
    inputResponses: { [key]: { roots: [] } },
    requestState: parked.state,
  }
  const answer = await talk(url).call('tools/call', params)
  return [answer.said].flat(3)[0]
}
