/** Creates the accounts of a configured server, if the bridge signs in to it. */
import { type Callers, isOnBehalf, isStdio, type ServerSettings, type Settings, signInOf } from '../config/settings.js'
import { canonical, httpEndpoint } from '../discovery/endpoint.js'
import { Accounts, type AccountsOptions } from '../oauth/client/accounts.js'
import { pemOfServer, signInTls } from './certificates.js'
import type { BridgeContext } from './context.js'

/** What replaces the defaults for a server that discovery has found. */
export type FoundAccounts = Pick<AccountsOptions, 'loginName' | 'reach'>

/** Undefined if the bridge does not sign in to this server, or if the server is a program. */
export function accountsOf(
  name: string,
  own: ServerSettings,
  all: Callers & Pick<Settings, 'oauth'>,
  { log, signIn }: Pick<BridgeContext, 'log' | 'signIn'>,
  isModern: () => boolean,
  found: FoundAccounts = {},
): Accounts | undefined {
  const settings = signIn && signInOf(own, all)
  if (!settings || isStdio(own)) return undefined
  const { url } = httpEndpoint(own.url)
  const { account, ...client } = settings
  const allow = all.oauth.allow
  return new Accounts({
    server: name,
    loginName: signIn.loginName?.(name, url),
    url,
    endpoint: canonical({ kind: 'http', url }),
    account,
    onBehalf: isOnBehalf(settings),
    accountName: all.oauth.account,
    settings: { ...client, allow },
    store: signIn.store,
    person: signIn.person,
    network: { ...signIn.network, tlsFor: signInTls(url, pemOfServer(name, own, undefined)) },
    isModern,
    log: log.child({ server: name }),
    ...found,
  })
}
