/** Applies flags to a configuration: each sets the option of its row. */
import { isObject } from '../config/value.js'
import { FLAGS, type Flag, type FlagName, type Flags } from './flags.js'
import { UsageError } from './usage-error.js'

/** Prefix of the paths of options per server. */
const OF_SERVER = /^mcpServers\.<name>\./

interface Change {
  flag: FlagName
  row: Flag
  keys: readonly string[]
  value: unknown
}

/** A configuration with the flags for the bridge applied. */
export function withFlags(options: Readonly<Record<string, unknown>>, flags: Flags): Record<string, unknown> {
  const changes = changesIn(flags).filter(({ row }) => !OF_SERVER.test(row.option as string))
  return changes.reduce(changed, { ...options })
}

/** The entry of a server with the flags for servers applied. Throws a UsageError. */
export function serverWithFlags(entry: Readonly<Record<string, unknown>>, flags: Flags): Record<string, unknown> {
  const changes = changesIn(flags).filter(({ row }) => OF_SERVER.test(row.option as string))
  for (const { flag, row } of changes) {
    if (row.servers === 'url' && !('url' in entry))
      throw new UsageError(`--${flag} is for servers with an address, but this one is a program`)
    if (row.servers === 'command' && !('command' in entry))
      throw new UsageError(`--${flag} is for servers that are programs, but this one has an address`)
  }
  return changes.reduce(changed, { ...entry })
}

/** The flag that set the value at a path of the configuration, if any. A switch sets nothing below its option. */
export function flagAt(path: string, flags: Flags): FlagName | undefined {
  const isAt = ({ option = '', value }: Flag) =>
    path === option || (value !== undefined && path.startsWith(`${option}.`))
  return changesIn(flags).find(({ row }) => isAt(row))?.flag
}

function changesIn(flags: Flags): Change[] {
  return (Object.entries(FLAGS) as [FlagName, Flag][]).flatMap(([flag, row]) => {
    const given = flags[flag]
    if (given === undefined || row.option === undefined) return []
    const value = row.value === undefined ? (row.to ?? true) : row.read ? row.read(given as never) : given
    return [{ flag, row, keys: row.option.replace(OF_SERVER, '').split('.'), value }]
  })
}

/** Sets a value under keys. An object is merged with an existing one. */
function changed(record: Record<string, unknown>, { keys, value }: Pick<Change, 'keys' | 'value'>) {
  const [key = '', ...below] = keys
  const before = record[key]
  const inside = isObject(before) ? before : {}
  const after: unknown =
    below.length > 0 ? changed(inside, { keys: below, value }) : isObject(value) ? { ...inside, ...value } : value
  return { ...record, [key]: after }
}
