/** What people are told about a sign-in before it begins. */
import t from 'tap'
import type { Accounts } from '../../src/services/oauth/client/accounts.js'
import { explainSignIn, signInRows } from '../../src/services/oauth/client/explain.js'

const ISSUER = 'https://mcp.example.com'

/** Accounts of a server with this authorization server. */
function accountsOf(guessed: boolean, settings: object = {}): Accounts {
  const server = { issuer: ISSUER, registration_endpoint: `${ISSUER}/register` }
  return { settings, obtainer: async () => ({ find: async () => ({ server, guessed }) }) } as unknown as Accounts
}

t.test('a server that publishes nothing about signing in may require a key instead', async (t) => {
  const rowsOf = async (accounts: Accounts) => Object.fromEntries(signInRows(await explainSignIn(accounts, undefined)))
  t.match(await rowsOf(accountsOf(true)), {
    client: /publishes nothing about signing in. If it requires a key, set it/,
  })
  t.match(await rowsOf(accountsOf(false)), { client: /^dynamic registration$/ })
  t.match(await rowsOf(accountsOf(true, { clientId: 'x' })), { client: /"oauth\.clientId"/ })
})
