/** The configuration: this schema is the reference of all options. A file, the environment and flags end up in it. */
import parseCommandLine from 'string-argv'
import * as z from 'zod'

const milliseconds = z.number().int().positive()
const entryName = z.string().regex(/^[\w.-]{1,64}$/, 'has to be made of letters, digits, ".", "_" and "-"')

/** Names that other programs use for the transports. */
const TRANSPORTS: Readonly<Record<string, 'stdio' | 'http' | 'sse'>> = {
  stdio: 'stdio',
  http: 'http',
  'streamable-http': 'http',
  streamableHttp: 'http',
  streamable_http: 'http',
  stream: 'http',
  sse: 'sse',
}

const sessionSettings = {
  era: z.enum(['auto', 'legacy', 'modern']).default('auto').describe('What the server speaks; found out by default.'),
  session: z
    .enum(['per-principal', 'shared', 'per-request'])
    .default('per-principal')
    .describe('Who may share a session with a legacy server: only calls of one principal, everybody, or nobody.'),
  roots: z
    .union([z.enum(['ask', 'off']), z.array(z.string().regex(/^file:\/\//, 'has to be a file:// address'))])
    .default('ask')
    .describe('Folders that a legacy server may see: its client is asked, the server cannot ask, or these.'),
  tasks: z
    .enum(['auto', 'async', 'off'])
    .default('auto')
    .describe('Which calls of a legacy server are tasks: those that have to be, also those that may be, or none.'),
}

const stdioServer = z.looseObject({
  type: z.literal('stdio').optional(),
  command: z.string().min(1).describe('Program to start. Never run through a shell.'),
  args: z.array(z.string()).default([]),
  env: z
    .record(z.string(), z.union([z.string(), z.number().transform(String), z.boolean().transform(String)]))
    .default({})
    .describe('Environment of the program, beside PATH, HOME and the few others that it inherits.'),
  cwd: z.string().optional(),
  ...sessionSettings,
})

const httpServer = z.looseObject({
  type: z
    .enum(Object.keys(TRANSPORTS).filter((name) => name !== 'stdio') as [string, ...string[]])
    .optional()
    .describe('How to reach the server; by default Streamable HTTP, and HTTP+SSE where that is not understood.'),
  url: z.url({ protocol: /^https?$/, error: 'has to be an http:// or https:// address' }),
  headers: z.record(z.string(), z.string()).default({}).describe('Sent with every request to the server.'),
  paths: z
    .array(z.string().regex(/^\/[\w.~%/-]*(?:\/\*)?$/, 'has to be a path like /.well-known/x or /files/*'))
    .default([])
    .describe('Paths beside the endpoint that are passed on to the same paths of the server; none by default.'),
  ...sessionSettings,
})

const server = z.union([stdioServer, httpServer])

export const fileSchema = z.strictObject({
  $schema: z.string().optional(),
  mcpServers: z
    .record(entryName, server)
    .describe('Servers by name, as in the configuration of Claude Desktop, Cursor and others.'),
  listen: z.string().default('http://127.0.0.1:8080/mcp').describe('Where to listen: an http:// address, or stdio.'),
  publicUrl: z
    .url()
    .optional()
    .describe('Address under which clients reach the bridge, when something stands before it.'),
  allowedHosts: z
    .array(z.string())
    .default([])
    .describe('Further host names under which clients may reach the bridge.'),
  allowedOrigins: z.array(z.url()).default([]).describe('Origins of web pages that may call the bridge.'),
  auth: z
    .strictObject({
      tokens: z
        .record(
          // The other two are those who have shown no token.
          entryName.refine((name) => name !== 'anon' && name !== 'local', 'is what callers without a token are called'),
          z.string().regex(/^[\x21-\x7e]{16,}$/, 'has to be 16 or more visible ASCII characters, without spaces'),
        )
        .optional()
        .describe('Bearer tokens by the names of their principals: one of them is asked of every request over HTTP.'),
      passthrough: z
        .boolean()
        .default(false)
        .describe(
          "Send the client's own Authorization on to the one server, which decides. Only for where bridge and server are one resource in the eyes of the client.",
        ),
    })
    .optional()
    .describe('Who may call over HTTP. Without it anybody may, and is one principal.'),
  stateKeys: z
    .array(z.string().min(32, 'has to have at least 32 characters'))
    .default([])
    .describe(
      'Secrets that seal what clients keep for the bridge: the first seals, all open. By default, one of its own.',
    ),
  allowUnauthenticated: z.boolean().default(false).describe('Listen beyond loopback though anybody may call.'),
  log: z
    .strictObject({
      level: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'silent']).default('info'),
      format: z.enum(['auto', 'pretty', 'json']).default('auto').describe('Readable on a terminal, JSON otherwise.'),
    })
    .prefault({}),
  compat: z
    .strictObject({
      bareDiscover: z.boolean().default(true).describe('Answer server/discover without envelope and version header.'),
      ignoreVersionSkew: z.boolean().default(true).describe('Take a legacy version header that was not negotiated.'),
      draftErrorCodes: z.boolean().default(false).describe('Give the error codes of the drafts of 2026-07-28.'),
      emulateTasks: z
        .boolean()
        .default(false)
        .describe('Let clients of 2025-11-25 have calls of tools of modern servers as tasks.'),
      strictRevisions: z
        .boolean()
        .default(false)
        .describe('Tell legacy clients nothing that the schema of their revision does not have.'),
    })
    .prefault({}),
  limits: z
    .strictObject({
      bodyBytes: z
        .number()
        .int()
        .positive()
        .default(4 * 1024 * 1024)
        .describe('Size of a request.'),
      lineBytes: z
        .number()
        .int()
        .positive()
        .default(16 * 1024 * 1024)
        .describe('Size of a line on stdio.'),
      answerBytes: z
        .number()
        .int()
        .positive()
        .default(16 * 1024 * 1024)
        .describe('Size of a JSON answer of a server.'),
      streamBytes: z
        .number()
        .int()
        .positive()
        .default(64 * 1024 * 1024)
        .describe('Size of one stream of a server.'),
      connections: z.number().int().positive().default(12_000).describe('Connections of clients at once.'),
      calls: z.number().int().positive().default(2_000).describe('Calls at once.'),
      callsPerServer: z.number().int().positive().default(256).describe('Calls at once with one server.'),
      subscriptions: z.number().int().positive().default(10_000).describe('Subscriptions at once.'),
      clientSessions: z
        .number()
        .int()
        .positive()
        .default(10_000)
        .describe('Sessions of legacy clients, over each of the HTTP transports.'),
      parked: z.number().int().positive().default(2_000).describe('Calls that wait for their clients to answer.'),
      parkedPerPrincipal: z.number().int().positive().default(32).describe('The same, of one principal.'),
      sessions: z.number().int().positive().default(200).describe('Sessions with one HTTP server.'),
      processes: z.number().int().positive().default(16).describe('Processes of one stdio server.'),
    })
    .prefault({}),
  timeouts: z
    .strictObject({
      call: milliseconds.default(300_000).describe('Silence after which a call is given up; progress counts.'),
      callTotal: milliseconds.default(3_600_000).describe('Time after which a call is given up, progress or not.'),
      probe: milliseconds.optional().describe('For the answer to server/discover: 10 s over HTTP, 15 s over stdio.'),
      initialize: milliseconds.default(60_000).describe('For the answer to initialize.'),
      idle: milliseconds.default(600_000).describe('After which an unused session with a server is ended.'),
      answer: z
        .number()
        .int()
        .min(1_000)
        .max(3_600_000)
        .default(600_000)
        .describe('That a modern client has to answer what a server asks in the middle of a call.'),
      clientIdle: milliseconds
        .default(1_800_000)
        .describe('Without a request or an open stream, after which the session of a legacy client ends.'),
      keepAlive: milliseconds.default(15_000).describe('Between signs of life on a silent stream.'),
      commitAfter: milliseconds.default(10_000).describe('Silence after which an answer becomes a stream.'),
      drain: milliseconds.default(5_000).describe('For calls in flight to end when the bridge is stopped.'),
    })
    .prefault({}),
})

export type Settings = z.infer<typeof fileSchema>
export type ServerSettings = Settings['mcpServers'][string]
export type StdioSettings = z.infer<typeof stdioServer>
export type HttpSettings = z.infer<typeof httpServer>

export type Listen = { kind: 'stdio' } | { kind: 'http'; host: string; port: number; path: string }

/** What is wrong with a configuration, place by place. */
export class ConfigError extends Error {
  override name = 'ConfigError'
  readonly issues: readonly Issue[]

  constructor(issues: readonly Issue[]) {
    super(issues.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)).join('\n'))
    this.issues = issues
  }
}

export interface Issue {
  /** As in `mcpServers.github.url`; empty for the whole. */
  path: string
  message: string
}

export type Environment = Readonly<Record<string, string | undefined>>

export function isStdio(settings: ServerSettings): settings is StdioSettings {
  return 'command' in settings
}

/** The transport that an HTTP entry asks for; undefined where it leaves that to be found out. */
export function transportOf({ type }: HttpSettings): 'stdio' | 'http' | 'sse' | undefined {
  return type === undefined ? undefined : TRANSPORTS[type]
}

/** Checks what a file or the flags say and fills in the rest. Throws a ConfigError that names every place. */
export function parseSettings(input: unknown, env: Environment): Settings {
  checkEntries(input)
  const parsed = fileSchema.safeParse(expand(input, env))
  if (!parsed.success) {
    throw new ConfigError(parsed.error.issues.flatMap((issue) => flatten(issue, [])))
  }
  const listen = parseListen(parsed.data.listen)
  const issues = [
    ...notYet(parsed.data),
    ...unclear(parsed.data),
    ...exposed(parsed.data, listen),
    ...colliding(parsed.data, listen),
  ]
  if (issues.length > 0) throw new ConfigError(issues)
  return parsed.data
}

/** Keys of server entries that mean something to another program, or that are misspelt. They are ignored. */
export function unknownKeys(settings: Settings): Issue[] {
  return Object.entries(settings.mcpServers).flatMap(([name, entry]) => {
    const known = Object.keys((isStdio(entry) ? stdioServer : httpServer).shape)
    const unknown = Object.keys(entry).filter((key) => !known.includes(key))
    return unknown.map((key) => ({
      path: `mcpServers.${name}.${key}`,
      message: 'is not known to mcp-bridge, and ignored',
    }))
  })
}

/** Reads where to listen. Throws a ConfigError. */
export function parseListen(listen: string): Listen {
  if (listen === 'stdio') return { kind: 'stdio' }
  const url = /^http:\/\//.test(listen) && URL.canParse(listen) ? new URL(listen) : undefined
  if (!url || url.search || url.hash || url.username)
    throw new ConfigError([
      { path: 'listen', message: `"${listen}" has to be stdio or an address like http://127.0.0.1:8080/mcp` },
    ])
  return {
    kind: 'http',
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? 80 : Number(url.port),
    path: url.pathname === '/' ? '/mcp' : url.pathname.replace(/\/+$/, ''),
  }
}

/** The entry that an address or a command line on the command line stands for. Throws a ConfigError. */
export function parseUpstream(text: string): Record<string, unknown> {
  const wrong = (message: string) => new ConfigError([{ path: '--upstream', message }])
  if (text.startsWith('stdio:')) {
    const [command, ...args] = parseCommandLine(text.slice('stdio:'.length))
    if (command === undefined)
      throw wrong('stdio: wants a command, as in stdio:"npx -y @modelcontextprotocol/server-everything"')
    return { command, args }
  }
  if (/^https?:\/\//.test(text)) return { url: text }
  if (/^sse\+https?:\/\//.test(text)) return { url: text.slice('sse+'.length), type: 'sse' }
  throw wrong(`"${text}" is no server: give stdio:"command args", http(s)://… or sse+http(s)://…`)
}

/** An entry is one of two kinds, and shows which: said here, better than a union of both could say it. */
function checkEntries(input: unknown): void {
  if (!isObject(input))
    throw new ConfigError([{ path: '', message: 'has to be a JSON object with the key "mcpServers"' }])
  const { mcpServers } = input
  if (!isObject(mcpServers))
    throw new ConfigError([{ path: 'mcpServers', message: 'has to be an object of servers by name' }])
  const issues: Issue[] = []
  for (const [name, entry] of Object.entries(mcpServers)) {
    const path = `mcpServers.${name}`
    if (!isObject(entry)) issues.push({ path, message: 'has to be an object' })
    else if ('command' in entry === 'url' in entry)
      issues.push({ path, message: 'has to have either "command" (a program) or "url" (an address)' })
  }
  if (Object.keys(mcpServers).length === 0) issues.push({ path: 'mcpServers', message: 'names no server' })
  if (issues.length > 0) throw new ConfigError(issues)
}

function notYet({ mcpServers }: Settings): Issue[] {
  const names = Object.keys(mcpServers)
  return names.length === 1
    ? []
    : [{ path: 'mcpServers', message: `names ${names.length} servers: the bridge serves one for now` }]
}

/** What authentication leaves open to doubt; there, doubt is a mistake. */
function unclear({ auth, mcpServers }: Settings): Issue[] {
  if (auth === undefined) return []
  const { tokens, passthrough } = auth
  if ((tokens !== undefined) === passthrough)
    return [{ path: 'auth', message: 'has to have either "tokens" or "passthrough": true, not both' }]
  return tokens === undefined ? misled(mcpServers) : mistaken(tokens)
}

/** Servers to which the client's credential cannot be sent, or another would be where a client shows none. */
function misled(servers: Settings['mcpServers']): Issue[] {
  return Object.entries(servers).flatMap(([name, entry]) => {
    if (isStdio(entry))
      return [{ path: 'auth.passthrough', message: `is for a server that has an address, and ${name} is a program` }]
    const own = Object.keys(entry.headers).find((header) => header.toLowerCase() === 'authorization')
    if (own === undefined) return []
    const message = 'would be sent for clients that show none: it and "auth.passthrough" exclude each other'
    return [{ path: `mcpServers.${name}.headers.${own}`, message }]
  })
}

/** Tokens that do not tell who it is. */
function mistaken(tokens: Readonly<Record<string, string>>): Issue[] {
  const entries = Object.entries(tokens)
  if (entries.length === 0) return [{ path: 'auth.tokens', message: 'names nobody, so that nobody could call' }]
  return entries.flatMap(([name, secret], i) => {
    const other = entries.slice(0, i).find(([, earlier]) => earlier === secret)
    return other ? [{ path: `auth.tokens.${name}`, message: `is the same as that of ${other[0]}` }] : []
  })
}

function exposed({ allowUnauthenticated, auth }: Settings, listen: Listen): Issue[] {
  if (listen.kind === 'stdio' || allowUnauthenticated || auth?.tokens || isLoopback(listen.host)) return []
  const message = `${listen.host} can be reached from other machines, and anybody there could call: name who may in "auth.tokens", or say --allow-unauthenticated if that is meant`
  return [{ path: 'listen', message }]
}

/** Paths that the bridge serves besides the endpoint, for clients of HTTP+SSE. */
export function ssePaths({ path }: { path: string }): { stream: string; messages: string } {
  const folder = path.replace(/[^/]*$/, '')
  return { stream: `${folder}sse`, messages: `${folder}message` }
}

/** One address cannot be two things. */
function colliding({ mcpServers }: Settings, listen: Listen): Issue[] {
  if (listen.kind === 'stdio') return []
  const { stream, messages } = ssePaths(listen)
  const issues: Issue[] = []
  if (listen.path === stream || listen.path === messages)
    issues.push({
      path: 'listen',
      message: `${listen.path} is where clients of HTTP+SSE are served: choose another path`,
    })
  const taken = [listen.path, stream, messages]
  for (const [name, server] of Object.entries(mcpServers)) {
    const twice = isStdio(server) ? [] : server.paths.filter((path) => taken.includes(path))
    for (const path of twice)
      issues.push({ path: `mcpServers.${name}.paths`, message: `${path} is a path of the bridge itself` })
  }
  return issues
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(?:\.[0-9]{1,3}){3}$/.test(host)
}

/** Replaces `${NAME}`, `${NAME:-default}` and `${env:NAME}` in what is sent to or started for a server, and in tokens. */
function expand(input: unknown, env: Environment): unknown {
  if (!isObject(input)) return input
  const issues: Issue[] = []
  const text = (value: unknown, path: string): unknown => {
    if (typeof value !== 'string') return value
    return value.replace(
      /\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g,
      (_all, name: string, fallback?: string) => {
        const found = env[name] ?? fallback
        if (found === undefined) issues.push({ path, message: `the environment has no variable ${name}` })
        return found ?? ''
      },
    )
  }
  const deep = (value: unknown, path: string): unknown => {
    if (Array.isArray(value)) return value.map((item, index) => text(item, `${path}.${index}`))
    if (isObject(value))
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, deep(item, `${path}.${key}`)]))
    return text(value, path)
  }
  const { mcpServers, auth, stateKeys } = input
  const expanded = {
    ...input,
    mcpServers: deep(mcpServers, 'mcpServers'),
    ...(stateKeys !== undefined && { stateKeys: deep(stateKeys, 'stateKeys') }),
    ...(isObject(auth) && { auth: { ...auth, tokens: deep(auth['tokens'], 'auth.tokens') } }),
  }
  if (issues.length > 0) throw new ConfigError(issues)
  return expanded
}

/** The issues of the branch of a union that came closest. */
function flatten(issue: z.core.$ZodIssue, before: readonly PropertyKey[]): Issue[] {
  const path = [...before, ...issue.path]
  if (issue.code === 'invalid_union') {
    const [closest] = [...issue.errors].sort((a, b) => a.length - b.length)
    if (closest && closest.length > 0) return closest.flatMap((inner) => flatten(inner, path))
  }
  if (issue.code === 'invalid_key') return issue.issues.flatMap((inner) => flatten(inner, path))
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => ({ path: [...path, key].join('.'), message: 'is not an option' }))
  return [{ path: path.join('.'), message: issue.message }]
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
