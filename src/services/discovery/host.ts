/** What the program that runs discovery gives to it. */

import type { Memory } from '../../base/limits/memory.js'
import type { Log } from '../../base/log/events.js'
import type { PemFiles } from '../../base/net/pem-files.js'
import type { ServerSettings, Settings } from '../../config/settings.js'
import type { Observe } from '../../mcp/ports/events.js'
import type { Era } from '../../mcp/protocol/eras.js'
import type { Server } from '../../servers/server.js'
import type { Connect } from '../../servers/transport/undici-pool.js'
import type { Accounts, AccountsOptions } from '../oauth/client/accounts.js'
import type { SignInParts } from '../oauth/sign-in-parts.js'

/** How a server is reached that discovery meets. */
interface MeetingReach {
  connect: Connect | undefined
  accounts: Accounts | undefined
  pem: PemFiles | undefined
  /** The era that its card claims. */
  claimed: (() => Era | undefined) | undefined
}

/** What the program gives to discovery. */
export interface DiscoveryHost {
  log: Log
  /** The environment of the process. */
  env: Readonly<Record<string, string | undefined>>
  /** The configuration file of the program, for commands that it advises; undefined if it has none. */
  config?: string | undefined
  /** Receives events for metrics and the inspector. */
  observe?: Observe | undefined
  /** Records a change of trust in a server. */
  noteTrust?: ((server: string, text: string) => void) | undefined
  /** The files of certificates and keys of an entry; undefined if it names none. Throws a ConfigError. */
  pemOf(name: string, entry: ServerSettings): PemFiles | undefined
  /** The accounts of an entry; undefined if the bridge does not sign in to this server. */
  accountsOf(
    name: string,
    entry: ServerSettings,
    settings: Settings,
    signIn: SignInParts,
    isModern: () => boolean,
    found?: Pick<AccountsOptions, 'loginName' | 'reach'>,
  ): Accounts | undefined
  /** The server of an entry, without metrics and traces. */
  serverOf(name: string, entry: ServerSettings, settings: Settings, memory: Memory, reach: MeetingReach): Server
}
