/**
 * Clients that sign in at the bridge as Claude Code and others do: known by a document of theirs, by a registration of their
 * own, or by one that was made beforehand.
 */
import t from 'tap'
import { startGuarded, text } from '../support/guarded-bridge.js'
import { Oidc } from '../support/oidc.js'
import { CALLBACK, kits, provider, signedIn } from '../support/sdk-sign-in.js'

const DOCUMENT = 'https://client.example/oauth/client.json'
/** As Claude Code publishes it: a public, native client on a loopback. */
const client = {
  client_id: DOCUMENT,
  client_name: 'Client',
  client_uri: 'https://client.example',
  redirect_uris: [CALLBACK],
  application_type: 'native',
  token_endpoint_auth_method: 'none',
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
}
const registered = { ...client, client_id: 'registered-beforehand' }

const ways = {
  'a document (CIMD)': { known: { document: DOCUMENT }, id: DOCUMENT, registers: 0 },
  'a registration of their own (DCR)': { known: {}, id: /./, registers: 1 },
  'a registration that was made beforehand': {
    known: { client: { client_id: registered.client_id } },
    id: registered.client_id,
    registers: 0,
  },
}

for (const [kit, make] of Object.entries(kits))
  for (const [way, { known, id, registers }] of Object.entries(ways))
    t.test(`${kit} signs in by ${way}`, async (t) => {
      const documents = 'document' in known ? { [DOCUMENT]: client } : {}
      const oidc = await Oidc.start(t, { jwt: true, scopes: 'mcp', documents, clients: [registered] })
      const { url, log } = await startGuarded(t, { auth: { issuers: [{ issuer: oidc.issuer }], scopes: ['mcp'] } })
      const connected = await signedIn(t, make, url, provider(known))
      t.match(await connected.callTool({ name: 'read', arguments: {} }), text('read'))
      t.match(oidc.of('/auth')[0]?.params.get('client_id'), id)
      t.equal(oidc.of('/reg').length, registers)
      t.equal(log.filter(({ level }) => Number(level) >= 40).length, 0, 'nothing to warn of')
    })
