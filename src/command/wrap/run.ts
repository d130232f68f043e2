/** Runs `mcp-bridge wrap` and `mcp-bridge unwrap`. */
import { existsSync, rmSync } from 'node:fs'
import { resolve } from 'node:path'
import { homeFolder } from '../../base/net/home-folder.js'
import { readNamed } from '../../base/net/readable.js'
import { amongNames, nearest } from '../../base/texts/nearest.js'
import { printable } from '../../base/texts/printable.js'
import { ownCommand } from '../../base/texts/shell.js'
import { ConfigError } from '../../config/error.js'
import { FormatError, readJson } from '../../config/formats/document.js'
import { parseSettings } from '../../config/settings.js'
import { valueUnder } from '../../config/value.js'
import type { Machine } from '../../services/discovery/sources/usual-files.js'
import type { Program } from '../program.js'
import { UsageError } from '../usage-error.js'
import { CLIENTS, filesOf, layoutOf, type WrappableClient } from './clients.js'
import { type ClientEntry, INSPECTED, wrappedIn } from './entry.js'
import {
  type ClientFile,
  readBackup,
  readBeside,
  readClientFile,
  removeBackup,
  writeBackup,
  writeBeside,
  writeClientFile,
} from './file.js'
import { type Launcher, launcherOf } from './launcher.js'
import { entriesIn, type Layout, type Named, unwrapped, type WrapPlan, wrapped } from './plan.js'
import { configOf, isAsJoined, type Joining, joined, parted, togetherIn } from './together.js'
import { launcherInWords, planInWords } from './words.js'

export interface WrapAction {
  command: 'wrap' | 'unwrap'
  /** The client; undefined to list those of this machine. */
  client: string | undefined
  /** The server; undefined for all supported ones. */
  server: string | undefined
  /** A file other than the client's usual ones. */
  file: string | undefined
  dryRun: boolean
  /** One entry for all servers. */
  together: boolean
  /** The bridges serve their inspector to `mcp-bridge inspect` and `tail`. */
  inspect: boolean
}

const SHOW = 'mcp-bridge inspect shows the calls of all of them in the browser.'
/** Most characters of an argument in a message. */
const WORD = 200

/**
 * Changes the file of a client, or lists the clients of this machine. Throws a UsageError or a ConfigError; then
 * nothing is changed.
 */
export function runWrap(action: WrapAction, program: Program): void {
  const { command, server, dryRun } = action
  const { env, platform, output } = program
  const machine = { platform, env, home: homeFolder() ?? '', cwd: resolve('.') }
  if (action.client === undefined) {
    if (action.file !== undefined) throw new UsageError(`--file needs a client: ${idList()}`, command)
    output.out(listing(machine))
    return
  }
  if (action.together && server !== undefined)
    throw new UsageError('--together is for all servers of a client: leave out the name of the server', command)
  const client = clientNamed(action.client, command)
  const path = action.file ?? fileOf(client, machine, command)
  const file = readClientFile(path)
  const layout = layoutOf(client, machine)
  const entries = entriesOf(file, client, layout)
  const chosen = chosenFrom(entries, action, path)
  const launcher: Launcher | undefined =
    command === 'wrap' ? { ...launcherOf(program), flags: action.inspect ? INSPECTED : [] } : undefined
  const outcome = !launcher
    ? takeOut(file, chosen, layout)
    : action.together
      ? putTogether(file, entries, { layout, launcher }, program)
      : { plan: putBefore(file, chosen, layout, launcher) }
  const { plan } = outcome
  const { changed, left } = plan
  const [unfit] = left
  if (server !== undefined && unfit && changed.length === 0)
    throw new UsageError(`"${printable(server, WORD)}" in ${path} stays as it is: ${unfit.why}`, command)
  const done =
    changed.length === 0 || dryRun ? [] : written(client, { entries, layout }, file, outcome, launcher !== undefined)
  const started = launcher && changed.length > 0 ? [launcherInWords(launcher), ...(action.inspect ? [SHOW] : [])] : []
  output.out(`${[...planInWords(plan, path, dryRun), ...started, ...done].join('\n')}\n`)
}

/** The planned change of a file, and of the bridge configuration next to it. */
interface Outcome {
  plan: WrapPlan
  /** The text of the configuration; null to remove it. */
  config?: string | null
  /** Further messages. */
  words?: string[]
}

/** Puts the bridge before the servers of entries, also of those that start it with other flags. */
function putBefore(file: ClientFile, chosen: readonly Named[], layout: Layout, launcher: Launcher): WrapPlan {
  const before = chosen.filter(({ entry }) => wrappedIn(entry))
  if (before.length === 0) return wrapped(file.text, layout, chosen, launcher)
  const { text } = unwrapped(file.text, layout, before, readBackup(file))
  const keys = new Set(chosen.map((one) => one.keys.join('\n')))
  const now = entriesIn(text, layout).filter((one) => keys.has(one.keys.join('\n')))
  return wrapped(text, layout, now, launcher)
}

/** Puts all servers of a file behind one entry, including those already wrapped. */
function putTogether(
  file: ClientFile,
  entries: readonly Named[],
  where: Pick<Joining, 'layout' | 'launcher'>,
  { env }: Program,
): Outcome {
  const configPath = configOf(file.path)
  const apart = entries.filter(({ entry }) => wrappedIn(entry))
  const { text } = unwrapped(file.text, where.layout, apart, readBackup(file))
  const { config, ...plan } = joined(text, { ...where, configPath, config: readBeside(configPath) })
  parseSettings(readJson(config).value, { env, read: (path) => readNamed(path).toString('utf8'), missing: () => '' })
  return { plan, config, words: [`Servers that are together: ${configPath}`] }
}

/** Takes the bridge out of the entries. */
function takeOut(file: ClientFile, chosen: readonly Named[], layout: Layout): Outcome {
  const together = chosen.find(({ entry }) => togetherIn(entry))
  const found = together && togetherIn(together.entry)
  const backup = readBackup(file)
  const config = found && readBeside(found.config)
  const apart = chosen.filter((one) => one !== together)
  if (!together || !found || config === undefined) return { plan: unwrapped(file.text, layout, apart, backup) }
  const joining = { layout, launcher: found.launcher, configPath: found.config, config }
  const isSame = backup !== undefined && isAsJoined(file.text, config, backup, joining)
  if (isSame) {
    const changed = entriesIn(backup, layout).filter(({ name }) => !textHas(file.text, layout, name))
    const names = changed.map(({ name, entry }) => ({ name, before: together.entry, after: entry }))
    return { plan: { text: backup, changed: names, left: [] }, config: null }
  }
  const plan = unwrapped(file.text, layout, apart, backup)
  const text = parted(plan.text, layout, together, { config, backup })
  const was = new Set(entriesIn(file.text, layout).map(({ name }) => name))
  const back = entriesIn(text, layout).filter(({ name }) => !was.has(name))
  const changed = [...plan.changed, ...back.map(({ name, entry }) => ({ name, before: together.entry, after: entry }))]
  return { plan: { ...plan, text, changed }, words: [`Their settings stay in ${found.config}`] }
}

function textHas(text: string, layout: Layout, name: string): boolean {
  return entriesIn(text, layout).some((one) => one.name === name)
}

/** Carries out the plan. Returns the report. */
function written(
  client: WrappableClient,
  all: { entries: readonly Named[]; layout: Layout },
  file: ClientFile,
  { plan, config, words = [] }: Outcome,
  isWrap: boolean,
): string[] {
  const again = `${client.again}, so that it reads the file.`
  const old = readBackup(file)
  if (isWrap) {
    const backup = writeBackup(file, withoutBridge(file, all, old))
    if (config) writeBeside(configOf(file.path), config, file)
    writeClientFile(file, plan.text)
    return [...words, `Backup: ${backup}`, again]
  }
  writeClientFile(file, plan.text)
  if (config === null) rmSync(configOf(file.path), { force: true })
  if (plan.text !== old) return [...words, again]
  removeBackup(file)
  return ['The file is as it was before mcp-bridge wrap, and its backup is removed.', ...words, again]
}

/** The file with all entries unwrapped, including those of earlier runs. */
function withoutBridge(
  file: ClientFile,
  { entries, layout }: { entries: readonly Named[]; layout: Layout },
  old: string | undefined,
): string {
  const apart = entries.filter(({ entry }) => wrappedIn(entry))
  const { text } = unwrapped(file.text, layout, apart, old)
  const together = entries.find(({ entry }) => togetherIn(entry))
  const config = together && readBeside(configOf(file.path))
  return together && config !== undefined ? parted(text, layout, together, { config, backup: old }) : text
}

/** The entries to change. Throws a UsageError if the named server does not exist. */
function chosenFrom(entries: readonly Named[], { command, server, inspect }: WrapAction, path: string): Named[] {
  const named = entries.filter(({ name }) => server === undefined || name === server)
  if (server !== undefined && named.length === 0) {
    const names = entries.map(({ name }) => name)
    throw new UsageError(`${path} has no server "${printable(server, WORD)}": ${amongNames(server, names)}`, command)
  }
  // Servers that are wrapped already get the flag.
  const isForInspector = ({ entry }: Named) => inspect && wrappedIn(entry)?.flags.inspect === undefined
  return named.filter(
    (one) =>
      startsIn(one.entry) === (command === 'unwrap') || (wrappedIn(one.entry) !== undefined && isForInspector(one)),
  )
}

/** Whether an entry was made by wrap. */
function startsIn(entry: ClientEntry): boolean {
  return wrappedIn(entry) !== undefined || togetherIn(entry) !== undefined
}

/** The entries of a file. Throws a ConfigError if it is invalid, or not a file of this client. */
function entriesOf({ path, text }: ClientFile, client: WrappableClient, layout: Layout): Named[] {
  const wrong = (message: string) =>
    new ConfigError([{ path: '', message: `${path} ${message}. Nothing was changed.` }])
  try {
    const { places, open } = layout
    const { value } = open(text)
    if (places.some((keys) => valueUnder(value, keys.join('.')) !== undefined)) return entriesIn(text, layout)
    throw wrong(`has no "${places[0]?.join('.')}", so it has no servers, or is not a file of ${client.program}`)
  } catch (error) {
    if (error instanceof FormatError) throw wrong(`is ${error.message}`)
    throw error
  }
}

/** The first existing file of the user. Throws a UsageError if there is none. */
function fileOf(client: WrappableClient, machine: Machine, command: string): string {
  const files = filesOf(client, machine)
  const own = files.filter(({ of }) => of === 'user').map(({ path }) => path)
  const found = own.find((path) => existsSync(path))
  if (found !== undefined) return found
  const project = files.find(({ of, path }) => of === 'project' && existsSync(path))
  const hint = project ? `for the file of this project, add --file ${project.path}` : 'name its file with --file <file>'
  throw new UsageError(`${client.program} has no file at ${own.join(' or ')}: ${hint}`, command)
}

function clientNamed(word: string, command: string): WrappableClient {
  const client = CLIENTS.find(({ id, program }) => plain(id) === plain(word) || plain(program) === plain(word))
  if (client) return client
  const ids = CLIENTS.map(({ id }) => id)
  const meant = clientsLike(word)
  const hint = meant.length === 0 ? '' : `did you mean ${meant.join(' or ')}? `
  throw new UsageError(
    `"${printable(word, WORD)}" is not a client that mcp-bridge knows: ${hint}${hint === '' ? 'there' : 'There'} are ${ids.join(', ')}`,
    command,
  )
}

/** The clients that a word probably means: one of which it is a part, as "claude" and "code", or a misspelt one. */
function clientsLike(word: string): string[] {
  const part = plain(word)
  const parts = CLIENTS.filter(({ id, program }) =>
    [id, program].some((name) => plain(name).includes(part) || (part !== '' && part.startsWith(plain(name)))),
  ).map(({ id }) => id)
  if (part !== '' && parts.length > 0) return parts
  const near = nearest(
    word,
    CLIENTS.map(({ id }) => id),
  )
  return near === undefined ? [] : [near]
}

function plain(word: string): string {
  return word.toLowerCase().replace(/[^a-z0-9]/g, '')
}

function idList(): string {
  return CLIENTS.map(({ id }) => id).join(', ')
}

/** Lists the clients of this machine and their files. */
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
  const [one] = CLIENTS.filter((client) => filesOf(client, machine).some(({ path }) => existsSync(path)))
  const next = `${ownCommand('wrap', one?.id ?? '')} puts the bridge in front of its servers.`
  return `${[...found, '', next].join('\n')}\n`
}

function countIn(path: string, client: WrappableClient, machine: Machine): string {
  try {
    const entries = entriesIn(readClientFile(path).text, layoutOf(client, machine))
    const done = entries.filter(({ entry }) => startsIn(entry)).length
    return `${entries.length === 1 ? '1 server' : `${entries.length} servers`}, ${done} behind the bridge`
  } catch (error) {
    if (error instanceof FormatError || error instanceof ConfigError) return error.message
    throw error
  }
}
