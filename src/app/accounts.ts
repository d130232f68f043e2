/** Creates the accounts of a configured server, if the bridge signs in to it. */

import { ipv4Addresses } from '../base/net/connect.js'
import { canonical, httpEndpoint } from '../config/endpoint.js'
import {
  addressesOf,
  type Callers,
  isOnBehalf,
  isStdio,
  type ServerSettings,
  type Settings,
  signInOf,
} from '../config/settings.js'
import type { Accounts, AccountsOptions } from '../services/oauth/client/accounts.js'
import { pemOfServer, signInTls } from './certificates.js'
import type { BridgeContext } from './context.js'
import type { Shared } from './shared.js'

/** Settings that replace the defaults for a discovered server. */
export type FoundAccounts = Pick<AccountsOptions, 'loginName' | 'reach'>

/** Undefined if the bridge does not sign in to this server, or if the server is a program. */
export function accountsOf(
  name: string,
  own: ServerSettings,
  all: Callers & Pick<Settings, 'oauth'> & { page?: boolean },
  { log, signIn, desk, replicas }: Pick<BridgeContext, 'log' | 'signIn'> & Partial<Pick<Shared, 'desk' | 'replicas'>>,
  isModern: () => boolean,
  found: FoundAccounts = {},
): Accounts | undefined {
  const settings = signIn && signInOf(own, all)
  if (!settings || isStdio(own)) return undefined
  const { url } = httpEndpoint(addressesOf(own)[0])
  const { account, ...client } = settings
  const allow = all.oauth.allow
  const isOnPage = all.page === true && account === 'principal' && client.grant === 'code'
  const { code } = signIn
  return new code.Accounts({
    server: name,
    loginName: signIn.loginName?.(name, url),
    url,
    endpoint: canonical({ kind: 'http', url }),
    account,
    onBehalf: isOnBehalf(settings),
    accountName: all.oauth.account,
    settings: { ...client, allow },
    // People sign in at any replica, and use their tokens at all of them. Workers have the same files.
    store: isOnPage && replicas?.records.lasting ? new code.ReplicatedStore(replicas.records) : signIn.store,
    desk: isOnPage ? desk : undefined,
    person: signIn.person,
    network: {
      ...signIn.network,
      tlsFor: signInTls(url, pemOfServer(name, own, undefined)),
      ...(own.ipv4 && { resolve: ipv4Addresses }),
    },
    isModern,
    log: log.child({ server: name }),
    ...found,
  })
}
