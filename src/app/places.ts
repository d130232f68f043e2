/** What is served at which path. */
import { groupPaths, groupsOf, type HttpListen, type Settings, servedPaths } from '../config/settings.js'
import type { GroupMount } from './group-mount.js'
import type { MountEndpoint } from './http-app.js'
import type { Mount } from './mount.js'

/** What is served: servers and groups, each by name. */
export interface Mounts {
  servers: ReadonlyMap<string, Mount>
  groups: ReadonlyMap<string, GroupMount>
}

/** The current server or group of each path, and the server that had the path before a group took it over. */
export interface Places {
  now: ReadonlyMap<string, Mount | GroupMount>
  before: ReadonlyMap<string, Mount>
}

/** The endpoints with their paths. Groups come first, because people look for the address with all of their servers. */
export function pathsOf(settings: Settings, listen: HttpListen, { servers, groups }: Mounts) {
  const paths = { groups: groupPaths(settings, listen), servers: servedPaths(settings, listen) }
  return [
    ...[...groups].map(([name, mount]) => [mount, paths.groups.get(name) ?? []] as const),
    ...[...servers].map(([name, mount]) => [mount, paths.servers.get(name) ?? []] as const),
  ]
}

/** The owner of each path. While a group has the path of a server that is still served, that server is remembered. */
export function placesOf(settings: Settings, listen: HttpListen, mounts: Mounts, last: Places): Places {
  const now = new Map(pathsOf(settings, listen, mounts).flatMap(([mount, paths]) => paths.map((path) => [path, mount])))
  const before = new Map<string, Mount>()
  for (const path of [...groupPaths(settings, listen).values()].flat()) {
    const had = last.now.get(path)
    const former = had && mounts.servers.get(had.name) === had ? had : last.before.get(path)
    if (former && mounts.servers.get(former.name) === former) before.set(path, former as Mount)
  }
  return { now, before }
}

/** The endpoints of all that is served. */
export async function endpointsOf(
  settings: Settings,
  listen: HttpListen,
  mounts: Mounts,
  { before }: Places,
): Promise<MountEndpoint[]> {
  const former = new Map(
    await Promise.all([...before].map(async ([path, mount]) => [path, await mount.clients.http()] as const)),
  )
  return Promise.all(
    pathsOf(settings, listen, mounts).map(async ([mount, paths]) => ({
      mount: await mount.clients.http(),
      paths,
      overHttp: aloneAt(mount, settings, mounts)?.server.overHttp,
      before: former,
    })),
  )
}

/** The only server of a mount; undefined if there are several. */
function aloneAt(mount: Mount | GroupMount, settings: Settings, { servers }: Mounts): Mount | undefined {
  const server = servers.get(mount.name)
  if (server === mount) return server
  const [only, ...others] = groupsOf(settings).get(mount.name)?.members ?? []
  return only && others.length === 0 ? servers.get(only.server) : undefined
}
