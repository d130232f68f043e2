/**
 * Reads a configuration file of any known program: its servers in the format of `mcpServers`, and what was ignored. No side
 * effects.
 */
import { nearest } from '../../base/texts/nearest.js'
import { isObject, valueAt } from '../value.js'
import { type Document, type Position, readJson, readToml } from './document.js'
import { deep, type Entry, originalKey, type ProgramFormat, programOf, translated, withoutEmpty } from './programs.js'
import { servedNames } from './served-names.js'

export { FormatError } from './document.js'

/** The file, and its environment. */
export interface ReadOptions {
  /** The path of the file, which identifies some programs and the project folder. */
  path: string
  /** The home folder of the user, for `${userHome}`. */
  home?: string | undefined
  /** Names of the options of mcp-bridge, which may be next to the servers. */
  options: readonly string[]
  /** The option that an unknown key probably means; the nearest one by default. */
  meantBy?(key: string, options: readonly string[]): string | undefined
}

/** A part of the file that was ignored or changed. */
interface Note extends Partial<Position> {
  /** As in `servers.github.envFile`. */
  path: string
  message: string
}

/** A configuration file in the format of mcp-bridge. */
export interface ConfigFile {
  /** The program of the format; undefined for plain `mcpServers`. */
  program: string | undefined
  /** Entries in the format of `mcpServers`, by names that can be part of a path; undefined if the file has none. */
  servers: Readonly<Record<string, unknown>> | undefined
  /** The original names, by those names. */
  given: ReadonlyMap<string, string>
  /** Options of mcp-bridge next to the servers. */
  options: Entry
  notes: readonly Note[]
  /** The original path and position of a value, by its translated path: `mcpServers.<name>.url`. */
  place(path: string): { path: string } & Position
}

/** More settings than this are counted, not listed. */
const LISTED = 5
/** A file in such a folder belongs to the project in the parent folder. */
const PROJECT = /^(.*)[\\/](?:\.mcp\.json|opencode\.jsonc?|\.(?:vscode|cursor|gemini|codex|zed)[\\/][\w.-]+)$/s

/** Reads the text of a file. Throws a FormatError if it is neither JSON nor TOML. */
export function readConfigFile(text: string, options: ReadOptions): ConfigFile {
  const { path } = options
  const document = /\.toml$/i.test(path) ? readToml(text) : readJson(text)
  const file = isObject(document.value) ? document.value : undefined
  const program = file && programOf(file, path)
  if (!file || !program) {
    const nothing = { program: undefined, servers: undefined, given: new Map<string, string>(), notes: [] }
    return { ...nothing, options: file ?? {}, place: (at) => placeIn(document, keysOf(document.value, at)) }
  }
  const { own, notes } = beside(file, program, options)
  const named = valueAt(file, program.servers)
  const read = isObject(named) ? readServers(named, program, options) : undefined
  return {
    program: program.name === 'mcpServers' ? undefined : program.name,
    // Validation refuses entries that are not objects.
    servers: read ? read.servers : (named as ConfigFile['servers']),
    given: read?.given ?? new Map(),
    options: own,
    notes: [...notes, ...(read?.notes ?? []), ...repeated(document, program)].map((note) => located(note, document)),
    place: (at) => placeIn(document, originalKeys(at, file, program, read?.given ?? new Map())),
  }
}

/** Duplicate keys: servers, members of their entries, and members next to the servers. */
function repeated(document: Document, { servers }: ProgramFormat): Note[] {
  const named = valueAt(document.value, servers)
  const inside = (keys: readonly string[], message: string): Note[] =>
    document.repeated(keys).map(([key, position]) => ({ path: [...keys, key].join('.'), message, ...position }))
  const last = 'appears twice: the last one counts'
  return [
    ...inside([], last),
    ...inside(servers, 'is the name of two servers: the last one counts, and the other one needs another name'),
    ...Object.keys(isObject(named) ? named : {}).flatMap((name) => inside([...servers, name], last)),
  ]
}

function located(note: Note, document: Document): Note {
  if (note.path === '' || note.line !== undefined) return note
  return { ...note, ...document.locate(keysOf(document.value, note.path)) }
}

function readServers(named: Entry, program: ProgramFormat, options: ReadOptions) {
  const notes: Note[] = []
  const names = servedNames(Object.keys(named))
  const servers: Record<string, unknown> = {}
  const given = new Map<string, string>()
  for (const [name, entry] of Object.entries(named)) {
    const path = [...program.servers, name].join('.')
    const served = names.get(name) as string
    if (isObject(entry) && !program.mayHaveOptions && !isServer(withoutEmpty(entry))) {
      notes.push({ path, message: 'has neither a command nor an address, and is left out' })
      continue
    }
    if (served !== name) notes.push({ path, message: `is called ${served} here, because names are part of addresses` })
    given.set(served, name)
    servers[served] = isObject(entry) ? deep(translated(entry, program), places(options)) : entry
  }
  return { servers, given, notes }
}

function isServer(entry: Entry): boolean {
  return ['command', 'url', 'serverUrl', 'httpUrl'].some((key) => key in entry)
}

/** The members next to the servers: options of mcp-bridge, or settings of the program, which are ignored. */
function beside(
  file: Entry,
  program: ProgramFormat,
  { options, meantBy = nearest }: ReadOptions,
): { own: Entry; notes: Note[] } {
  const [first] = program.servers
  const others = Object.keys(file).filter((key) => key !== first && key !== '$schema')
  const ours = program.mayHaveOptions ? others.filter((key) => options.includes(key)) : []
  const foreign = others.filter((key) => !ours.includes(key))
  // In a file for mcp-bridge every other key is a mistake; in a file of another program, only a key similar to an
  // option may be one.
  const misspelt = program.mayHaveOptions
    ? foreign.filter((key) => ours.length > 0 || nearest(key, options) !== undefined)
    : []
  const ignored = foreign.filter((key) => !misspelt.includes(key) || key === 'inputs')
  const kept = [...ours, ...misspelt.filter((key) => key !== 'inputs')]
  const message = (key: string) => {
    const meant = program.mayHaveOptions ? meantBy(key, options) : undefined
    return `is not an option of mcp-bridge, and is left out${meant === undefined ? '' : `: did you mean "${meant}"?`}`
  }
  const notes =
    ignored.length > LISTED
      ? [{ path: '', message: `${ignored.length} settings of ${program.name} are left out` }]
      : ignored.map((path) => ({ path, message: path === 'inputs' ? INPUTS : message(path) }))
  return { own: Object.fromEntries(kept.map((key) => [key, file[key]])), notes }
}

const INPUTS = 'are values that VS Code asks a person for, and are left out: use environment variables'

/** Replaces placeholders for folders of this machine. Those for a project stay if the file does not belong to one. */
function places({ path, home }: ReadOptions): (text: string) => string {
  const project = PROJECT.exec(path)?.[1]
  const separator = path.includes('\\') ? '\\' : '/'
  const known: Readonly<Record<string, string | undefined>> = {
    userHome: home,
    workspaceFolder: project,
    workspaceFolderBasename: project?.split(/[\\/]/).at(-1),
    pathSeparator: separator,
    '/': separator,
  }
  return (text) =>
    text.replace(
      /\$\{(userHome|workspaceFolder(?:Basename)?|pathSeparator|\/)\}/g,
      (all, name: string) => known[name] ?? all,
    )
}

/** The keys in a dotted path. A key may contain dots, too. */
function keysOf(value: unknown, path: string): string[] {
  if (path === '') return []
  const candidates = isObject(value) ? Object.keys(value) : []
  const key = candidates
    .filter((one) => path === one || path.startsWith(`${one}.`))
    .toSorted((a, b) => b.length - a.length)[0]
  const [first = path] = path.split('.')
  const taken = key ?? first
  const next = Array.isArray(value) ? value[Number(taken)] : isObject(value) ? value[taken] : undefined
  return [taken, ...keysOf(next, path.slice(taken.length + 1))]
}

/** The original keys for a translated path. */
function originalKeys(path: string, file: Entry, program: ProgramFormat, given: ReadonlyMap<string, string>): string[] {
  const [, below] = /^mcpServers(?:\.(.*))?$/s.exec(path) ?? []
  if (below === undefined) return path === 'mcpServers' ? [...program.servers] : keysOf(file, path)
  const [served] = [...given.keys()]
    .filter((name) => below === name || below.startsWith(`${name}.`))
    .toSorted((a, b) => b.length - a.length)
  if (served === undefined) return [...program.servers]
  const start = [...program.servers, given.get(served) as string]
  const entry = valueAt(file, start)
  const rest = below.slice(served.length + 1)
  if (rest === '' || !isObject(entry)) return start
  const [key = '', ...further] = rest.split('.')
  const original = originalKey(entry, key)
  return [...start, original, ...keysOf(entry[original], further.join('.'))]
}

function placeIn(document: Document, keys: readonly string[]): { path: string } & Position {
  return { path: keys.join('.'), ...document.locate(keys) }
}
