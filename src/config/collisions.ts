/** Finds addresses and paths that are used twice. */
import { PROTECTED_RESOURCE } from '../base/texts/well-known.js'
import {
  FACADE,
  type HttpListen,
  type Listen,
  parseListen,
  RESERVED,
  SIGN_IN,
  servedPaths,
  ssePaths,
} from './addresses.js'
import { hasSignInPage } from './derived.js'
import type { Issue } from './error.js'
import { groupPaths } from './groups.js'
import { isStdio } from './kinds.js'
import type { Settings } from './schema/schema.js'

const BRIDGE = 'the bridge itself'

/** Issues: a path of two servers or groups, or of the bridge itself, and an unusable address of "admin". */
export function collisions(settings: Settings, listen: Listen): Issue[] {
  const { admin, mcpServers, auth } = settings
  const issues: Issue[] = []
  if (admin !== undefined && parseListen(admin, 'admin').kind === 'stdio')
    issues.push({ path: 'admin', message: 'has to be an address like http://127.0.0.1:9090' })
  if (listen.kind === 'stdio') return issues
  const facade = auth?.issuers?.some((one) => one.facade) ? ['register', 'authorize', 'token'] : []
  const taken = new Map([...RESERVED, ...facade.map((name) => `${FACADE}/${name}`)].map((path) => [path, BRIDGE]))
  const hasPage = hasSignInPage(settings, listen)
  const ownerOf = (path: string) =>
    taken.get(path) ?? (hasPage && `${path}/`.startsWith(`${SIGN_IN}/`) ? BRIDGE : undefined)
  for (const { owner, paths, at } of endpoints(settings, listen))
    for (const path of paths) {
      const { stream, messages } = ssePaths(path)
      const card = settings.publish ? [`${path.replace(/\/$/, '')}/server-card`] : []
      for (const one of [path, stream, messages, ...card]) {
        const other = ownerOf(one)
        const what =
          other === owner ? 'is where HTTP+SSE clients connect: choose another path' : `is a path of ${other}`
        if (other !== undefined) issues.push({ path: at, message: `${one} ${what}` })
        taken.set(one, owner)
      }
    }
  for (const [name, server] of Object.entries(mcpServers)) {
    const issue = (message: string) => issues.push({ path: `mcpServers.${name}.paths`, message })
    for (const path of isStdio(server) ? [] : server.paths) {
      const owner = ownerOf(path)
      if (owner !== undefined) issue(`${path} is a path of ${owner === name ? BRIDGE : owner}`)
      else if (auth?.issuers && path.startsWith(PROTECTED_RESOURCE))
        issue(`${path} is served by the bridge itself with "auth.issuers"`)
      else taken.set(path, name)
    }
  }
  return issues
}

/** The endpoints of servers and groups, with the option that sets the path of each. */
function endpoints(settings: Settings, listen: HttpListen) {
  const { mcpServers, groups } = settings
  return [
    ...[...servedPaths(settings, listen)].map(([name, paths]) => {
      const at = mcpServers[name]?.path === undefined ? 'listen' : `mcpServers.${name}.path`
      return { owner: name, paths, at }
    }),
    ...[...groupPaths(settings, listen)].map(([name, paths]) => {
      const path = groups ? groups[name]?.path : undefined
      const at = !groups || !(name in groups) ? 'listen' : path === undefined ? `groups.${name}` : `groups.${name}.path`
      return { owner: `the group ${name}`, paths, at }
    }),
  ]
}
