/** Announces the start and changes of a bridge: its addresses, and the state of its servers. */

import type { Bridge } from '../app/bridge.js'
import type { Mount } from '../app/mount.js'
import { Fault } from '../base/fault/fault.js'
import type { Log } from '../base/log/events.js'
import { literal, powershellOf } from '../base/texts/powershell.js'
import { quoted, usualShell } from '../base/texts/shell.js'
import type { Settings } from '../config/settings.js'
import { adviceOn } from '../servers/advice.js'
import type { Verdict } from '../servers/era/verdict.js'
import { inspectorAddress, inspectorLine, openable } from './inspector-address.js'

export interface Announcing {
  log: Log
  version: string
  platform: string
  /** Prints to people, instead of the log; undefined if the log is for programs. */
  say: ((text: string) => void) | undefined
  /** The generated token of the inspector. Only shown to people. */
  token?: string | undefined
  /** Suggested commands, for the address of the first server. */
  tries?: ((url: string) => readonly string[]) | undefined
}

/** Suggests the next steps. */
export function announce(
  { auth }: Settings,
  { mounts, groups, groupUrls, adminUrl, inspectUrl }: Bridge,
  urls: ReadonlyMap<string, string>,
  { log, version, platform, say, token: viewer, tries }: Announcing,
): void {
  if (adminUrl !== undefined) log.info({ event: 'admin_listening', url: adminUrl }, 'serving health and metrics')
  if (inspectUrl !== undefined) {
    const address = inspectorAddress(inspectUrl, viewer)
    // The generated token must not be logged.
    const next = viewer === undefined ? undefined : 'set inspect.token to look at it'
    if (say) say(`\n${inspectorLine(address, `mcp-bridge tail ${quoted(address)}`)}\n`)
    else log.info({ event: 'inspector_listening', url: inspectUrl, ...(next && { next }) }, 'serving the inspector')
  }
  const needsToken = auth?.tokens !== undefined || auth?.passthrough === true
  const [first = ''] = [...groupUrls.values(), ...urls.values()].map(openable)
  const command = discoverCommand(first, { platform, needsToken })
  if (urls.size === 0)
    return log.warn({ event: 'no_servers' }, 'no server found yet; the bridge serves each one as soon as it finds it')
  if (say) {
    const targets = [
      ...[...groupUrls].map(([name, url]) => ({ url, target: groups.get(name)?.health.servers.join(' and ') ?? name })),
      ...[...urls].map(([name, url]) => ({ url, target: mounts.get(name)?.server.target ?? name })),
    ]
    const lines =
      targets.length === 1
        ? targets.map(({ url, target }) => ` listens on ${url}\n  for ${target}\n`)
        : ['\n', ...targets.map(({ url, target }) => `  ${url}  for ${target}\n`)]
    const commands = tries?.(first) ?? [command]
    say(`\nmcp-bridge ${version}${lines.join('')}\nTry it:\n${commands.map((command) => `  ${command}\n\n`).join('')}`)
  } else {
    const all = [
      ...[...groupUrls].map(([group, url]) => ({ url, group })),
      ...[...urls].map(([server, url]) => ({ url, ...(urls.size > 1 && { server }) })),
    ]
    for (const [i, where] of all.entries())
      log.info({ event: 'listening', ...where, ...(i === 0 && { try: command }) }, 'listening')
  }
}

/** A `server/discover` request to the bridge, for the usual shell of the platform. */
export function discoverCommand(
  url: string,
  { platform, needsToken = false }: { platform: string; needsToken?: boolean },
): string {
  const body = '{"jsonrpc":"2.0","id":1,"method":"server/discover"}'
  const [, socket, at] = /^unix:(.*):([^:]*)$/.exec(url) ?? []
  // PowerShell cannot use unix sockets.
  if (usualShell(platform) === 'powershell' && socket === undefined) {
    const headers = needsToken ? { authorization: '"Bearer $env:TOKEN"' } : {}
    return powershellOf({ url: literal(url), headers, body })
  }
  const asked = socket === undefined ? url : `--unix-socket ${quoted(socket, 'sh')} http://localhost${at}`
  const token = needsToken ? ' -H "authorization: Bearer $TOKEN"' : ''
  return `curl -s ${asked} -H 'content-type: application/json'${token} -d '${body}'`
}

/** Reports the result of a server's era detection. */
export function report(
  log: Log,
  mounts: Bridge['mounts'],
  { name, server, accounts }: Mount,
  verdict: Verdict | Fault | undefined,
): void {
  const named = mounts.size > 1 ? { server: name } : {}
  if (verdict instanceof Fault) {
    // The arguments of a program may be secret.
    const target = server.isProgram ? undefined : server.target
    const fields = { server: name, why: verdict.message, target, ...adviceOn(verdict, accounts?.loginName) }
    log.warn({ event: 'server_unavailable', ...fields }, 'server unavailable; retrying on the next request')
  } else if (verdict) {
    const { era, revision, why } = verdict
    log.info({ event: 'server_ready', ...named, era, revision, why }, 'server ready')
  } else if (accounts) {
    const next = accounts.settings.apiKey ? accounts.page : `mcp-bridge login ${accounts.loginName}`
    log.info({ event: 'sign_in_required', server: name, next }, 'server requires sign-in; the first request starts it')
  } else {
    log.info({ event: 'era_unknown', ...named }, 'protocol era unknown until the first authenticated request')
  }
}
