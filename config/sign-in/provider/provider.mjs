/**
 * An identity provider to try sign-in with: oidc-provider, with its own pages, which take any name and any password. Clients
 * register by themselves, tokens are JWTs for the endpoint that a client names, and nothing outlives the process.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { Provider } from 'oidc-provider'

const { PORT = '9000', ISSUER = `http://localhost:${PORT}` } = process.env
/** Names of people who are in the group `admins`. */
const ADMINS = ['admin']
const HOUR = 3_600

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })

const provider = new Provider(ISSUER, {
  jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256' }] },
  cookies: { keys: [randomBytes(32).toString('hex')] },
  clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post'],
  scopes: ['openid', 'offline_access', 'mcp'],
  findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  extraTokenClaims: (_context, { accountId }) => ({ groups: ADMINS.includes(accountId) ? ['admins'] : [] }),
  features: {
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: () => ({
        scope: 'mcp',
        accessTokenTTL: HOUR,
        accessTokenFormat: 'jwt',
        jwt: { sign: { alg: 'RS256' } },
      }),
    },
  },
  issueRefreshToken: () => true,
  ttl: { AccessToken: HOUR, Grant: 24 * HOUR, Interaction: HOUR, RefreshToken: 24 * HOUR, Session: 24 * HOUR },
})

provider.listen(Number(PORT), () => process.stderr.write(`identity provider: ${ISSUER}\n`))
