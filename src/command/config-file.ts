/** The configuration file from the flags: its servers, its options, and the positions of values. */
import { resolve } from 'node:path'
import { homeFolder } from '../base/net/home-folder.js'
import { amongNames } from '../base/texts/nearest.js'
import { type ConfigFile, FormatError, readConfigFile } from '../config/formats/config-file.js'
import { ALL, ConfigError, type ConfigSources, meantBy, OPTIONS, withoutServers } from '../config/settings.js'
import { isObject } from '../config/value.js'
import type { Flags } from './flags.js'
import { UsageError } from './usage-error.js'

/** Reads a configuration file in any of the known formats. Throws a ConfigError. */
export function readConfig(path: string, read: ConfigSources['read']): ConfigFile {
  let text: string
  try {
    text = read(path)
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause
    throw new ConfigError([{ path: '', message: `cannot read the file ${shown(path)}: ${whyUnreadable(cause, path)}` }])
  }
  try {
    return readConfigFile(text, { path: resolve(path), home: homeFolder(), options: OPTIONS, meantBy })
  } catch (error) {
    if (!(error instanceof FormatError)) throw error
    const [first, ...more] = error.problems
    const issues = more.map((message) => ({ path: '', message }))
    throw new ConfigError([{ path: '', message: `the file ${path} is ${first}` }, ...issues])
  }
}

/** The part of a file that flags select: servers, and their groups. Throws a UsageError. */
export function chosen(
  config: ConfigFile,
  { server, group }: Pick<Flags, 'server' | 'group'>,
): { servers: unknown; groups: unknown } {
  const { groups } = config.options
  if (group !== undefined) {
    if (server !== undefined) throw new UsageError('--group and --server cannot be combined: give one of them')
    return chosenGroup(config, group)
  }
  const servers = chosenServers(config, server)
  if (server === undefined || !isObject(servers)) return { servers, groups }
  // A single server needs no group.
  if (server.length === 1) return { servers, groups: false }
  const isLeftOut = (name: string) => isObject(config.servers) && name in config.servers && !(name in servers)
  return { servers, groups: withoutServers(groups, isLeftOut) }
}

function chosenGroup(config: ConfigFile, name: string): { servers: unknown; groups: unknown } {
  const { servers, options } = config
  const { groups } = options
  if (groups === undefined && name === ALL) return { servers, groups }
  if (!isObject(groups) || !Object.hasOwn(groups, name)) {
    const known = isObject(groups) ? Object.keys(groups) : groups === undefined ? [ALL] : []
    throw new UsageError(`the configuration file has no group "${name}": ${amongNames(name, known)}`)
  }
  const entry = groups[name]
  const named = isObject(entry) ? entry['servers'] : undefined
  const all = isObject(servers) && Array.isArray(named) ? Object.entries(servers) : undefined
  const own = all?.filter(([server]) => (named as unknown[]).includes(server))
  return { servers: own ? Object.fromEntries(own) : servers, groups: { [name]: entry } }
}

/** Why a file cannot be read, and what to do. */
function whyUnreadable(cause: unknown, path: string): string {
  const { code, message } = cause as NodeJS.ErrnoException
  if (/^\s*\{/.test(path)) return '--config needs the name of a file, not its text: write the text into a file'
  if (/^[a-z]+:\/\//i.test(path))
    return '--config needs a file, not an address: give the address of a server without --config'
  if (code === 'ENOENT') return 'it does not exist: check the name, and the folder in which mcp-bridge is started'
  if (code === 'EISDIR') return 'it is a folder: name the file in it'
  if (code === 'EACCES' || code === 'EPERM') return `this user may not read it (${code})`
  return message
}

function shown(path: string): string {
  return path.length > 200 || /^\s*\{/.test(path) ? 'that --config names' : path
}

/** The servers with these names, or all without names. A renamed server is found by either name. */
function chosenServers(config: ConfigFile, names: readonly string[] | undefined): unknown {
  const { servers } = config
  if (names === undefined || !isObject(servers)) return servers
  return Object.fromEntries(
    names.map((name) => {
      const served = name in servers ? name : [...config.given].find(([, given]) => given === name)?.[0]
      if (served !== undefined) return [served, servers[served]]
      const known = Object.keys(servers)
      const several = name.split(',').map((one) => one.trim())
      const hint =
        several.length > 1 && several.every((one) => known.includes(one))
          ? `write ${several.map((one) => `--server ${one}`).join(' ')}`
          : amongNames(name, known)
      throw new UsageError(`the configuration file has no server "${name}": ${hint}`)
    }),
  )
}
