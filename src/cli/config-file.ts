/** The configuration file that flags name: its servers, its options, and where in it something stands. */
import { resolve } from 'node:path'
import { ConfigError, type ConfigSources, OPTIONS } from '../config/settings.js'
import { isObject } from '../config/value.js'
import { homeFolder } from '../discovery/home.js'
import { type ConfigFile, FormatError, readConfigFile } from '../formats/read.js'
import { nearest } from '../nearest.js'
import { UsageError } from './usage-error.js'

/** Reads a configuration file in any of the known formats. Throws a ConfigError. */
export function readConfig(path: string, read: ConfigSources['read']): ConfigFile {
  let text: string
  try {
    text = read(path)
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause
    const message = `cannot read the file ${path}: ${cause instanceof Error ? cause.message : cause}`
    throw new ConfigError([{ path: '', message }])
  }
  try {
    return readConfigFile(text, { path: resolve(path), home: homeFolder(), options: OPTIONS })
  } catch (error) {
    if (error instanceof FormatError)
      throw new ConfigError([{ path: '', message: `the file ${path} is ${error.message}` }])
    throw error
  }
}

/** The servers with these names, or all without names. A server that has another name here is known by either. */
export function chosenServers(config: ConfigFile, names: readonly string[] | undefined): unknown {
  const { servers } = config
  if (names === undefined || !isObject(servers)) return servers
  return Object.fromEntries(
    names.map((name) => {
      const served = name in servers ? name : [...config.given].find(([, given]) => given === name)?.[0]
      if (served !== undefined) return [served, servers[served]]
      const known = Object.keys(servers)
      const meant = nearest(name, known)
      const hint = meant === undefined ? `it has ${known.join(', ')}` : `did you mean "${meant}"?`
      throw new UsageError(`the configuration file has no server "${name}": ${hint}`)
    }),
  )
}
