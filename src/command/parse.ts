/** Turns the command line into a command with its settings. */

import { readNamed } from '../base/net/readable.js'
import { namesInWords } from '../base/texts/nearest.js'
import { printable } from '../base/texts/printable.js'
import { quoted } from '../base/texts/shell.js'
import { addressHint } from '../config/address-hint.js'
import type { CopyFormName } from '../config/copy-forms.js'
import { utf8Text } from '../config/formats/utf8.js'
import { entryName } from '../config/schema/values.js'
import { ConfigError, type ConfigSources, type Issue, type Settings } from '../config/settings.js'
import { type Arguments, CONFIG_FILE, commandsFor, IN_ONE_WORD, isForPeople, readArguments } from './arguments.js'
import { type CommandName, rowOf } from './commands.js'
import { readConfig } from './config-file.js'
import type { EditAction } from './edit-config.js'
import type { BundleAction } from './extension/run.js'
import type { Flags } from './flags.js'
import type { InspectAction } from './inspect.js'
import { parseTrust, type TrustAction } from './parse-trust.js'
import {
  type Checked,
  type Configured,
  checked,
  configured,
  type Described,
  demoSettings,
  entryOf,
  type Layered,
  placesIn,
} from './settings.js'
import { type CompletedShell, isShell, SHELLS } from './shells.js'
import type { Load } from './size.js'
import type { StatusAction } from './status-targets.js'
import { UsageError } from './usage-error.js'
import type { WrapAction } from './wrap/run.js'
import { checkWritable } from './writable.js'

export type Command =
  | ({ kind: 'run'; files: readonly string[]; record?: string | undefined } & Configured)
  | { kind: 'probe'; settings: Settings; json: boolean }
  | { kind: 'replay'; file: string; settings: Settings; json: boolean }
  | ({ kind: 'check'; file: string; json: boolean } & Checked)
  /** What is wrong with a file, for programs: for people it is an error. */
  | { kind: 'invalid'; file: string; issues: readonly Issue[] }
  | {
      kind: 'tail'
      target: string | undefined
      filter: string
      json: boolean
      both: boolean
      as: CopyFormName | undefined
    }
  | { kind: 'status'; action: StatusAction }
  | { kind: 'inspect'; action: InspectAction }
  | { kind: 'bundle'; action: BundleAction }
  | { kind: 'completion'; shell: CompletedShell }
  | { kind: 'size'; load: Load; json: boolean }
  | { kind: 'demo'; settings: Settings }
  | { kind: 'demo server'; era: 'legacy' | 'modern' }
  | { kind: 'discover'; settings: Settings; json: boolean }
  | { kind: 'trust'; action: TrustAction; trustStore: string | undefined }
  | { kind: 'edit'; action: EditAction }
  | { kind: 'login'; settings: Settings }
  | { kind: 'logout'; settings: Settings | undefined; store: string | undefined }
  | { kind: 'auth status'; settings: Settings | undefined; store: string | undefined; json: boolean }
  | { kind: 'wrap'; action: WrapAction }
  /** Help for these commands, or the short help of the program. */
  | { kind: 'help'; commands: readonly CommandName[] | undefined }
  | { kind: 'version' }

/** An address without its scheme. Fields of a filter have no dot. */
const HOST_AND_PORT = /^(?:localhost|[\w-]+(?:\.[\w-]+)+|\[[\da-f:]+\]):\d+(?![^/#])/i

/** The address or the process id of a bridge. */
const IS_BRIDGE = /^(?:https?:\/\/|unix:|\d+$)/

/** A scheme with a mistake. No field of a filter begins so. */
const MISTYPED = /^h?t{1,3}ps?:|^h?t{1,2}p?s?:\/\//i

/** The error about a word in place of the address of a bridge. */
function notABridge(word: string, command: CommandName): UsageError {
  return new UsageError(`${JSON.stringify(word)} is not an address${bridgeHint(word, command)}`, command)
}

function bridgeHint(word: string, command: CommandName): string {
  if (HOST_AND_PORT.test(word)) return `: begin it with http://, as in http://${word}`
  if (CONFIG_FILE.test(word)) return `: for a configuration file, write mcp-bridge ${command} --config ${quoted(word)}`
  if (word.startsWith('/')) return `: for a socket, write mcp-bridge ${command} ${quoted(`unix:${word}`)}`
  return addressHint(word) || ': give that of a bridge, as http://127.0.0.1:8080, or the process id of one on stdio'
}

/** Whether errors are for people rather than JSON for a log, judged from possibly invalid arguments. */
export function speaksToPeople(argv: readonly string[], terminal: boolean): boolean {
  if (isForPeople(argv)) return true
  const dashes = argv.indexOf('--')
  const own = dashes < 0 ? argv : argv.slice(0, dashes)
  const at = own.findLastIndex((word) => word.startsWith('--log-format'))
  const format = at < 0 ? undefined : (own[at]?.split('=')[1] ?? own[at + 1])
  return format === 'pretty' || (format !== 'json' && terminal)
}

/** Parses arguments, and reads the files they name. Throws a UsageError or a ConfigError. */
export function parseCommand(argv: readonly string[], env: ConfigSources['env'], changes?: Layered): Command {
  const given = readArguments(argv, env)
  const { command, words, flags } = given
  if (command === 'help') return { kind: 'help', commands: words.length === 0 ? undefined : commandsFor(words) }
  if (flags.version) return { kind: 'version' }
  checkWords(given)
  const files = new Set<string>()
  const read = (path: string) => {
    files.add(path)
    const text = changes?.texts?.get(path)
    if (text !== undefined) return text
    checkWritable(path)
    return utf8Text(readNamed(path))
  }
  const sources = { env, read, ...(changes && { servers: changes.servers }) }
  const json = flags.json ?? false
  switch (command) {
    case 'serve':
      return { kind: 'run', ...configured(flags, sources, described(given)), files: [...files], record: flags.record }
    case 'probe':
      return { kind: 'probe', settings: asked(given, sources).settings, json }
    case 'bundle': {
      const { output } = flags
      if (output === undefined) throw new UsageError('bundle needs a file to write: -o server.mcpb', command)
      const { settings, input } = asked(given, sources)
      return { kind: 'bundle', action: { settings, input, output, offline: flags.offline ?? false } }
    }
    case 'replay': {
      const [file, ...others] = words
      if (file === undefined)
        throw new UsageError('replay needs a file: mcp-bridge replay calls.json https://example.com/mcp', command)
      return { kind: 'replay', file, settings: asked({ ...given, words: others }, sources).settings, json }
    }
    case 'check':
      if (flags.config === undefined) throw new UsageError('check needs --config <file>', command)
      try {
        return { kind: 'check', ...checked(flags, sources), file: flags.config, json }
      } catch (error) {
        if (json && error instanceof ConfigError) return { kind: 'invalid', file: flags.config, issues: error.issues }
        throw error
      }
    case 'status': {
      const [target] = words
      const isAddress = target === undefined || IS_BRIDGE.test(target)
      if (!isAddress) throw notABridge(target, command)
      return { kind: 'status', action: { target, places: placesIn(flags, sources), json } }
    }
    case 'tail': {
      const [first = '', ...others] = words
      if (HOST_AND_PORT.test(first) || (MISTYPED.test(first) && !IS_BRIDGE.test(first)))
        throw notABridge(first, command)
      const isTarget = IS_BRIDGE.test(first)
      const filter = (isTarget ? others : words).join(' ')
      return {
        kind: 'tail',
        target: isTarget ? first : undefined,
        filter,
        json,
        both: flags.both ?? false,
        as: flags.as as CopyFormName | undefined,
      }
    }
    case 'inspect': {
      const [file] = words
      return { kind: 'inspect', action: { file, opensBrowser: !flags['no-browser'] } }
    }
    case 'completion': {
      const [shell = ''] = words
      if (!isShell(shell))
        throw new UsageError(
          `completion needs one of ${SHELLS.join(', ')}${shell === '' ? '' : `, not "${printable(shell, 200)}"`}`,
          command,
        )
      return { kind: 'completion', shell }
    }
    case 'size':
      return { kind: 'size', load: loadIn(flags), json }
    case 'demo': {
      const [word] = words
      if (word === undefined) return { kind: 'demo', settings: demoSettings(flags, sources) }
      if (word === 'server') return { kind: 'demo server', era: 'legacy' }
      if (word === 'modern-server') return { kind: 'demo server', era: 'modern' }
      throw new UsageError(`demo takes nothing, "server" or "modern-server", not "${word}"`, command)
    }
    case 'discover': {
      const where = [...words, ...(flags.discover ?? [])]
      if (where.length === 0 && flags.config === undefined)
        throw new UsageError('discover needs a place to look: mcp-bridge discover example.com', command)
      const { settings } = configured({ ...flags, ...(where.length > 0 && { discover: where }) }, sources)
      return { kind: 'discover', settings, json }
    }
    case 'add':
    case 'remove':
      return { kind: 'edit', action: edited(given, env) }
    case 'login':
      return { kind: 'login', settings: signInSettings(given, sources) }
    case 'logout': {
      const settings = flags.all ? undefined : signInSettings(given, sources)
      return { kind: 'logout', settings, store: tokenStore(flags, sources) }
    }
    case 'auth status': {
      const settings = flags.config === undefined ? undefined : configured(flags, sources).settings
      return { kind: 'auth status', settings, store: tokenStore(flags, sources), json }
    }
    case 'wrap':
    case 'unwrap': {
      const [client, server] = words
      const { file, together = false, inspect = false, 'dry-run': dryRun = false } = flags
      return { kind: 'wrap', action: { command, client, server, file, dryRun, together, inspect } }
    }
    case 'trust list':
    case 'trust approve':
    case 'trust revoke':
    case 'trust pin':
    case 'trust unpin':
    case 'trust key add':
    case 'trust key remove':
      return { kind: 'trust', ...parseTrust(given, command, sources) }
  }
}

/** A change of a configuration file. Throws a UsageError. */
function edited({ command, words, flags, program }: Arguments, env: ConfigSources['env']): EditAction {
  const [name, word] = words
  const { config: file } = flags
  if (name === undefined || !entryName.safeParse(name).success)
    throw new UsageError(`${command} needs a name made of letters, digits, ".", "_" and "-"`, command)
  if (file === undefined) throw new UsageError(`${command} needs --config <file>`, command)
  if (command === 'remove') return { file, name, entry: undefined }
  const ways = [word, flags.upstream, program.length > 0 || undefined].filter((way) => way !== undefined)
  if (ways.length !== 1)
    throw new UsageError(
      `add needs one server: mcp-bridge add ${name} https://example.com/mcp, or mcp-bridge add ${name} -- npx -y some-server`,
      command,
    )
  return { file, name, entry: entryOf({ upstream: word ?? flags.upstream, program }, flags, env) }
}

/** The load that `size` is about. Throws a UsageError. */
function loadIn({ calls, sessions, streams, parked, forwarded }: Flags): Load {
  if (calls === undefined && sessions === undefined)
    throw new UsageError('size needs a load: mcp-bridge size --sessions 10000 --calls 500', 'size')
  const count = (flag: string, given: string | undefined) => {
    if (given === undefined) return 0
    const digits = given.replace(/[_,]/g, '')
    if (/^\d{1,9}$/.test(digits)) return Number(digits)
    throw new UsageError(`--${flag} needs a whole number up to 999,999,999, not "${given}"`, 'size')
  }
  const [, percent] = /^(\d{1,3}(?:\.\d+)?) ?%?$/.exec(forwarded ?? '0') ?? []
  if (percent === undefined || Number(percent) > 100)
    throw new UsageError(`--forwarded needs a percentage from 0 to 100, not "${forwarded}"`, 'size')
  return {
    calls: count('calls', calls),
    sessions: count('sessions', sessions),
    streams: count('streams', streams ?? sessions),
    parked: count('parked', parked),
    forwarded: forwarded === undefined ? undefined : Number(percent) / 100,
  }
}

/** Refuses arguments that a command does not take. */
function checkWords({ command, words, flags }: Arguments): void {
  const { words: most, usage } = rowOf(command)
  // All words after --tools are globs.
  if (words.length <= most || (command === 'trust approve' && flags.tools !== undefined)) return
  const [address, port = ''] = words
  // mcp-remote takes the port of its sign-in this way.
  if (command === 'serve' && /^\d+$/.test(port))
    throw new UsageError(
      `${port} is not expected after ${printable(String(address), 200)}: for the port of the sign-in, write --callback-port ${port}`,
      command,
    )
  if (command === 'check')
    throw new UsageError(`check needs --config: mcp-bridge check --config ${quoted(String(words[0]))}`, command)
  if (command === 'probe')
    throw new UsageError(
      `probe takes one server, not ${words.length} words: write -- before a program, as in mcp-bridge probe -- npx -y some-server`,
      command,
    )
  const takes = usage === '' ? 'takes flags only' : `takes ${usage}`
  throw new UsageError(`${command} ${takes}, and there is "${words.slice(most).join(' ')}" more`, command)
}

/** The server on the command line, in any of three forms. */
function described({ command, words: [word], flags, program }: Arguments): Described {
  const { upstream } = flags
  if (
    command === 'serve' &&
    word !== undefined &&
    flags.config !== undefined &&
    !/^env:/.test(word) &&
    !IN_ONE_WORD.test(word)
  )
    throw new UsageError(`"${word}" is no address: to serve one server of the file, give --server ${word}`, command)
  const ways = [
    upstream !== undefined && '--upstream',
    word !== undefined && 'a server',
    program.length > 0 && 'a command',
  ]
  const [one, two] = ways.filter((way) => way !== false)
  if (two !== undefined) throw new UsageError(`${one} and ${two} cannot be combined: give one of them`, command)
  if (flags.server && flags.config === undefined) throw new UsageError(withoutFile(flags.server), command)
  return { upstream: word ?? upstream, program }
}

/** `--server` has another meaning in mcp-proxy. */
function withoutFile(names: readonly string[]): string {
  const isTransport = names.every((name) => name === 'sse' || name === 'stream')
  const hint = isTransport ? 'clients of both transports are served without it' : 'name the file with --config'
  return `--server chooses a server of a configuration file, and there is none: ${hint}`
}

/** The servers of a command that asks them something. */
function asked(given: Arguments, sources: ConfigSources): Configured {
  const { command } = given
  const [word] = given.words
  const isName = word !== undefined && given.flags.config !== undefined && !IN_ONE_WORD.test(word)
  if (isName && given.flags.server !== undefined)
    throw new UsageError(`${word} and --server cannot be combined: give one of them`, command)
  const flags = isName ? { ...given.flags, server: [word] } : given.flags
  const { upstream, program } = described(isName ? { ...given, words: [], flags } : given)
  if (upstream === undefined && program?.length === 0 && flags.config === undefined)
    throw new UsageError(
      `${command} needs a server: ${example(command)} https://example.com/mcp, or ${example(command)} stdio:"command args"`,
      command,
    )
  const all = configured(flags, sources, { upstream, program: program ?? [] })
  if (Object.keys(all.settings.mcpServers).length === 0)
    throw new UsageError('the configuration file names no server: to find servers, use mcp-bridge discover', command)
  return all
}

function example(command: CommandName): string {
  return command === 'replay' ? 'mcp-bridge replay calls.json' : `mcp-bridge ${command}`
}

/** The settings for a sign-in to one server: one of the file, or an address. */
function signInSettings(given: Arguments, sources: ConfigSources): Settings {
  const { command, flags, words } = given
  const [server] = words
  const isAddress = server !== undefined && /^(?:sse\+)?https?:\/\//.test(server)
  if (server === undefined && flags.upstream === undefined && flags.server === undefined)
    throw new UsageError(`${command} needs a server: an address, or with --config <file> a name of the file`, command)
  if (!isAddress && server !== undefined && flags.config === undefined)
    throw new UsageError(
      `${JSON.stringify(server)} is not an address${addressHint(server) || ': give one with https://, or a name and its file with --config'}`,
      command,
    )
  const named = isAddress || server === undefined ? flags : { ...flags, server: [server] }
  const { settings } = configured(named, sources, { upstream: isAddress ? server : flags.upstream })
  const names = Object.keys(settings.mcpServers)
  if (names.length === 0) throw new UsageError(`${command} takes one server, and the file has none`, command)
  if (names.length > 1)
    throw new UsageError(
      `${command} takes one server, not ${names.length}: name one of ${namesInWords(names)}`,
      command,
    )
  return settings
}

function tokenStore(flags: Flags, sources: ConfigSources): string | undefined {
  const file = flags.config === undefined ? {} : readConfig(flags.config, sources.read).options
  const { oauth } = file
  const store = typeof oauth === 'object' && oauth !== null ? (oauth as Record<string, unknown>)['store'] : undefined
  return flags['token-store'] ?? (typeof store === 'string' ? store : undefined)
}
