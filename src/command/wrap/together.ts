/**
 * `wrap --together`: moves all servers of a client's file into a bridge configuration, and replaces them by one entry that
 * starts the bridge; and the reverse. No side effects.
 */

import { readJson } from '../../config/formats/document.js'
import { Uneditable } from '../../config/formats/edit.js'
import { isObject } from '../../config/value.js'
import type { Dialect } from './dialects.js'
import { type ClientEntry, launched, serverIn } from './entry.js'
import type { Launcher } from './launcher.js'
import { entriesIn, type Layout, type Named, type WrapPlan } from './plan.js'
import { Unfit } from './unfit.js'

/** Suffix of the configuration's path, after the path of the client's file. */
const SUFFIX = '.mcp-bridge.json'
/** The name of the entry. Clients prefix the names of tools with it. */
const NAME = 'all'

export function configOf(path: string): string {
  return path + SUFFIX
}

/** The place of servers in a file, the command of the bridge, and its configuration if there is one. */
export interface Joining {
  layout: Layout
  launcher: Launcher
  configPath: string
  config: string | undefined
}

/** A changed file, and the changed bridge configuration. */
export interface JoinedPlan extends WrapPlan {
  config: string
}

/** Moves the servers of the first non-empty list into the bridge configuration, and replaces them by one entry. */
export function joined(text: string, { layout, launcher, configPath, config }: Joining): JoinedPlan {
  const { dialect, open } = layout
  const all = entriesIn(text, layout)
  const known = all.find(({ entry }) => isTogether(entry, configPath))
  const place = (known ?? all.find(({ entry }) => !(movable(entry, dialect) instanceof Unfit)))?.keys.slice(0, -1)
  const { mcpServers, ...options } = known && config !== undefined ? objectIn(config) : {}
  const servers: Record<string, unknown> = isObject(mcpServers) ? { ...mcpServers } : {}
  const changed: { name: string; before: ClientEntry; after: ClientEntry }[] = []
  const left: { name: string; why: string }[] = []
  let current = text
  let isThere = known !== undefined
  for (const one of all) {
    const { name, keys, entry } = one
    if (one === known) continue
    const server = movable(entry, dialect)
    const why = reasonToStay(one, place, server, servers)
    if (why !== undefined) {
      left.push({ name, why })
      continue
    }
    const after = entryFor(launcher, configPath, entry)
    const others = all.map(({ name: other }) => other).filter((other) => other !== name)
    const by = isThere ? [] : [[freeName(others), dialect.entry(after)] as const]
    try {
      current = open(current).changed(keys.slice(0, -1), [{ key: name, by }])
    } catch (error) {
      if (!(error instanceof Uneditable)) throw error
      left.push({ name, why: error.message })
      continue
    }
    isThere = true
    servers[name] = server
    changed.push({ name, before: entry, after })
  }
  return { text: current, changed, left, config: `${JSON.stringify({ ...options, mcpServers: servers }, null, 2)}\n` }
}

/** Replaces an entry by the servers of the configuration. Those in the backup get their text from there. */
export function parted(
  text: string,
  layout: Layout,
  { keys }: Named,
  { config, backup }: { config: string; backup: string | undefined },
): string {
  const { dialect, open } = layout
  const place = keys.slice(0, -1)
  const old = backup === undefined ? undefined : open(backup)
  const { mcpServers } = objectIn(config)
  const here = new Set(entriesIn(text, { ...layout, places: [place] }).map(({ name }) => name))
  const name = keys.at(-1) as string
  here.delete(name)
  const servers = Object.entries(isObject(mcpServers) ? mcpServers : {}).filter(([one]) => !here.has(one))
  const by = servers.map(([one, server]) => [one, isObject(server) ? dialect.entry(asEntry(server)) : server] as const)
  const put = open(text).changed(place, [{ key: name, by }])
  return servers.reduce((current, [one]) => {
    return old ? open(current).restored([...place, one], old) : current
  }, put)
}

/** The configuration of an entry made by `joined`. */
export function togetherIn(entry: ClientEntry): { launcher: Launcher; config: string } | undefined {
  const found = launched(entry)
  const config = found?.flags.config
  return found && config?.endsWith(SUFFIX) ? { launcher: found.launcher, config } : undefined
}

/** Whether file and configuration equal the result of `joined` for the backup. */
export function isAsJoined(text: string, config: string, backup: string, joining: Joining): boolean {
  const again = joined(backup, { ...joining, config: undefined })
  return again.text === text && again.config === config
}

function isTogether(entry: ClientEntry, configPath: string): boolean {
  return togetherIn(entry)?.config === configPath
}

function reasonToStay(
  { name, keys }: Named,
  place: readonly string[] | undefined,
  server: object,
  servers: object,
): string | undefined {
  if (server instanceof Unfit) return server.message
  if (keys.slice(0, -1).join('\n') !== place?.join('\n')) return 'it is in another list of the file'
  return Object.hasOwn(servers, name) ? 'the configuration of the bridge has a server of this name' : undefined
}

/** An entry as a server of the bridge, or why it cannot be one. */
function movable(entry: ClientEntry, { reference }: Dialect): object {
  try {
    return serverIn(entry, reference)
  } catch (error) {
    if (error instanceof Unfit) return error
    throw error
  }
}

function asEntry({ passEnvironment: _, ...server }: ClientEntry): ClientEntry {
  return server
}

function entryFor({ command, args, flags = [] }: Launcher, configPath: string, { type }: ClientEntry): ClientEntry {
  return {
    ...(type === undefined ? {} : { type: 'stdio' }),
    command,
    args: [...args, '--listen', 'stdio', ...flags, '--config', configPath],
  }
}

function freeName(taken: readonly string[]): string {
  for (let n = 1; ; n++) {
    const name = n === 1 ? NAME : `${NAME}-${n}`
    if (!taken.includes(name)) return name
  }
}

function objectIn(text: string): ClientEntry {
  const { value } = readJson(text)
  return isObject(value) ? value : {}
}
