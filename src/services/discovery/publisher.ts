/** What the bridge publishes of the servers and groups that it serves, from the descriptions of its mounts. */
import { CATALOG_PATH } from '../../base/texts/well-known.js'
import { ConfigError, groupPaths, type HttpListen, type Settings, servedPaths } from '../../config/settings.js'
import type { CardDocument } from './cards.js'
import type { Fronted, Published } from './publish.js'

/** A server behind the bridge, as far as it is published. */
interface PublishableServer {
  /** How it describes itself; undefined before it has answered. */
  readonly identity: Pick<Fronted, 'identity' | 'capabilities'> | undefined
  readonly isTrusted: boolean
  /** Asks the server how it describes itself. */
  introduce(): Promise<void>
}

/** A group of the bridge, as far as it is published. */
interface PublishableGroup {
  readonly identity: { name: string; version: string }
}

/** What is published, at the time of a call. */
export interface Publisher {
  /** The manifest of the servers. */
  published(): Promise<Published>
  /** The paths of server cards and of the catalog. */
  cardPaths: readonly string[]
  /** The document at one of these paths; undefined if it is not known yet, or must not be published. */
  card(path: string): Promise<CardDocument | undefined>
}

/** What to publish; undefined if nothing is. Rejects with a ConfigError for an unusable key. */
export async function publisher(
  settings: Settings,
  listen: HttpListen,
  mounts: {
    servers: ReadonlyMap<string, PublishableServer>
    groups: ReadonlyMap<string, PublishableGroup>
  },
): Promise<Publisher | undefined> {
  const { publish, publicUrl: base, auth } = settings
  if (!publish || base === undefined) return undefined
  const { publishing, publisherOf } = await import('./publish.js')
  const { cardDocuments, cardPath } = await import('./cards.js')
  const { readSigningKey } = await import('./trust/keys.js')
  const key = publish.key === undefined ? undefined : await readSigningKey(publish.key).catch(unusable)
  const named = { publisher: publish.publisher ?? publisherOf(base), base }
  const lastOf = (paths: ReadonlyMap<string, readonly string[]>) =>
    new Map([...paths].flatMap(([name, all]) => all.slice(-1).map((path) => [name, path] as const)))
  const paths = { servers: lastOf(servedPaths(settings, listen)), groups: lastOf(groupPaths(settings, listen)) }
  const wants = auth?.tokens ? ({ type: 'bearer' } as const) : undefined
  const needsToken = auth?.tokens !== undefined && !auth.issuers
  const servers = () =>
    [...mounts.servers].flatMap(([name, { identity, isTrusted }]) => {
      const path = paths.servers.get(name)
      return identity && isTrusted && path !== undefined ? [{ name, path, ...identity }] : []
    })
  const groups = () =>
    [...mounts.groups].flatMap(([name, { identity }]) => {
      const path = paths.groups.get(name)
      return path === undefined ? [] : [{ name, path, identity, needsToken }]
    })
  const introduced = () =>
    Promise.all([...mounts.servers.values()].flatMap((mount) => (mount.isTrusted ? [mount.introduce()] : [])))
  const manifest = publishing({
    content: () => ({ ...named, servers: servers().map((one) => ({ ...one, auth: wants })) }),
    key,
  })
  return {
    async published() {
      await introduced()
      return manifest()
    },
    cardPaths: [CATALOG_PATH, ...[...paths.groups.values(), ...paths.servers.values()].map(cardPath)],
    async card(path) {
      await introduced()
      const ungrouped = servers().map(({ name, path, identity }) => ({ name, path, identity, needsToken }))
      return cardDocuments({ ...named, served: [...groups(), ...ungrouped] }).get(path)
    },
  }
}

function unusable(cause: unknown): never {
  throw new ConfigError([{ path: 'publish.key', message: cause instanceof Error ? cause.message : String(cause) }])
}
