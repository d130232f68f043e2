/** The kinds of servers: programs, and servers at addresses. */
import { ADDRESS_OPTIONS, PROGRAM_OPTIONS } from './defaults.js'
import type { HttpSettings, ServerSettings, StdioSettings } from './schema/server.js'
import { TRANSPORTS } from './server-words.js'

export function isStdio(settings: ServerSettings): settings is StdioSettings {
  return 'command' in settings
}

/** The configured transport of an HTTP entry; undefined if the bridge detects it. */
export function transportOf({ type }: HttpSettings): 'stdio' | 'http' | 'sse' | undefined {
  return type === undefined ? undefined : TRANSPORTS[type]
}

export function addressesOf({ url }: Pick<HttpSettings, 'url'>): readonly [string, ...string[]] {
  return (typeof url === 'string' ? [url] : url) as [string, ...string[]]
}

/** The known keys of an entry of this kind. */
export function knownKeys(entry: object): readonly string[] {
  return 'command' in entry ? PROGRAM_OPTIONS : ADDRESS_OPTIONS
}

/** The known keys of entries of either kind. */
export const SERVER_KEYS: ReadonlySet<string> = new Set([...PROGRAM_OPTIONS, ...ADDRESS_OPTIONS])
