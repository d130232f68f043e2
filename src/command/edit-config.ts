/** `mcp-bridge add` and `mcp-bridge remove`: put a server into a configuration file, and take it out. */
import { existsSync, writeFileSync } from 'node:fs'
import { amongNames } from '../base/texts/nearest.js'
import { printable } from '../base/texts/printable.js'
import { FormatError } from '../config/formats/config-file.js'
import { withMember, withoutMember } from '../config/formats/members.js'
import { ConfigError, type ConfigSources } from '../config/settings.js'
import { isObject } from '../config/value.js'
import { readConfig } from './config-file.js'
import { type Program, sourcesOf } from './program.js'
import { checked } from './settings.js'
import { readClientFile, writeClientFile } from './wrap/file.js'

/** A change of a file: an entry for a name, or none. */
export interface EditAction {
  file: string
  name: string
  entry: Readonly<Record<string, unknown>> | undefined
}

const SERVERS = 'mcpServers'

/** Changes the file, and says so. */
export function runEdit(action: EditAction, program: Pick<Program, 'env' | 'output'>): void {
  editConfig(action, sourcesOf(program))
  const { file, name, entry } = action
  program.output.out(`${entry ? `"${name}" is in` : `Removed "${name}" from`} ${printable(file, 200)}\n`)
}

/** Changes the file, if the configuration is valid afterwards. Throws a ConfigError; then nothing is changed. */
export function editConfig({ file, name, entry }: EditAction, sources: ConfigSources): void {
  const before = existsSync(file) ? readClientFile(file) : undefined
  if (!before && !entry) throw wrong(`there is no file ${file}`)
  const text = changedText(file, before?.text ?? '{}\n', { name, entry })
  const read = (path: string) => (path === file ? text : sources.read(path))
  // Variables and files of other entries may be those of another machine.
  checked({ config: file, offline: true }, { ...sources, read })
  if (before) writeClientFile(before, text)
  else writeFileSync(file, text, { flag: 'wx', mode: 0o600 })
}

/** The text of a file with a server, or without one. Throws a ConfigError. */
export function changedText(file: string, text: string, { name, entry }: Pick<EditAction, 'name' | 'entry'>): string {
  if (/\.toml$/i.test(file)) throw wrong(`${file} is TOML: only JSON files are changed`)
  const { program, servers } = /\S/.test(text) ? readConfig(file, () => text) : { program: undefined, servers: {} }
  const inFile = isObject(servers) ? servers : {}
  if (program !== undefined) throw wrong(`${file} is a file of ${program}: change it with that program`)
  if (!entry && !(name in inFile))
    throw wrong(`${file} has no server "${name}": ${amongNames(name, Object.keys(inFile))}`)
  try {
    return entry
      ? withMember(withoutMember(text, SERVERS, name), SERVERS, name, entry)
      : withoutMember(text, SERVERS, name)
  } catch (error) {
    throw error instanceof FormatError ? wrong(`${file} is ${error.message}`) : error
  }
}

function wrong(message: string): ConfigError {
  return new ConfigError([{ path: '', message }])
}
