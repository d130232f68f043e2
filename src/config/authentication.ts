/** Issues of authentication: of clients at the bridge, and of the bridge at servers. */
import { BlockList, isIP } from 'node:net'
import { parseUrl, withoutBrackets } from '../base/texts/parse-url.js'
import { isLoopback, type Listen } from './addresses.js'
import { directIssuers, hasSeveral, isOnBehalf, secretOf, usualAccount } from './derived.js'
import type { Issue } from './error.js'
import { isStdio } from './kinds.js'
import type { Settings } from './schema/schema.js'
import type { ServerSettings } from './schema/server.js'

/** What "publicUrl" is, in messages. */
export const ADDRESS = 'the address at which clients reach the bridge'

/** Authentication that is ambiguous is refused. */
export function authentication({ auth, mcpServers, discover }: Settings): Issue[] {
  if (auth === undefined) return []
  const { tokens, issuers, forwarded, passthrough } = auth
  if ((tokens !== undefined || issuers !== undefined || forwarded !== undefined) === passthrough)
    return [
      {
        path: 'auth',
        message: 'has to have "tokens", "issuers" or "forwarded", or "passthrough": true instead of them',
      },
    ]
  if (passthrough && discover.length > 0) {
    const message = 'cannot be combined with "discover": found servers would receive the credentials of clients'
    return [{ path: 'auth.passthrough', message }]
  }
  if (passthrough) return passedThrough(mcpServers)
  return tokens === undefined ? [] : principals(tokens)
}

type Forwarded = NonNullable<NonNullable<Settings['auth']>['forwarded']>

/** Settings of identity providers that cannot work. */
export function identity({ auth, publicUrl, oauth }: Settings): Issue[] {
  const { issuers, forwarded, browser, scopes = [] } = auth ?? {}
  const issues: Issue[] = []
  if (browser && !issuers) issues.push({ path: 'auth.browser', message: 'is for people of "auth.issuers"' })
  if (browser && issuers && browser.issuer === undefined && directIssuers(auth).length !== 1)
    issues.push({ path: 'auth.browser.issuer', message: 'is required, because there are several "auth.issuers"' })
  if (browser?.issuer !== undefined && issuers && !issuers.some(({ issuer }) => issuer === browser.issuer))
    issues.push({ path: 'auth.browser.issuer', message: 'has to be one of "auth.issuers", byte for byte' })
  if (issuers?.some(({ header }) => header === undefined) && publicUrl === undefined)
    issues.push({ path: 'publicUrl', message: `is required with "auth.issuers": ${ADDRESS}` })
  if (publicUrl !== undefined && issuers && /[?#]/.test(publicUrl))
    issues.push({ path: 'publicUrl', message: 'has to have no query and no fragment with "auth.issuers"' })
  if (scopes.length > 0 && !issuers) issues.push({ path: 'auth.scopes', message: 'is for tokens of "auth.issuers"' })
  for (const [i, one] of (issuers ?? []).entries()) {
    const { issuer, introspection, facade, groups, map, scopeNames } = one
    const path = `auth.issuers.${i}`
    issues.push(...assertionIssues(path, one, auth), ...plainIssues(path, one, oauth.allow))
    const earlier = issuers?.slice(0, i) ?? []
    if (earlier.some((one) => one.issuer === issuer))
      issues.push({ path: `${path}.issuer`, message: `is configured twice: ${issuer}` })
    if (introspection && earlier.some((one) => one.introspection))
      issues.push({
        path: `${path}.introspection`,
        message: 'is allowed at one issuer only: an opaque token does not name its issuer',
      })
    if (facade && earlier.some((one) => one.facade))
      issues.push({ path: `${path}.facade`, message: 'is allowed at one issuer only' })
    for (const [scope, name] of Object.entries(scopeNames))
      if (scopes.includes(name) && !Object.hasOwn(scopeNames, name))
        issues.push({
          path: 'auth.scopes',
          message: `has "${name}", by which "${scope}" is requested: write "${scope}", which tokens have`,
        })
    if (groups === undefined && Object.keys(map).length > 0)
      issues.push({ path: `${path}.map`, message: 'requires "groups", the name of the claim' })
  }
  if (forwarded) issues.push(...ofProxy(forwarded))
  return issues
}

/** Settings of a proxy that cannot work. */
function ofProxy({ user, secretHeader, scopes, groups, map }: Forwarded): Issue[] {
  const headers = [user, secretHeader, scopes, groups].filter((one) => one !== undefined)
  const issues: Issue[] = []
  if (new Set(headers).size < headers.length)
    issues.push({ path: 'auth.forwarded', message: 'has to have a different header for each' })
  if (Object.keys(map).length > 0 && groups === undefined && scopes === undefined)
    issues.push({ path: 'auth.forwarded.map', message: 'requires "groups", the name of the header with the groups' })
  return issues
}

/** Settings of an issuer that is a proxy, and sends what it has signed in a header of its own. */
function assertionIssues(path: string, one: IssuerEntry, auth: Settings['auth']): Issue[] {
  const { issuer, header, jwksUri, audience, claims, facade, introspection } = one
  const { forwarded, browser } = auth ?? {}
  const isAddress = parseUrl(issuer) !== undefined
  if (header === undefined)
    return isAddress ? [] : [{ path: `${path}.issuer`, message: `has to be an https:// address: https://${issuer}` }]
  const issues: Issue[] = []
  const issue = (option: string, message: string) => issues.push({ path: `${path}.${option}`, message })
  if (audience === undefined && Object.keys(claims).length === 0)
    issue('header', 'requires "audience": the value of "aud" in what the proxy sends')
  if (facade || introspection) issue('header', 'cannot be combined with "facade" and "introspection"')
  if (browser?.issuer === issuer) issue('header', 'cannot be combined with "auth.browser": the proxy signs people in')
  if (header === 'authorization') issue('header', 'is where all tokens are: leave it out')
  if (forwarded && [forwarded.user, forwarded.secretHeader, forwarded.scopes, forwarded.groups].includes(header))
    issue('header', 'is a header of "auth.forwarded", too')
  if (!isAddress && jwksUri === undefined) issue('jwksUri', 'is required, because "issuer" is no address')
  if (jwksUri?.includes('{kid}') && claims['signer'] === undefined)
    issue('claims', 'has to have "signer", the ARN of your load balancer: those of everybody else have the same keys')
  return issues
}

type IssuerEntry = NonNullable<NonNullable<Settings['auth']>['issuers']>[number]

/** Addresses of an identity provider without TLS, which the bridge contacts only if their host is allowed. */
function plainIssues(
  path: string,
  { issuer, jwksUri, introspection, facade }: IssuerEntry,
  allow: readonly string[],
): Issue[] {
  const isHere = parseUrl(issuer) !== undefined && isLoopback(hostOf(issuer))
  const asksIssuer = jwksUri === undefined || introspection || facade
  const contacted = { ...(asksIssuer && { issuer }), ...(jwksUri !== undefined && { jwksUri }) }
  return Object.entries(contacted).flatMap(([option, address]) => {
    if (parseUrl(address) === undefined) return []
    const host = hostOf(address)
    const isAllowed = (isHere && isLoopback(host)) || isListed(allow, host)
    if (/^https:/i.test(address) || isAllowed) return []
    const adfs = /^http:.*\/adfs\//i.test(address)
      ? `. AD FS has this name in its tokens only: give https://${host}/adfs`
      : ''
    const message = `is an http:// address, which the bridge contacts only if "oauth.allow" has its host "${host}": use https://, or list it there${adfs}`
    return [{ path: `${path}.${option}`, message }]
  })
}

/** Whether hosts and networks have this host, as it is written. */
function isListed(allow: readonly string[], host: string): boolean {
  const family = isIP(host)
  return allow.map(withoutBrackets).some((one) => {
    const [base = '', bits = family === 4 ? '32' : '128'] = one.split('/')
    if (family === 0 || isIP(base) !== family) return one.toLowerCase() === host
    const type = family === 4 ? 'ipv4' : 'ipv6'
    const network = new BlockList()
    network.addSubnet(base, Number(bits), type)
    return network.check(host, type)
  })
}

function hostOf(address: string): string {
  return withoutBrackets(new URL(address).hostname)
}

/** Options of a sign-in that only some grants have. Those grants require the option, except `exchange`. */
const OF_GRANTS = {
  tokenFile: ['token'],
  assertionFile: ['jwt-bearer'],
  idp: ['id-jag'],
  exchange: ['token-exchange'],
} as const

/** Endpoints that a grant needs, if they are configured. */
const ENDPOINT_OF = { code: 'authorization', device: 'device' } as const

/** Settings of a sign-in that cannot work. */
export function signIn(name: string, own: ServerSettings, settings: Settings, listen: Listen): Issue[] {
  if (isStdio(own) || !own.oauth) return []
  if (own.socket !== undefined)
    return [
      {
        path: `mcpServers.${name}.oauth`,
        message: 'cannot be combined with "socket": the bridge does not sign in there',
      },
    ]
  const { auth, allowUnauthenticated } = settings
  const path = `mcpServers.${name}.oauth`
  const { grant, account = usualAccount(own.oauth), clientId, callbackPort } = own.oauth
  const issues: Issue[] = []
  const issue = (key: string, message: string) => issues.push({ path: key === '' ? path : `${path}.${key}`, message })
  if (auth?.passthrough) issue('', 'cannot be combined with "auth.passthrough", which sends the credentials of clients')
  const header = Object.keys(own.headers).find((one) => one.toLowerCase() === 'authorization')
  if (header !== undefined) issue('', `cannot be combined with "headers.${header}": both set the credential`)
  for (const [key, grants] of Object.entries(OF_GRANTS) as [keyof typeof OF_GRANTS, readonly string[]][]) {
    const isGiven = own.oauth[key] !== undefined
    if (grants.includes(grant) && !isGiven && key !== 'exchange') issue(key, `is required for the grant "${grant}"`)
    if (!grants.includes(grant) && isGiven) issue(key, `is for the grant "${grants.join('", "')}" only`)
  }
  const { endpoints } = own.oauth
  const asksPerson = grant === 'code' || grant === 'device'
  if (!asksPerson && grant !== 'token' && clientId === undefined)
    issue('clientId', `is required for the grant "${grant}"`)
  if (endpoints && asksPerson && clientId === undefined)
    issue('clientId', 'is required with "endpoints", because the bridge cannot register there')
  if (endpoints && asksPerson && endpoints[ENDPOINT_OF[grant]] === undefined)
    issue(`endpoints.${ENDPOINT_OF[grant]}`, `is required for the grant "${grant}"`)
  if (endpoints && own.oauth.authServerMetadataUrl !== undefined)
    issue('endpoints', 'cannot be combined with "authServerMetadataUrl"')
  if (grant === 'token-exchange' && own.oauth.issuer === undefined)
    issue(
      'issuer',
      'is required for the grant "token-exchange": the tokens of callers are sent there, and nowhere else',
    )
  if (isOnBehalf(own.oauth) && auth?.issuers === undefined)
    issue('grant', `"${grant}" requires "auth.issuers": it exchanges the tokens that callers get there`)
  if (isOnBehalf(own.oauth) && account === 'service')
    issue('account', `cannot be "service" with the grant "${grant}", which is for each caller`)
  if (account === 'principal' && own.session === 'shared' && hasSeveral(settings))
    issue('account', 'has to be "service" with "session": "shared", because several principals share that session')
  const isOpen = listen.kind === 'http' && auth === undefined && allowUnauthenticated && !isLoopback(listen.host)
  if (account === 'principal' && isOpen)
    issue('account', 'has to be "service" if callers are not authenticated, because they cannot be told apart')
  if (callbackPort !== undefined && own.oauth.redirectUri !== undefined)
    issue('callbackPort', 'cannot be combined with "redirectUri", which has a port')
  return issues
}

/** Servers that cannot receive the client's credential, or have their own. */
function passedThrough(mcpServers: Settings['mcpServers']): Issue[] {
  return Object.entries(mcpServers).flatMap(([name, entry]) => {
    if (isStdio(entry))
      return [{ path: 'auth.passthrough', message: `is for servers with an address, but ${name} is a program` }]
    const own = Object.keys(entry.headers).find((header) => header.toLowerCase() === 'authorization')
    if (own === undefined) return []
    const message = 'cannot be combined with "auth.passthrough": clients without a credential would use this one'
    return [{ path: `mcpServers.${name}.headers.${own}`, message }]
  })
}

/** Tokens that do not identify a principal. */
function principals(tokens: NonNullable<NonNullable<Settings['auth']>['tokens']>): Issue[] {
  const entries = Object.entries(tokens)
  if (entries.length === 0) return [{ path: 'auth.tokens', message: 'is empty, so nobody could call: add one' }]
  return entries.flatMap(([name, secret], i) => {
    const other = entries.slice(0, i).find(([, earlier]) => secretOf(earlier) === secretOf(secret))
    return other ? [{ path: `auth.tokens.${name}`, message: `is the same as that of ${other[0]}` }] : []
  })
}

/** Everybody could call from other machines. */
export function exposure({ allowUnauthenticated, auth }: Settings, listen: Listen): Issue[] {
  const isChecked = auth?.tokens ?? auth?.issuers ?? auth?.forwarded
  if (listen.kind === 'stdio' || allowUnauthenticated || isChecked || isLoopback(listen.host)) return []
  const message = `${listen.host} can be reached from other machines, so anybody there could call: require a token with --token '\${TOKEN}' or "auth.tokens", or allow it with --allow-unauthenticated`
  return [{ path: 'listen', message }]
}
