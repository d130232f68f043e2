/** The command line: what is asked for, with which configuration. */
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { checkWritable } from './cli/writable.js'
import { ConfigError, type Elsewhere, parseSettings, parseUpstream, type Settings } from './config.js'

export type Command =
  | { kind: 'run'; settings: Settings; files: readonly string[] }
  | { kind: 'probe'; settings: Settings; json: boolean }
  | { kind: 'check'; settings: Settings; file: string }
  | { kind: 'discover'; settings: Settings; json: boolean }
  | { kind: 'trust'; action: TrustAction; trustStore: string | undefined }
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

/** Something on the command line that cannot be followed. */
export class UsageError extends Error {
  override name = 'UsageError'
}

export const HELP = `mcp-bridge: clients and servers of both eras of the Model Context Protocol, in one piece.

  mcp-bridge --upstream <server> [options]      serve one server
  mcp-bridge [options] -- <command> [args]      the same, for a server that is a program
  mcp-bridge --config <file>                    serve what a file names, each at /<name>/mcp
  mcp-bridge probe <server> [--json]            say what a server speaks and offers
  mcp-bridge check --config <file>              say what is wrong with a configuration
  mcp-bridge discover <where>... [--json]       find servers, and say whether they can be trusted
  mcp-bridge --discover <where> [options]       serve what is found, each at /<name>/mcp
  mcp-bridge trust …                            say whom to trust: see below

Servers
  stdio:"command args"     a program that speaks on its standard input and output
  http://…  https://…      Streamable HTTP, or HTTP+SSE where that is all there is
  sse+http://…             HTTP+SSE of 2024-11-05

Where servers are found, for discover and --discover
  example.com              a host that says which servers it has
  https://…  stdio:"…"     a server itself
  path/to/mcp.json         a file of another program; files: is where these usually are
  registry:<query>         a registry

Trust: what is found can only be looked at until one of these
  trust approve <server> [--tools <glob>...] [--for 30d]    its tools as they are now
  trust pin <server> [--backup <pin>]                       the key that it has now
  trust key add <publisher> <file>                          what a publisher signs
  trust list | revoke <server> | unpin <server> | key remove <publisher> <id>

Options
  -u, --upstream <server>       the server behind the bridge
  -l, --listen <where>          http://host:port/path or stdio      [http://127.0.0.1:8080/mcp]
                                clients of both eras; HTTP+SSE at /sse beside the path
  -c, --config <file>           JSON with "mcpServers", as other programs have it; flags win over it;
                                read again when it changes, and on SIGHUP
  -s, --server <name>           of those in the file, only this one; repeatable
      --admin <url>             http://host:port for /healthz, /readyz and /metrics alone
      --redis <url>             what replicas share, as in redis://host:6379; wants "stateKeys"
      --era <era>               auto, legacy or modern: what the server speaks           [auto]
      --session <who>           per-principal, shared or per-request: who shares a session
                                of the bridge with a legacy server              [per-principal]
      --tasks <which>           auto, async or off: which calls of a legacy server are tasks  [auto]
  -H, --header 'Name: value'    sent to an HTTP server; repeatable; \${ENV} is replaced
  -e, --env NAME=value          given to a program; repeatable; \${ENV} is replaced
      --cwd <folder>            where a program is started
      --discover <where>        serve what is found there; repeatable
      --discover-allow <what>   host, address or network that may be reached for that though it is not public
      --discover-loopback       so may this machine, and without TLS: for trying things
      --read-only-tool <glob>   may be called in quarantine, if its server says that it only reads; repeatable
      --registry <url>          the registry to ask          [https://registry.modelcontextprotocol.io]
      --trust-store <file>      what is said about trust              [~/.config/mcp-bridge/trust.json]
      --publish                 serve a manifest at /.well-known/mcp.json; wants --public-url
      --public-url <url>        address under which clients reach the bridge
      --allowed-host <name>     further host name under which they do; repeatable
      --allowed-origin <url>    origin of web pages that may call; repeatable
      --allow-unauthenticated   listen beyond this machine though anybody may call
      --log-level <level>       trace, debug, info, warn, error, silent                  [info]
      --log-format <format>     auto, pretty or json                                     [auto]
  -h, --help                    this text
  -V, --version                 the version

Examples
  A legacy server, for modern clients:
    mcp-bridge --upstream stdio:"npx -y @modelcontextprotocol/server-everything"
  The same, with the command after two dashes, and a variable for it:
    mcp-bridge -e API_KEY='\${API_KEY}' -- npx -y some-mcp-server --verbose
  A remote server of any era, for a client that starts programs:
    mcp-bridge --listen stdio --upstream https://example.com/mcp -H 'Authorization: Bearer \${TOKEN}'
  What does this server speak?
    mcp-bridge probe https://example.com/mcp
`

const OPTIONS = {
  upstream: { type: 'string', short: 'u' },
  listen: { type: 'string', short: 'l' },
  config: { type: 'string', short: 'c' },
  server: { type: 'string', short: 's', multiple: true },
  admin: { type: 'string' },
  redis: { type: 'string' },
  era: { type: 'string' },
  session: { type: 'string' },
  tasks: { type: 'string' },
  header: { type: 'string', short: 'H', multiple: true },
  env: { type: 'string', short: 'e', multiple: true },
  cwd: { type: 'string' },
  'public-url': { type: 'string' },
  'allowed-host': { type: 'string', multiple: true },
  'allowed-origin': { type: 'string', multiple: true },
  'allow-unauthenticated': { type: 'boolean' },
  'log-level': { type: 'string' },
  'log-format': { type: 'string' },
  discover: { type: 'string', multiple: true },
  'discover-allow': { type: 'string', multiple: true },
  'discover-loopback': { type: 'boolean' },
  'read-only-tool': { type: 'string', multiple: true },
  registry: { type: 'string' },
  'trust-store': { type: 'string' },
  publish: { type: 'boolean' },
  tools: { type: 'string', multiple: true },
  for: { type: 'string' },
  backup: { type: 'string', multiple: true },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'V' },
} as const

type Flags = ReturnType<typeof readFlags>['values']

/** Name of the one server that flags describe. */
const UNNAMED = 'default'

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
    case undefined: {
      const settings = settingsOf(flags, flags.upstream, program, elsewhere)
      return { kind: 'run', settings, files: [...files] }
    }
    case 'probe': {
      if (rest.length > 1)
        throw new UsageError(
          `probe takes one server, not ${rest.length}: put a command in quotes, as in stdio:"command args"`,
        )
      const settings = settingsOf(flags, rest[0] ?? flags.upstream, program, elsewhere)
      const names = Object.keys(settings.mcpServers)
      if (names.length > 1) throw new UsageError(`Which of ${names.join(', ')}? Say it with --server`)
      if (names.length === 0) throw new UsageError('Which server? What is to be found first is for mcp-bridge discover')
      return { kind: 'probe', settings, json: flags.json ?? false }
    }
    case 'check':
      if (flags.config === undefined) throw new UsageError('check needs --config <file>')
      return { kind: 'check', settings: settingsOf(flags, undefined, [], elsewhere), file: flags.config }
    case 'discover': {
      const where = [...rest, ...(flags.discover ?? [])]
      const settings = settingsOf({ ...flags, ...(where.length > 0 && { discover: where }) }, undefined, [], elsewhere)
      return { kind: 'discover', settings, json: flags.json ?? false }
    }
    case 'trust':
      return trustCommand(rest, flags, elsewhere)
    default:
      throw new UsageError(
        `"${name}" is no command: there are probe, check, discover and trust; a server is given with --upstream or after --`,
      )
  }
}

const TRUST =
  'trust list | approve <server> | pin <server> | revoke <server> | unpin <server> | key add <publisher> <file>'

function trustCommand(words: readonly string[], flags: Flags, elsewhere: Elsewhere): Command {
  const file = flags.config === undefined ? {} : readConfig(flags.config, elsewhere.read)
  const inFile = file['trustStore']
  const trustStore = flags['trust-store'] ?? (typeof inFile === 'string' ? inFile : undefined)
  const found = (server: string) =>
    settingsOf({ ...flags, discover: flags.discover ?? discoverIn(file) ?? [server] }, undefined, [], elsewhere)
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

function discoverIn(file: Record<string, unknown>): string[] | undefined {
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

function readFlags(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true, strict: true })
  } catch (cause) {
    const message = cause instanceof Error ? cause.message.replace(/\. To specify a positional.*$/s, '') : String(cause)
    throw new UsageError(message, { cause })
  }
}

function settingsOf(
  flags: Flags,
  upstream: string | undefined,
  program: readonly string[],
  elsewhere: Elsewhere,
): Settings {
  const file = flags.config === undefined ? {} : readConfig(flags.config, elsewhere.read)
  const [command, ...args] = program
  if (upstream !== undefined && command !== undefined)
    throw new UsageError('One server, please: either --upstream or a command after --')
  const entry = upstream !== undefined ? parseUpstream(upstream) : command !== undefined ? { command, args } : undefined
  if (entry === undefined && flags.config === undefined && flags.discover === undefined)
    throw new UsageError(
      'Which server? Give one with --upstream, after --, in a file with --config, or with --discover',
    )
  const servers = entry === undefined ? chosen(file['mcpServers'], flags.server) : { [UNNAMED]: entry }
  const given = {
    listen: flags.listen,
    admin: flags.admin,
    publicUrl: flags['public-url'],
    allowedHosts: flags['allowed-host'],
    allowedOrigins: flags['allowed-origin'],
    allowUnauthenticated: flags['allow-unauthenticated'],
    discover: flags.discover,
    discoverAllow: flags['discover-allow'],
    discoverLoopback: flags['discover-loopback'],
    readOnlyTools: flags['read-only-tool'],
    registry: flags.registry,
    trustStore: flags['trust-store'],
  }
  const log = { level: flags['log-level'], format: flags['log-format'] }
  return parseSettings(
    {
      ...file,
      ...defined(given),
      ...(flags.publish === true && { publish: object(file['publish']) }),
      ...(flags.redis !== undefined && { redis: { ...object(file['redis']), url: flags.redis } }),
      ...(Object.values(log).some((value) => value !== undefined) && {
        log: { ...object(file['log']), ...defined(log) },
      }),
      ...(servers !== undefined && {
        mcpServers: isRecord(servers)
          ? mapValues(servers, (server) => (isRecord(server) ? withFlags(server, flags) : server))
          : servers,
      }),
    },
    elsewhere,
  )
}

/** The servers that are asked for by name, or all. */
function chosen(servers: unknown, names: readonly string[] | undefined): unknown {
  if (names === undefined || !isRecord(servers)) return servers
  const missing = names.find((name) => !(name in servers))
  if (missing !== undefined)
    throw new UsageError(`There is no server "${missing}": the file names ${Object.keys(servers).join(', ')}`)
  return Object.fromEntries(names.map((name) => [name, servers[name]]))
}

function withFlags(server: Record<string, unknown>, flags: Flags): Record<string, unknown> {
  const headers = Object.fromEntries(
    (flags.header ?? []).map((line) => split(line, ':', "--header wants 'Name: value'")),
  )
  const variables = Object.fromEntries((flags.env ?? []).map((line) => split(line, '=', '--env wants NAME=value')))
  const has = (given: object) => Object.keys(given).length > 0
  if (has(headers) && !('url' in server)) throw new UsageError('--header is for servers that have an address')
  if ((has(variables) || flags.cwd !== undefined) && !('command' in server))
    throw new UsageError('--env and --cwd are for servers that are programs')
  return {
    ...server,
    ...defined({ era: flags.era, session: flags.session, tasks: flags.tasks, cwd: flags.cwd }),
    ...(has(headers) && { headers: { ...object(server['headers']), ...headers } }),
    ...(has(variables) && { env: { ...object(server['env']), ...variables } }),
  }
}

function readConfig(path: string, read: Elsewhere['read']): Record<string, unknown> {
  let text: string
  try {
    text = read(path)
  } catch (cause) {
    throw new ConfigError([
      { path: '', message: `The file ${path} cannot be read: ${cause instanceof Error ? cause.message : cause}` },
    ])
  }
  try {
    const json = JSON.parse(text) as unknown
    if (!isRecord(json)) return { mcpServers: json }
    // VS Code has another name for it.
    const { servers, ...rest } = json
    return servers === undefined ? json : { mcpServers: servers, ...rest }
  } catch (cause) {
    throw new ConfigError([
      { path: '', message: `The file ${path} is no JSON: ${cause instanceof Error ? cause.message : cause}` },
    ])
  }
}

function split(line: string, separator: string, usage: string): [string, string] {
  const at = line.indexOf(separator)
  if (at <= 0) throw new UsageError(`${usage}, not "${line.slice(0, 20)}"`)
  return [line.slice(0, at).trim(), line.slice(at + 1).trim()]
}

function defined(values: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))
}

function mapValues(record: Record<string, unknown>, change: (value: unknown) => unknown): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]))
}

function object(value: unknown): Record<string, unknown> {
  return isRecord(value) ? value : {}
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
