/** Adds to suggested commands the flags that they need, so that people can paste them. */

import { quoted } from '../../../base/texts/shell.js'
import type { Settings } from '../../../config/settings.js'
import type { TrustStatus } from '../../../mcp/ports/trust-status.js'
import type { Candidate } from '../candidate.js'

/** What decides the flags. */
export interface RemedyContext {
  settings: Pick<Settings, 'discoverAllow' | 'discoverLoopback' | 'trustStore'>
  candidate: Pick<Candidate, 'endpoint'>
  /** The configuration file of the program, if it has one. */
  config?: string | undefined
  /** The manifest of the server, if it has one. */
  manifest?: { url: string } | undefined
}

/** The trust status, with a command that works as it is. */
export function withFlags<T extends TrustStatus>(
  trustStatus: T,
  { settings, candidate, config, manifest }: RemedyContext,
): T {
  const { endpoint } = candidate
  if (trustStatus.remedy === '' || endpoint.kind !== 'http') return trustStatus
  const { discoverAllow, discoverLoopback, trustStore } = settings
  // A manifest of another host is found only by discovery at that host.
  const own = new URL(endpoint.url)
  const by = manifest && new URL(manifest.url)
  const flags = trustStatus.remedy.includes(' key add ')
    ? []
    : [
        ...(by && by.origin !== own.origin ? ['--discover', by.origin] : []),
        ...(discoverLoopback ? ['--discover-loopback'] : []),
        ...discoverAllow.flatMap((one) => ['--discover-allow', one]),
      ]
  const file = config === undefined ? [] : ['--config', config]
  const store = trustStore === undefined ? [] : ['--trust-store', trustStore]
  return {
    ...trustStatus,
    remedy: [trustStatus.remedy, ...[...flags, ...file, ...store].map((word) => quoted(word))].join(' '),
  }
}
