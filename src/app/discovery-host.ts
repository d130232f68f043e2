/** What the bridge gives to discovery: its log, and functions that create servers and accounts from entries. */

import { Server } from '../servers/server.js'
import type { DiscoveryHost } from '../services/discovery/host.js'
import { accountsOf } from './accounts.js'
import { pemOfServer } from './certificates.js'
import { type BridgeContext, observerOf } from './context.js'
import { serverOptions } from './server-options.js'

/** `config` is the file of the program. Servers that discovery only examines have no metrics and no traces. */
export function discoveryHost(context: BridgeContext, config?: string): DiscoveryHost {
  const { log, env, recorder } = context
  const quiet = { ...context, metrics: undefined, tracer: undefined }
  return {
    log,
    env,
    config,
    observe: observerOf(context),
    noteTrust: recorder && ((server, text) => recorder.note('trust', text, server)),
    pemOf: (name, entry) => pemOfServer(name, entry, log),
    accountsOf: (name, entry, settings, signIn, isModern, found) =>
      accountsOf(name, entry, settings, { log, signIn }, isModern, found),
    serverOf: (name, entry, settings, memory, reach) =>
      new Server(serverOptions(name, entry, settings, quiet, { memory, keys: [] }, reach)),
  }
}
