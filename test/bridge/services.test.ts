/** Code that only some configurations need is loaded when a reload brings the first one that does. */
import t from 'tap'
import { createBridge, settingsOf } from '../support/bridge.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { personParts } from '../support/sign-in-parts.js'

t.test('a reload that brings the first server which may ask for a token loads what signs in, once', async (t) => {
  const { server } = legacyStdio(t)
  const { url } = await LegacyHttp.start(t)
  let loaded = 0
  const loadSignIn = async () => {
    loaded++
    return personParts(t).signIn
  }
  const { bridge } = createBridge(t, server, {}, { loadSignIn })
  await bridge.reload(settingsOf({ mcpServers: { test: server, own: { url, oauth: false } } }))
  t.equal(loaded, 0)
  await bridge.reload(settingsOf({ mcpServers: { test: server, other: { url } } }))
  t.equal(loaded, 1)
  t.ok(bridge.mounts.get('other')?.accounts, 'the bridge signs in there')
  await bridge.reload(settingsOf({ mcpServers: { test: server, other: { url }, more: { url } } }))
  t.equal(loaded, 1)
  t.ok(bridge.mounts.get('more')?.accounts)
})
