/** The reference of all options. `npm run schema` makes config/mcp-bridge.schema.json of it. */
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

/** Time limits that a server may have for itself. */
const serverTimes = {
  call: milliseconds.describe('Silence after which a call is given up; progress counts.'),
  callTotal: milliseconds.describe('Time after which a call is given up, progress or not.'),
  probe: milliseconds.describe('For the answer to server/discover: 10 s over HTTP, 15 s over stdio.'),
  initialize: milliseconds.describe('For the answer to initialize.'),
  idle: milliseconds.describe(
    'After which an unused session with a server is ended: 10 min over HTTP, never on stdio.',
  ),
  answer: z
    .number()
    .int()
    .min(1_000)
    .max(3_600_000)
    .describe(
      'That a client has to answer what a server asks in the middle of a call, and that a server may ask to be called again.',
    ),
}

const servedPath = z
  .string()
  .regex(/^(?:\/[\w.~%-]+)+$/, 'has to be a path like /tools/mcp, which does not end in a slash')

/** As in OAuth: visible characters, and no space among them. */
const scope = z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,128}$/, 'has to be visible ASCII without spaces')

const token = z.string().regex(/^[\x21-\x7e]{16,}$/, 'has to be 16 or more visible ASCII characters, without spaces')

const serverSettings = {
  disabled: z.boolean().default(false).describe('Leave this server out.'),
  path: servedPath.optional().describe('Where the server is served; /<name>/mcp by default.'),
  era: z.enum(['auto', 'legacy', 'modern']).default('auto').describe('What the server speaks; found out by default.'),
  session: z
    .enum(['per-principal', 'shared', 'per-request'])
    .default('per-principal')
    .describe(
      'Who may share a session with a legacy server, or a process that logs: one principal, everybody, or nobody.',
    ),
  roots: z
    .union([z.enum(['ask', 'off']), z.array(z.string().regex(/^file:\/\//, 'has to be a file:// address'))])
    .default('ask')
    .describe('Folders that a legacy server may see: its client is asked, the server cannot ask, or these.'),
  tasks: z
    .enum(['auto', 'async', 'off'])
    .default('auto')
    .describe('Which calls of a legacy server are tasks: those that have to be, also those that may be, or none.'),
  retry: z
    .enum(['off', 'safe'])
    .default('off')
    .describe(
      'Whether a tool is called once more when its answer was lost: never, or where the server says that it only reads or that calling it twice does no more than once.',
    ),
  cache: z
    .union([z.enum(['off', 'hints']), milliseconds])
    .default('off')
    .describe(
      'How long lists, discoveries and resources may be answered without asking again: not at all, as the server says, or milliseconds.',
    ),
  cacheFor: z
    .enum(['principal', 'public'])
    .default('principal')
    .describe('Who gets what is cached of this server: who has asked for it before, or everybody.'),
  scopes: z
    .record(z.string().min(1), z.array(scope).min(1))
    .default({})
    .describe('Scopes that it takes to see and to call tools, by globs of their names.'),
  strictRevisions: z.boolean().optional().describe('The same as compat.strictRevisions, for this server.'),
  timeouts: z
    .strictObject(
      Object.fromEntries(Object.entries(serverTimes).map(([k, time]) => [k, time.optional()])) as {
        [name in keyof typeof serverTimes]: z.ZodOptional<(typeof serverTimes)[name]>
      },
    )
    .default({})
    .describe('Milliseconds, where this server has others than the rest.'),
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
  ...serverSettings,
})

/** A port of this machine. */
const port = z.number().int().min(1).max(65_535)

/** How the bridge signs in to a server. Everything has a default: servers that want it say what they want. */
const oauth = z.strictObject({
  grant: z
    .enum(['code', 'client_credentials', 'token'])
    .default('code')
    .describe(
      'How tokens are obtained: a person signs in, the bridge asks in its own name, or somebody writes a file.',
    ),
  account: z
    .enum(['principal', 'service'])
    .optional()
    .describe(
      'Whose tokens are sent: those of whoever calls, or those of one account for all. By default the first for "code", the second for other grants.',
    ),
  clientId: z.string().min(1).optional().describe('The client that the authorization server knows the bridge as.'),
  clientSecret: z.string().min(1).optional().describe(`Its secret: best written as \${VAR} or \${file:path}.`),
  key: z
    .strictObject({ file: z.string().min(1), alg: z.string().min(1), kid: z.string().min(1).optional() })
    .optional()
    .describe('A private key (PEM or JWK) with which the client authenticates itself: private_key_jwt.'),
  clientAssertionFile: z
    .string()
    .min(1)
    .optional()
    .describe('A file with a JWT that says who the client is, as Kubernetes projects one. Read each time.'),
  clientMetadataUrl: z
    .url({ protocol: /^https?$/, error: 'has to be an https:// address' })
    .optional()
    .describe('Where a metadata document of the client is published, for servers that read such documents.'),
  clientName: z.string().min(1).max(200).optional().describe('What the bridge calls itself when it registers.'),
  issuer: z
    .url({ protocol: /^https?$/, error: 'has to be an https:// address' })
    .optional()
    .describe('The authorization server; the one that the server names by default.'),
  authServerMetadataUrl: z
    .url({ protocol: /^https?$/, error: 'has to be an https:// address' })
    .optional()
    .describe('Where the metadata of the authorization server are, if they are not at a well-known place.'),
  resource: z
    .union([z.string().min(1), z.literal(false)])
    .optional()
    .describe('Sent in the place of the resource that the server names; false sends none.'),
  pkce: z
    .enum(['require', 'assume'])
    .default('require')
    .describe('Whether an authorization server has to say that it checks S256, or is taken to.'),
  scopes: z
    .union([z.array(scope), z.string().transform((text) => text.split(/\s+/).filter((one) => one !== ''))])
    .optional()
    .describe('Scopes to ask for: a list, or a text with spaces. Those that the server names by default.'),
  params: z
    .record(z.string().min(1), z.string())
    .optional()
    .describe('Further parameters of the authorization request, such as "audience" or "prompt".'),
  callbackPort: port.optional().describe('The port of this machine that the browser comes back to.'),
  redirectUri: z
    .string()
    .regex(/^http:\/\/(?:localhost|127\.0\.0\.1|\[::1\]):\d+\/[^?#]*$/, 'has to be like http://localhost:8765/callback')
    .optional()
    .describe('The whole address that it comes back to, where one is registered.'),
  tokenFile: z
    .string()
    .min(1)
    .optional()
    .describe('A file with an access token, for the grant "token". Read again when it changes.'),
  wait: z
    .number()
    .int()
    .min(0)
    .max(300_000)
    .default(40_000)
    .describe('Milliseconds that a request waits for a person to sign in.'),
})

const httpServer = z.looseObject({
  type: z
    .enum(Object.keys(TRANSPORTS).filter((name) => name !== 'stdio') as [string, ...string[]])
    .optional()
    .describe('How to reach the server; by default Streamable HTTP, and HTTP+SSE where that is not understood.'),
  url: z.url({ protocol: /^https?$/, error: 'has to be an http:// or https:// address' }),
  headers: z.record(z.string(), z.string()).default({}).describe('Sent with every request to the server.'),
  oauth: z
    .union([z.literal(false), oauth])
    .optional()
    .describe('How the bridge signs in where the server wants it; false to never sign in.'),
  paths: z
    .array(z.string().regex(/^\/[\w.~%/-]*(?:\/\*)?$/, 'has to be a path like /.well-known/x or /files/*'))
    .default([])
    .describe('Paths beside the endpoint that are passed on to the same paths of the server; none by default.'),
  ...serverSettings,
})

const server = z.union([stdioServer, httpServer])

export type OAuthSettings = z.infer<typeof oauth>

export const fileSchema = z.strictObject({
  $schema: z.string().optional().describe('Address of the JSON Schema of this file, for editors.'),
  mcpServers: z
    .record(entryName, server)
    .default({})
    .describe('Servers by name, as in the configuration of Claude Desktop, Cursor and others.'),
  discover: z
    .array(z.string().min(1))
    .default([])
    .describe(
      'Servers to find: hosts, addresses, files of other programs, registry:<query>, stdio:<command>. What is found is kept in quarantine until it is trusted.',
    ),
  registry: z
    .url({ protocol: /^https?$/, error: 'has to be an https:// address' })
    .optional()
    .describe('The registry that is asked; the official one by default.'),
  discoverAllow: z
    .array(z.string().min(1))
    .default([])
    .describe(
      'Hosts, addresses and networks that may be reached though they are not public, when servers are looked for.',
    ),
  discoverLoopback: z
    .boolean()
    .default(false)
    .describe('Also reach this machine, and there without TLS, when servers are looked for: for development.'),
  readOnlyTools: z
    .array(z.string().min(1).max(128))
    .default([])
    .describe('Globs of tools that may be called in quarantine, if the server says that they only read.'),
  trustStore: z
    .string()
    .optional()
    .describe('The file with what has been said about trust; mcp-bridge/trust.json in the folder of configurations.'),
  publish: z
    .strictObject({
      publisher: z
        .string()
        .regex(/^[a-z0-9](?:[a-z0-9.-]{0,126}[a-z0-9])?$/, 'has to be made of small letters, digits, "." and "-"')
        .optional()
        .describe('Who publishes; the host of publicUrl by default.'),
      key: z
        .string()
        .optional()
        .describe('A private key to sign with, PEM or JWK: best referred to in a file of its own.'),
    })
    .optional()
    .describe('Serve a manifest of the servers at /.well-known/mcp.json. Needs "publicUrl".'),
  listen: z.string().default('http://127.0.0.1:8080/mcp').describe('Where to listen: an http:// address, or stdio.'),
  admin: z
    .string()
    .optional()
    .describe(
      'An address of its own, as in http://0.0.0.0:9090, for /healthz, /readyz and /metrics. Whoever reaches it reads them.',
    ),
  metrics: z.boolean().default(true).describe('Count and time what goes through, for Prometheus.'),
  redis: z
    .strictObject({
      url: z
        .url({ protocol: /^rediss?$/, error: 'has to be a redis:// or rediss:// address' })
        .describe('Where Redis is, with user and password if it wants them.'),
      prefix: z.string().default('mcp-bridge:').describe('What all keys and channels begin with.'),
      timeout: milliseconds.default(250).describe('Milliseconds that one command may take.'),
    })
    .optional()
    .describe('What several replicas of the bridge share. Needs "stateKeys". Without it a bridge is on its own.'),
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
          z.union([token, z.strictObject({ token, scopes: z.array(scope).default([]) })]),
        )
        .optional()
        .describe(
          'Bearer tokens by the names of their principals: one of them is asked of every request over HTTP. Each may come with the scopes of its principal.',
        ),
      passthrough: z
        .boolean()
        .default(false)
        .describe(
          "Send the client's own Authorization on to the one server, which decides. Only for where bridge and server are one resource in the eyes of the client.",
        ),
    })
    .optional()
    .describe('Who may call over HTTP. Without it anybody may, and is one principal.'),
  oauth: z
    .strictObject({
      store: z
        .string()
        .min(1)
        .optional()
        .describe('The folder with the tokens of servers; mcp-bridge/tokens in the folder of configurations.'),
      browser: z
        .string()
        .min(1)
        .optional()
        .describe('The command that opens an address for a person to sign in, or "none"; the system\'s by default.'),
      account: z
        .string()
        .regex(/^[\w.-]{1,64}$/, 'has to be made of letters, digits, ".", "_" and "-"')
        .optional()
        .describe('The account of the person at this machine, where they have several with one server.'),
      allow: z
        .array(z.string().min(1))
        .default([])
        .describe(
          'Hosts, addresses and networks of authorization servers that may be reached though they are not public.',
        ),
    })
    .prefault({})
    .describe('How the bridge signs in to servers.'),
  stateKeys: z
    .array(z.string().min(32, 'has to have at least 32 characters'))
    .default([])
    .describe(
      'Secrets that seal what clients keep for the bridge: the first seals, all open. By default, one of its own.',
    ),
  allowUnauthenticated: z.boolean().default(false).describe('Listen beyond loopback though anybody may call.'),
  log: z
    .strictObject({
      level: z
        .enum(['trace', 'debug', 'info', 'warn', 'error', 'silent'])
        .default('info')
        .describe('What is logged: this, and what is worse.'),
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
      memory: z
        .number()
        .int()
        .min(1024 * 1024)
        .optional()
        .describe(
          'Bytes of all messages that are read, kept or waiting to be written; a quarter of the heap by default.',
        ),
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
      perPrincipal: z
        .number()
        .positive()
        .max(1)
        .optional()
        .describe(
          'Part of what the others leave of each of these limits that one principal may use: 0.5 where there can be several, else 1.',
        ),
      parked: z.number().int().positive().default(2_000).describe('Calls that wait for their clients to answer.'),
      parkedPerPrincipal: z.number().int().positive().default(32).describe('The same, of one principal.'),
      sessions: z.number().int().positive().default(200).describe('Sessions with one HTTP server.'),
      processes: z.number().int().positive().default(16).describe('Processes of one stdio server.'),
      startsPerMinute: z
        .number()
        .int()
        .positive()
        .default(60)
        .describe(
          'Processes of one stdio server that are started for one principal, beyond as many as there may be at once.',
        ),
    })
    .prefault({}),
  timeouts: z
    .strictObject({
      call: serverTimes.call.default(300_000),
      callTotal: serverTimes.callTotal.default(3_600_000),
      probe: serverTimes.probe.optional(),
      initialize: serverTimes.initialize.default(60_000),
      idle: serverTimes.idle.optional(),
      answer: serverTimes.answer.default(600_000),
      clientIdle: milliseconds
        .default(1_800_000)
        .describe('Without a request or an open stream, after which the session of a legacy client ends.'),
      clientGone: milliseconds
        .default(300_000)
        .describe('The same, where the client had opened a stream for the messages of the server and has closed it.'),
      keepAlive: milliseconds.default(15_000).describe('Between signs of life on a silent stream.'),
      write: milliseconds
        .default(30_000)
        .describe('After which a client that takes nothing of what is being written to it is cut off.'),
      commitAfter: milliseconds.default(10_000).describe('Silence after which an answer becomes a stream.'),
      drainDelay: z
        .number()
        .int()
        .nonnegative()
        .default(0)
        .describe('After SIGTERM, the bridge keeps serving for this long while /readyz fails.'),
      drainTimeout: milliseconds
        .default(25_000)
        .describe('After that, for calls in flight to end, and for clients to answer what they have been asked.'),
    })
    .prefault({}),
})

export type Settings = z.infer<typeof fileSchema>
export type ServerSettings = Settings['mcpServers'][string]
export type StdioSettings = z.infer<typeof stdioServer>
export type HttpSettings = z.infer<typeof httpServer>

export function isStdio(settings: ServerSettings): settings is StdioSettings {
  return 'command' in settings
}

/** The transport that an HTTP entry asks for; undefined where it leaves that to be found out. */
export function transportOf({ type }: HttpSettings): 'stdio' | 'http' | 'sse' | undefined {
  return type === undefined ? undefined : TRANSPORTS[type]
}

/** Keys of an entry that mean something here. */
export function knownKeys(entry: object): readonly string[] {
  return Object.keys(('command' in entry ? stdioServer : httpServer).shape)
}

/**
 * How the bridge signs in to a server, where it does: not to programs, not where a credential is configured, and not where
 * clients bring their own. `account` says whose tokens are sent.
 */
export function signInOf(
  own: ServerSettings,
  settings: Callers,
): (Omit<OAuthSettings, 'account'> & { account: 'principal' | 'service' }) | undefined {
  if (isStdio(own) || own.oauth === false || settings.auth?.passthrough) return undefined
  if (Object.keys(own.headers).some((name) => name.toLowerCase() === 'authorization')) return undefined
  const given = own.oauth ?? oauth.parse({})
  const account = given.account ?? (given.grant === 'code' ? 'principal' : 'service')
  const isShared = own.session === 'shared' && hasSeveral(settings)
  // Of one session for several principals, nobody could say whose tokens are sent with it.
  return account === 'principal' && isShared ? undefined : { ...given, account }
}

/** Who may call, as far as it matters how many they are. */
export interface Callers {
  auth?: { passthrough: boolean; tokens?: Readonly<Record<string, unknown>> | undefined } | undefined
}

/** Whether there can be several principals. */
export function hasSeveral({ auth }: Callers): boolean {
  return auth?.passthrough === true || Object.keys(auth?.tokens ?? {}).length > 1
}

/** Keys of entries of either kind that mean something here. */
export const SERVER_KEYS: ReadonlySet<string> = new Set([
  ...Object.keys(stdioServer.shape),
  ...Object.keys(httpServer.shape),
])

/** Names of all options. */
export const OPTIONS: readonly string[] = Object.keys(fileSchema.shape)

/** The part of what the others leave of a bound that one principal may have: all of it, where there is only one. */
export function shareOf(settings: Callers & Pick<Settings, 'limits'>): number {
  return settings.limits.perPrincipal ?? (hasSeveral(settings) ? 0.5 : 1)
}

/** The secret of a principal. */
export function secretOf(token: string | { token: string }): string {
  return typeof token === 'string' ? token : token.token
}
