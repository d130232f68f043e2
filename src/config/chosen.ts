/** Issues of the choice of what clients see of a server. */

import { parseUrl } from '../base/texts/parse-url.js'
import type { Listen } from './addresses.js'
import { isApprovedAtPage, mayHavePage } from './derived.js'
import type { Issue } from './error.js'
import { addressesOf, isStdio } from './kinds.js'
import type { Settings } from './schema/schema.js'
import type { ServerSettings } from './schema/server.js'

/** An issue: people have to approve calls at a page that is not served. */
export function approving(name: string, own: ServerSettings, settings: Settings, listen: Listen): Issue[] {
  if (!isApprovedAtPage(own) || mayHavePage(settings, listen)) return []
  const needs =
    'requires "publicUrl" with https, and an "auth" by which browsers can prove who is there: "tokens", "browser" or "forwarded"'
  return [{ path: `mcpServers.${name}.tools.approveBy`, message: needs }]
}

/** Issues: equal names of two tools, and paths that bypass the choice. */
export function chosen(name: string, own: ServerSettings): Issue[] {
  const path = `mcpServers.${name}`
  const issues: Issue[] = []
  const owners = new Map<string, string>()
  for (const [tool, { name: shown }] of Object.entries(own.tools?.override ?? {})) {
    const owner = shown === undefined ? undefined : owners.get(shown)
    if (owner !== undefined)
      issues.push({ path: `${path}.tools.override.${tool}.name`, message: `is also the name of "${owner}"` })
    else if (shown !== undefined) owners.set(shown, tool)
  }
  return [...issues, ...bypasses(path, own)]
}

function bypasses(path: string, own: ServerSettings): Issue[] {
  const isRestricted = own.tools || own.prompts || own.resources || own.events || Object.keys(own.scopes).length > 0
  if (isStdio(own) || !isRestricted) return []
  const endpoints = addressesOf(own).flatMap((address) => plain(parseUrl(address)?.pathname ?? '/'))
  const covers = (pattern: string) =>
    endpoints.some((endpoint) =>
      pattern.endsWith('/*') ? isBelow(endpoint, plain(pattern.slice(0, -1))) : plain(pattern) === endpoint,
    )
  return own.paths.filter(covers).map((pattern) => ({
    path: `${path}.paths`,
    message: `${pattern} includes the endpoint of the server, so clients could bypass "tools", "prompts", "resources", "events" and "scopes"`,
  }))
}

function isBelow(path: string, folder: string): boolean {
  return folder === '/' || `${path}/`.startsWith(`${folder}/`)
}

/** Normalizes a path as servers compare it. */
function plain(pathname: string): string {
  const decoded = pathname.replace(/%[\da-f]{2}/gi, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)))
  const { pathname: resolved } = new URL(decoded.replace(/[\\/]+/g, '/'), 'http://x')
  return resolved.toLowerCase().replace(/(?<=.)\/$/, '')
}
