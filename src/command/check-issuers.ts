/** Asks the identity providers of a configuration for their keys, for `mcp-bridge check`. Loaded only where there are any. */

import { proxiesOf } from '../base/net/proxy.js'
import type { Issue, Settings } from '../config/settings.js'
import { Verifier } from '../services/oauth/server/verifier.js'

/** An issue for each provider whose keys cannot be had now. */
export async function unavailableIssuers(
  { auth, oauth: { allow } }: Settings,
  env: Parameters<typeof proxiesOf>[0],
): Promise<Issue[]> {
  const verifier = new Verifier({ issuers: auth?.issuers ?? [], allow, network: { proxyOf: proxiesOf(env) } })
  await verifier.prepare()
  verifier.close()
  return verifier.states.flatMap(({ state, why }, i) =>
    state === 'down' ? [{ path: `auth.issuers.${i}`, message: `has no keys that can be had now: ${why}` }] : [],
  )
}
