/** The list of servers that the bridge publishes, from the descriptions of its mounts. */
import { ConfigError, type Listen, type Settings, servedPaths } from '../config/settings.js'
import type { Fronted, Published } from './publish.js'

/** A server behind the bridge, as far as it is published. */
interface PublishableServer {
  /** How it describes itself; undefined before it has answered. */
  readonly identity: Pick<Fronted, 'identity' | 'capabilities'> | undefined
  readonly isTrusted: boolean
  /** Asks the server how it describes itself. */
  introduce(): Promise<void>
}

/** The list; undefined if the bridge publishes none. Rejects with a ConfigError for an unusable key. */
export async function publisher(
  settings: Settings,
  listen: Listen & { kind: 'http' },
  mounts: ReadonlyMap<string, PublishableServer>,
): Promise<(() => Promise<Published>) | undefined> {
  const { publish, publicUrl: base, auth } = settings
  if (!publish || base === undefined) return undefined
  const { publishing, publisherOf } = await import('./publish.js')
  const { readSigningKey } = await import('./trust/keys.js')
  const key = publish.key === undefined ? undefined : await readSigningKey(publish.key).catch(unusable)
  const paths = servedPaths(settings, listen)
  const wants = auth?.tokens ? ({ type: 'bearer' } as const) : undefined
  const content = () => ({
    publisher: publish.publisher ?? publisherOf(base),
    base,
    servers: [...mounts].flatMap(([name, { identity, isTrusted }]) => {
      const path = paths.get(name)?.at(-1)
      return identity && isTrusted && path !== undefined ? [{ name, path, ...identity, auth: wants }] : []
    }),
  })
  const published = publishing({ content, key })
  return async () => {
    await Promise.all([...mounts.values()].flatMap((mount) => (mount.isTrusted ? [mount.introduce()] : [])))
    return published()
  }
}

function unusable(cause: unknown): never {
  throw new ConfigError([{ path: 'publish.key', message: cause instanceof Error ? cause.message : String(cause) }])
}
