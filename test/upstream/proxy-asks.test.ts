/** A proxy that asks for a password and repeats the one that it was sent: nobody gets to see it, in any lane. */
import t from 'tap'
import { nameOf } from '../matrix/run.js'
import { SERVERS } from '../matrix/servers.js'
import { startBridge } from '../support/bridge.js'
import { LegacyClient } from '../support/legacy-client.js'
import { call, send } from '../support/modern.js'
import { ForwardProxy } from '../support/proxy.js'

const PASSWORD = 'canary-of-a-password'
const SECRETS = [PASSWORD, Buffer.from(`user:${PASSWORD}`).toString('base64')]

for (const kind of SERVERS.filter(({ transport }) => transport !== 'stdio'))
  for (const asks of ['text/plain', 'application/json', 'text/html'])
    for (const [lane, more] of Object.entries({ 'as it is': {}, 'with scopes': { scopes: { x: ['y'] } } }))
      t.test(`${nameOf(kind)} server ${lane}, an answer of ${asks}`, async (t) => {
        const server = await kind.start(t)
        const proxy = await ForwardProxy.start(t, { credentials: 'user:another', asks })
        const { url: at, ...entry } = server.entry as { url: string }
        const url = at.replace('127.0.0.1', 'mcp.example')
        const env = { HTTP_PROXY: `http://user:${PASSWORD}@127.0.0.1:${proxy.port}` }
        const eras = [{}, { era: kind.era }]
        for (const era of eras) {
          const { url: bridge, log } = await startBridge(t, { url, ...entry, ...more, ...era }, {}, { env })
          const modern = await call(bridge, 'tools/call', { name: 'echo', arguments: {} })
          const legacy = await LegacyClient.open(bridge)
          const ofSession = legacy.session === 'undefined' ? legacy.opened : await legacy.call('echo')
          t.ok(proxy.received.length > 0, 'the proxy was asked')
          t.match([modern.text, ofSession.text], [/407/, /407/], 'clients learn the reason')
          const all = JSON.stringify([modern, legacy.opened, ofSession, log])
          for (const secret of SECRETS) t.notOk(all.includes(secret), secret)
        }
      })

t.test('further paths of a server, which are passed on as they are', async (t) => {
  for (const asks of ['text/plain', 'application/json']) {
    const proxy = await ForwardProxy.start(t, { credentials: 'user:another', asks })
    const env = { HTTP_PROXY: `http://user:${PASSWORD}@127.0.0.1:${proxy.port}` }
    const entry = { url: 'http://mcp.example/mcp', paths: ['/more', '/.well-known/oauth-protected-resource/more'] }
    const { url, log } = await startBridge(t, entry, {}, { env })
    for (const path of entry.paths) {
      const { status, headers, text } = await send('GET', new URL(path, url).href, undefined, {})
      t.equal(status, 502, path)
      const all = JSON.stringify([headers, text, log])
      for (const secret of SECRETS) t.notOk(all.includes(secret), secret)
    }
    t.ok(proxy.received.length > 0, 'the proxy was asked')
  }
})
