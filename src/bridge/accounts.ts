/** In whose name a server of the configuration is asked, where the bridge signs in to it. */
import { isStdio, type ServerSettings, signInOf } from '../config/settings.js'
import { canonical, httpEndpoint } from '../discovery/endpoint.js'
import { Accounts } from '../oauth/client/accounts.js'
import type { BridgeContext } from './context.js'
import type { MountSettings } from './mount-settings.js'

/** Undefined where the bridge has no credentials to obtain, or none to obtain by itself. */
export function accountsOf(
  name: string,
  own: ServerSettings,
  all: MountSettings,
  { log, signIn }: Pick<BridgeContext, 'log' | 'signIn'>,
  isModern: () => boolean,
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
    accountName: all.oauth.account,
    settings: { ...client, allow },
    store: signIn.store,
    person: signIn.person,
    network: signIn.network,
    isModern,
    log: log.child({ server: name }),
  })
}
