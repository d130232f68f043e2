/** Commands that people can paste, with all that it takes for them to mean the same. */
import type { Settings } from '../config/settings.js'
import type { Candidate } from '../discovery/candidate.js'
import type { Standing } from '../ports/trust-status.js'

export interface Circumstances {
  settings: Pick<Settings, 'discoverAllow' | 'discoverLoopback' | 'trustStore'>
  candidate: Pick<Candidate, 'endpoint'>
  /** Who vouches for the server, if anybody does. */
  manifest?: { url: string } | undefined
}

/** A standing whose command works as it is. */
export function withFlags<T extends Standing>(standing: T, { settings, candidate, manifest }: Circumstances): T {
  const { endpoint } = candidate
  if (standing.remedy === '' || endpoint.kind !== 'http') return standing
  const { discoverAllow, discoverLoopback, trustStore } = settings
  // A manifest of another host is found by asking that one.
  const own = new URL(endpoint.url)
  const by = manifest && new URL(manifest.url)
  const flags = standing.remedy.includes(' key add ')
    ? []
    : [
        ...(by && by.origin !== own.origin ? ['--discover', by.origin] : []),
        ...(discoverLoopback ? ['--discover-loopback'] : []),
        ...discoverAllow.flatMap((one) => ['--discover-allow', one]),
      ]
  const store = trustStore === undefined ? [] : ['--trust-store', trustStore]
  return { ...standing, remedy: [standing.remedy, ...[...flags, ...store].map(quoted)].join(' ') }
}

/** As a shell takes it. */
function quoted(text: string): string {
  return /^[\w./:@-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
