/** The command line: what is asked for, with which configuration. */
import { readFileSync } from 'node:fs'
import type { Elsewhere, Settings } from '../config/settings.js'
import {
  type Checked,
  type Configured,
  checked,
  configured,
  type Flags,
  readConfig,
  readFlags,
  UsageError,
} from './settings.js'
import { checkWritable } from './writable.js'

export { HELP } from './help.js'
export { type Checked, UsageError } from './settings.js'

export type Command =
  | ({ kind: 'run'; files: readonly string[] } & Configured)
  | { kind: 'probe'; settings: Settings; json: boolean }
  | ({ kind: 'check'; file: string; json: boolean } & Checked)
  | { kind: 'discover'; settings: Settings; json: boolean }
  | { kind: 'trust'; action: TrustAction; trustStore: string | undefined }
  | { kind: 'login'; settings: Settings }
  | { kind: 'logout'; settings: Settings | undefined; store: string | undefined }
  | { kind: 'auth status'; settings: Settings | undefined; store: string | undefined; json: boolean }
  | { kind: 'help' }
  | { kind: 'version' }

/** What is to be done about trust. Servers are looked for with the settings. */
export type TrustAction =
  | { do: 'list'; json: boolean }
  | { do: 'approve'; server: string; settings: Settings; tools: readonly string[]; days: number }
  | { do: 'pin'; server: string; settings: Settings; backups: readonly string[] }
  | { do: 'revoke'; server: string }
  | { do: 'unpin'; server: string }
  | { do: 'key add'; publisher: string; file: string }
  | { do: 'key remove'; publisher: string; id: string }

/** Commands of people, who read what is said; without one the bridge serves. */
const COMMANDS = ['probe', 'check', 'discover', 'trust', 'login', 'logout', 'auth'] as const

/** Whether complaints are for people, as far as arguments say that may be wrong: in a log for programs they are JSON. */
export function speaksToPeople(argv: readonly string[], terminal: boolean): boolean {
  const dashes = argv.indexOf('--')
  const own = dashes < 0 ? argv : argv.slice(0, dashes)
  if (COMMANDS.some((command) => own.includes(command))) return true
  const at = own.findLastIndex((word) => word.startsWith('--log-format'))
  const format = at < 0 ? undefined : (own[at]?.split('=')[1] ?? own[at + 1])
  return format === 'pretty' || (format !== 'json' && terminal)
}

/** Reads the arguments. Throws a UsageError or a ConfigError. */
export function parseCommand(argv: readonly string[], env: Elsewhere['env']): Command {
  const dashes = argv.indexOf('--')
  const own = dashes < 0 ? argv : argv.slice(0, dashes)
  const program = dashes < 0 ? [] : argv.slice(dashes + 1)
  // What ids of keys are made of may begin with a dash.
  const isRemoval = own.slice(0, 3).join(' ') === 'trust key remove'
  const { values: flags, positionals } = readFlags(isRemoval ? own.toSpliced(4, 1) : own)
  if (isRemoval) positionals.push(...own.slice(4, 5))
  if (flags.help) return { kind: 'help' }
  if (flags.version) return { kind: 'version' }
  const [name, ...rest] = positionals
  const files = new Set<string>()
  const read = (path: string) => {
    files.add(path)
    checkWritable(path)
    return readFileSync(path, 'utf8')
  }
  const elsewhere = { env, read }
  switch (name) {
    case undefined:
      return { kind: 'run', ...configured(flags, elsewhere, flags.upstream, program), files: [...files] }
    case 'probe': {
      if (rest.length === 0 && flags.upstream === undefined && program.length === 0 && flags.config === undefined)
        throw new UsageError(
          'probe needs a server: mcp-bridge probe https://example.com/mcp, or mcp-bridge probe stdio:"command args"',
        )
      if (rest.length > 1)
        throw new UsageError(
          `probe takes one server, not ${rest.length}: put a command in quotes, as in stdio:"command args"`,
        )
      const { settings } = configured(flags, elsewhere, rest[0] ?? flags.upstream, program)
      const names = Object.keys(settings.mcpServers)
      if (names.length > 1) throw new UsageError(`Which of ${names.join(', ')}? Say it with --server`)
      if (names.length === 0) throw new UsageError('Which server? What is to be found first is for mcp-bridge discover')
      return { kind: 'probe', settings, json: flags.json ?? false }
    }
    case 'check':
      if (flags.config === undefined) throw new UsageError('check needs --config <file>')
      return { kind: 'check', ...checked(flags, elsewhere), file: flags.config, json: flags.json ?? false }
    case 'discover': {
      const where = [...rest, ...(flags.discover ?? [])]
      const { settings } = configured({ ...flags, ...(where.length > 0 && { discover: where }) }, elsewhere)
      return { kind: 'discover', settings, json: flags.json ?? false }
    }
    case 'trust':
      return trustCommand(rest, flags, elsewhere)
    case 'login':
      return { kind: 'login', settings: signingInTo(rest, flags, elsewhere, 'login') }
    case 'logout': {
      const settings = flags.all ? undefined : signingInTo(rest, flags, elsewhere, 'logout')
      return { kind: 'logout', settings, store: tokenStore(flags, elsewhere) }
    }
    case 'auth': {
      const [what, ...more] = rest
      if (what !== 'status' || more.length > 0) throw new UsageError('auth has one command: mcp-bridge auth status')
      const settings = flags.config === undefined ? undefined : configured(flags, elsewhere).settings
      return { kind: 'auth status', settings, store: tokenStore(flags, elsewhere), json: flags.json ?? false }
    }
    default:
      throw new UsageError(
        `"${name}" is no command: there are probe, check, discover, trust, login, logout and auth; a server is given with --upstream or after --`,
      )
  }
}

/** The settings of the one server that somebody signs in to: one of the file, or an address. */
function signingInTo(words: readonly string[], flags: Flags, elsewhere: Elsewhere, command: string): Settings {
  const [server, ...more] = words
  const isAddress = server !== undefined && /^(?:sse\+)?https?:\/\//.test(server)
  if (more.length > 0 || (server === undefined && flags.upstream === undefined && flags.server === undefined))
    throw new UsageError(`${command} wants one server: an address, or with --config <file> a name of the file`)
  if (!isAddress && server !== undefined && flags.config === undefined)
    throw new UsageError(`Which file names ${JSON.stringify(server)}? Say it with --config, or give an address`)
  const named = isAddress || server === undefined ? flags : { ...flags, server: [server] }
  const { settings } = configured(named, elsewhere, isAddress ? server : flags.upstream)
  const names = Object.keys(settings.mcpServers)
  if (names.length !== 1) throw new UsageError(`${command} wants one server, not ${names.length}`)
  return settings
}

function tokenStore(flags: Flags, elsewhere: Elsewhere): string | undefined {
  const file = flags.config === undefined ? {} : readConfig(flags.config, elsewhere.read).options
  const { oauth } = file
  const store = typeof oauth === 'object' && oauth !== null ? (oauth as Record<string, unknown>)['store'] : undefined
  return flags['token-store'] ?? (typeof store === 'string' ? store : undefined)
}

const TRUST =
  'trust list | approve <server> | pin <server> | revoke <server> | unpin <server> | key add <publisher> <file>'

function trustCommand(words: readonly string[], flags: Flags, elsewhere: Elsewhere): Command {
  const file = flags.config === undefined ? {} : readConfig(flags.config, elsewhere.read).options
  const inFile = file['trustStore']
  const trustStore = flags['trust-store'] ?? (typeof inFile === 'string' ? inFile : undefined)
  const found = (server: string) =>
    configured({ ...flags, discover: flags.discover ?? discoverIn(file) ?? [server] }, elsewhere).settings
  const trust = (action: TrustAction): Command => ({ kind: 'trust', action, trustStore })
  const [what, server, ...more] = words
  if (what === 'list' && server === undefined) return trust({ do: 'list', json: flags.json ?? false })
  if (what === 'key') {
    const [publisher, which] = more
    if (publisher === undefined || which === undefined || more.length > 2)
      throw new UsageError('trust key wants: trust key add <publisher> <file>, or trust key remove <publisher> <id>')
    if (server === 'add') return trust({ do: 'key add', publisher, file: which })
    if (server === 'remove') return trust({ do: 'key remove', publisher, id: which })
  }
  if (
    what === undefined ||
    server === undefined ||
    (more.length > 0 && (what !== 'approve' || flags.tools === undefined))
  )
    throw new UsageError(`What is to be done? ${TRUST}`)
  switch (what) {
    case 'approve': {
      // After --tools, all that follows is globs.
      const tools = [...(flags.tools ?? ['*']), ...more]
      return trust({ do: 'approve', server, settings: found(server), tools, days: daysIn(flags.for ?? '30d') })
    }
    case 'pin':
      return trust({ do: 'pin', server, settings: found(server), backups: flags.backup ?? [] })
    case 'revoke':
    case 'unpin':
      return trust({ do: what, server })
    default:
      throw new UsageError(`"trust ${what}" is no command: ${TRUST}`)
  }
}

function discoverIn(file: Readonly<Record<string, unknown>>): string[] | undefined {
  const { discover } = file
  return Array.isArray(discover) && discover.length > 0 ? (discover as string[]) : undefined
}

/** Of 12h, 30d and 8w, the days. */
function daysIn(text: string): number {
  const [, number, unit] = /^(\d{1,4})([hdw])$/.exec(text) ?? []
  const days = Number(number) * ({ h: 1 / 24, d: 1, w: 7 }[unit ?? ''] ?? Number.NaN)
  if (!(days > 0 && days <= 366))
    throw new UsageError(`--for wants a time like 12h, 30d or 8w, of a year at most, not "${text}"`)
  return days
}
