/**
 * The server of a mount, with its accounts and certificates. When a reload changes only what clients may see of it, the next
 * mount takes it over, with its processes and sessions.
 */
import type { PemFiles } from '../base/net/pem-files.js'
import { Server, type UpstreamServer } from '../servers/server.js'
import type { Accounts } from '../services/oauth/client/accounts.js'
import { accountsOf } from './accounts.js'
import { pemOfServer } from './certificates.js'
import type { BridgeContext } from './context.js'
import type { MountSettings } from './mount-settings.js'
import { serverAt } from './server-at.js'
import { type Reaching, serverBounds, serverOptions } from './server-options.js'
import type { Shared } from './shared.js'

export class ServerSide {
  readonly server: UpstreamServer
  /** The accounts at the server, if the bridge signs in to it. */
  readonly accounts: Accounts | undefined
  /** The configured certificates, if there are any. */
  readonly pem: PemFiles | undefined
  /** The mount that ends it. */
  owner: object | undefined
  readonly #inProcess: boolean
  readonly #shared: Shared

  constructor(name: string, settings: MountSettings, shared: Shared, context: BridgeContext) {
    const { server: own } = settings
    const trust = context.lead?.(name)
    this.#shared = shared
    this.#inProcess = context.inProcess?.(name) !== undefined
    // The bridge never signs in to a server that nobody has configured.
    this.accounts = trust
      ? undefined
      : accountsOf(name, own, settings, { ...context, ...shared }, () => this.server.verdict?.era === 'modern')
    this.pem = pemOfServer(name, own, context.log.child({ server: name }))
    const reach = { connect: trust?.connect, accounts: this.accounts, pem: this.pem, claimed: trust?.claimed }
    const optionsAt = (more: Reaching) => serverOptions(name, own, settings, context, shared, { ...reach, ...more })
    // What nobody has configured has one address, which the guard checks.
    this.server = trust || this.#inProcess ? new Server(optionsAt({})) : serverAt(own, context, optionsAt)
  }

  /** Applies changed bounds and times. */
  adapt(settings: MountSettings): void {
    const kind = this.#inProcess ? ('in-process' as const) : undefined
    this.server.change(serverBounds(settings.server, settings, { kind, keys: this.#shared.keys }))
  }

  async close(hurry: boolean): Promise<void> {
    this.accounts?.close()
    await this.server.close(hurry)
  }
}
