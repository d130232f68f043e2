/** Asks a server that discovery meets: its handshake, its tools, and with which account. */

import type { Failure } from '../../base/net/failure.js'
import type { Payload } from '../../base/rpc/splice.js'
import { quoted } from '../../base/texts/shell.js'
import type { ServerSettings, Settings } from '../../config/settings.js'
import { type Era, LEGACY, MODERN } from '../../mcp/protocol/eras.js'
import { describeServer } from '../../middle/describe/server.js'
import { toolList } from '../../middle/policy/tool-list.js'
import type { Server } from '../../servers/server.js'
import type { Accounts } from '../oauth/client/accounts.js'
import { foundReach, type Network } from '../oauth/reach.js'
import type { SignInParts } from '../oauth/sign-in-parts.js'
import type { Candidate, CardClaim } from './candidate.js'
import { failure } from './failure.js'
import type { DiscoveryHost } from './host.js'
import { type IntrospectedServer, isConfigured } from './steps.js'
import { PinError } from './trust/pin.js'

/** The era of the revisions that a card lists; undefined if it lists none that the bridge supports. */
export function claimedEra(card: CardClaim | undefined): Era | undefined {
  const lists = (revisions: readonly string[]) => card?.revisions?.some((one) => revisions.includes(one))
  if (lists(MODERN)) return 'modern'
  return lists(LEGACY) ? 'legacy' : undefined
}

/** The handshake of a server, and its tools. */
export async function introspect(server: Server): Promise<IntrospectedServer> {
  const pages: Payload[] = []
  const {
    era,
    revision,
    transport,
    why,
    server: named,
    capabilities,
    tools,
  } = await describeServer(server, { seen: (page) => pages.push(page) })
  const { name = '', version = '' } = named ?? {}
  const handshake = { name, version, revision, capabilities: Object.keys(capabilities) }
  return { era, transport, why, handshake, tools: toolList(pages), listing: tools }
}

/** Whose tokens are sent to a candidate, and what its sign-in may reach. */
export interface IntrospectionAccount {
  host: DiscoveryHost
  signIn: SignInParts | undefined
  network: Network | undefined
  guard: { allowed: readonly string[]; allowLoopback: boolean }
  /** The configuration of the bridge has the candidate. */
  isOwn: boolean
}

/** The accounts at a candidate, with the tokens of `mcp-bridge login`. Nobody is asked to sign in. */
export function accountsOf(
  candidate: Candidate,
  entry: ServerSettings,
  all: Settings,
  { host, signIn, network, guard, isOwn }: IntrospectionAccount,
  isModern: () => boolean,
): Accounts | undefined {
  const { name, endpoint, from } = candidate
  if (!signIn || endpoint.kind !== 'http' || !('url' in entry)) return undefined
  if (isOwn) return host.accountsOf(name, entry, all, signIn, isModern)
  if (isConfigured(candidate)) {
    const loginName = `${quoted(name)} --config ${quoted(from)}`
    return host.accountsOf(name, entry, all, signIn, isModern, { loginName })
  }
  const { allowed, allowLoopback } = guard
  const reach = foundReach(endpoint.url, { allowed: [...allowed, ...all.oauth.allow], allowLoopback }, network)
  const found = { loginName: endpoint.url.replace(/\?.*$/s, ''), reach }
  // What the network says about signing in is not a configuration.
  return host.accountsOf(name, { ...entry, oauth: undefined }, all, signIn, isModern, found)
}

/** The Failure for a connection that was refused because its key is not pinned; undefined for other errors. */
export function pinFailure(error: unknown): Failure | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (cause instanceof PinError) return failure('tls', 'pin', cause.message, { cause: error })
  return undefined
}
