/** What `mcp-bridge wrap` and `mcp-bridge unwrap` do. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { ConfigError } from '../../config/error.js'
import { valueUnder } from '../../config/value.js'
import { homeFolder } from '../../discovery/home.js'
import type { Machine } from '../../discovery/sources/usual-files.js'
import { FormatError, readJson } from '../../formats/document.js'
import { nearest } from '../../nearest.js'
import { printable } from '../../printable.js'
import type { Program } from '../program.js'
import { UsageError } from '../usage-error.js'
import { CLIENTS, type Client, filesOf } from './clients.js'
import { wrappedIn } from './entry.js'
import { type ClientFile, readBackup, readClientFile, removeBackup, writeBackup, writeClientFile } from './file.js'
import { launcherOf } from './launcher.js'
import { entriesIn, type Named, type Plan, unwrapped, wrapped } from './plan.js'
import { launcherInWords, planInWords } from './words.js'

/** What the command line asks for. */
export interface WrapAction {
  command: 'wrap' | 'unwrap'
  /** The client; undefined to list those of this machine. */
  client: string | undefined
  /** The server; undefined for all that can be changed. */
  server: string | undefined
  /** A file elsewhere. */
  file: string | undefined
  dryRun: boolean
}

/** Characters of a word of the command line in a message. */
const WORD = 200

/** Changes the file of a client, or lists the clients of this machine. Throws a UsageError or a ConfigError; then nothing is changed. */
export function runWrap(action: WrapAction, program: Program): void {
  const { command, server, dryRun } = action
  const { env, platform, output } = program
  const machine = { platform, env, home: homeFolder() ?? '', cwd: resolve('.') }
  if (action.client === undefined) {
    if (action.file !== undefined) throw new UsageError(`--file needs a client: ${idList()}`, command)
    output.out(listing(machine))
    return
  }
  const client = clientNamed(action.client, command)
  const path = action.file ?? fileOf(client, machine, command)
  const file = readClientFile(path)
  const entries = entriesOf(file, client, machine)
  const chosen = chosenFrom(entries, action, path)
  const launcher = command === 'wrap' ? launcherOf(program) : undefined
  const plan = launcher ? wrapped(file.text, chosen, launcher) : unwrapped(file.text, chosen, readBackup(file))
  const { changed, left } = plan
  const [unfit] = left
  if (server !== undefined && unfit && changed.length === 0)
    throw new UsageError(`"${printable(server, WORD)}" in ${path} stays as it is: ${unfit.why}`, command)
  const done = changed.length === 0 || dryRun ? [] : written(client, entries, file, plan, launcher !== undefined)
  const started = launcher && changed.length > 0 ? [launcherInWords(launcher)] : []
  output.out(`${[...planInWords(plan, path, dryRun), ...started, ...done].join('\n')}\n`)
}

/** Writes what is planned. Gives lines that say what was done. */
function written(client: Client, entries: readonly Named[], file: ClientFile, plan: Plan, isWrap: boolean): string[] {
  const again = `${client.again}, so that it reads the file.`
  const old = readBackup(file)
  if (isWrap) {
    // The backup has all entries as they are without the bridge, also those that were changed before.
    const before = entries.filter(({ entry }) => wrappedIn(entry))
    const backup = writeBackup(file, unwrapped(file.text, before, old).text)
    writeClientFile(file, plan.text)
    return [`Backup: ${backup}`, again]
  }
  writeClientFile(file, plan.text)
  if (plan.text !== old) return [again]
  removeBackup(file)
  return ['The file is as it was before mcp-bridge wrap, and its backup is removed.', again]
}

/** The entries that are to be changed. Throws a UsageError if the server that is named is not there. */
function chosenFrom(entries: readonly Named[], { command, server }: WrapAction, path: string): Named[] {
  const named = entries.filter(({ name }) => server === undefined || name === server)
  if (server !== undefined && named.length === 0) {
    const names = entries.map(({ name }) => name)
    const meant = nearest(server, names)
    const all = names.length === 0 ? 'it has none' : `it has ${names.join(', ')}`
    const hint = meant === undefined ? all : `did you mean "${meant}"?`
    throw new UsageError(`${path} has no server "${printable(server, WORD)}": ${hint}`, command)
  }
  return named.filter(({ entry }) => (wrappedIn(entry) === undefined) === (command === 'wrap'))
}

/** The entries of a file. Throws a ConfigError if it is damaged, or not a file of this client. */
function entriesOf({ path, text }: ClientFile, client: Client, machine: Machine): Named[] {
  const wrong = (message: string) =>
    new ConfigError([{ path: '', message: `${path} ${message}. Nothing was changed.` }])
  try {
    const { value } = readJson(text)
    const places = client.servers(machine)
    if (places.some((keys) => valueUnder(value, keys.join('.')) !== undefined)) return entriesIn(text, places)
    throw wrong(`has no "${places[0]?.join('.')}", so it has no servers, or is not a file of ${client.program}`)
  } catch (error) {
    if (error instanceof FormatError) throw wrong(`is ${error.message}`)
    throw error
  }
}

/** The first file of the user that exists. Throws a UsageError if there is none. */
function fileOf(client: Client, machine: Machine, command: string): string {
  const files = filesOf(client, machine)
  const own = files.filter(({ of }) => of === 'user').map(({ path }) => path)
  const found = own.find((path) => existsSync(path))
  if (found !== undefined) return found
  const project = files.find(({ of, path }) => of === 'project' && existsSync(path))
  const hint = project ? `for the file of this project, add --file ${project.path}` : 'name its file with --file <file>'
  throw new UsageError(`${client.program} has no file at ${own.join(' or ')}: ${hint}`, command)
}

function clientNamed(word: string, command: string): Client {
  const client = CLIENTS.find(({ id }) => id === word.toLowerCase())
  if (client) return client
  const meant = nearest(
    word,
    CLIENTS.map(({ id }) => id),
  )
  const hint = meant === undefined ? `there are ${idList()}` : `did you mean ${meant}?`
  throw new UsageError(`"${printable(word, WORD)}" is no client that mcp-bridge knows: ${hint}`, command)
}

function idList(): string {
  return CLIENTS.map(({ id }) => id).join(', ')
}

/** The clients of this machine, and their files. */
function listing(machine: Machine): string {
  const found = CLIENTS.flatMap((client) =>
    filesOf(client, machine)
      .filter(({ path }) => existsSync(path))
      .flatMap(({ of, path }) => [
        `${client.id} (${client.program})`,
        `  ${path}${of === 'project' ? '  (of this project: wrap it with --file)' : ''}`,
        `  ${countIn(path, client, machine)}`,
      ]),
  )
  if (found.length === 0) return `No client was found on this machine. mcp-bridge knows ${idList()}.\n`
  const next = 'mcp-bridge wrap <client> [<server>] puts the bridge before their servers.'
  return `${[...found, '', next].join('\n')}\n`
}

function countIn(path: string, client: Client, machine: Machine): string {
  try {
    const entries = entriesIn(readClientFile(path).text, client.servers(machine))
    const done = entries.filter(({ entry }) => wrappedIn(entry)).length
    return `${entries.length === 1 ? '1 server' : `${entries.length} servers`}, ${done} behind the bridge`
  } catch (error) {
    if (error instanceof FormatError || error instanceof ConfigError) return error.message
    throw error
  }
}
