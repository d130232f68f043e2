/** Options of one server: the entries of `mcpServers`. */
import * as z from 'zod'
import { NOT_READ_ONLY, TRANSPORTS } from '../server-words.js'
import { account } from './account.js'
import { choice } from './choice.js'
import { forward } from './forward.js'
import { oauthOfServer } from './sign-in.js'
import { timeoutsOfServer } from './timeouts.js'
import { milliseconds, scope, servedPath, text, unscoped, webAddress } from './values.js'

const serverSettings = {
  disabled: z.boolean().default(false).describe('Leave this server out.'),
  path: servedPath.optional().describe('Path at which the bridge serves this server. Default: /<name>/mcp.'),
  era: z.enum(['auto', 'legacy', 'modern']).default('auto').describe('Protocol era of the server. "auto" detects it.'),
  session: z
    .enum(['per-principal', 'shared', 'per-request'])
    .default('per-principal')
    .describe(
      'Which calls share a session with a legacy server, or a process of a modern stdio server that logs: those of one principal, all calls, or none.',
    ),
  questions: z
    .enum(['guess', 'exact'])
    .default('guess')
    .describe(
      'How to find the call that a question of a legacy server belongs to, if several calls share a session and the question does not say: "guess" takes a call whose tool has asked before, otherwise the oldest one. "exact" gives each call of a tool, prompt or resource that has asked before a session of its own (for a program, a process).',
    ),
  process: z
    .enum(['per-session', 'single', 'own'])
    .default('per-session')
    .describe(
      'Whether a process of a program is for one client, and then for the next equal client of its principal (per-session), ends with its client (own), or is for all clients of a principal (single), for programs that can run only once. The same for sessions with an HTTP server.',
    ),
  roots: z
    .union([
      z.enum(['ask', 'off']),
      z.array(z.string().regex(/^file:\/\//, 'has to be an address like file:///srv/data')),
    ])
    .default('ask')
    .describe(
      'Roots for a legacy server: "ask" asks the client, "off" does not declare the capability, and a list of file:// addresses is sent unchanged.',
    ),
  tasks: z
    .enum(['auto', 'async', 'off'])
    .default('auto')
    .describe(
      'Which tool calls to a legacy server become tasks: those of tools that require tasks (auto), also those of tools that support tasks (async), or none (off).',
    ),
  retry: z
    .enum(['off', 'safe'])
    .default('off')
    .describe(
      'Whether to repeat a tool call whose response was lost: never (off), or if the server declares the tool read-only or idempotent (safe).',
    ),
  cache: z
    .union([z.enum(['off', 'hints']), milliseconds])
    .default('off')
    .describe(
      'How long the bridge caches lists, server/discover and resources: not at all (off), for the time that the server sets (hints), or for this many milliseconds, up to an hour.',
    ),
  cacheFor: z
    .enum(['principal', 'public'])
    .default('principal')
    .describe(
      'Who gets a cached response: the principal that requested it, or everybody. With "cache": "hints", everybody also gets what the server declares public.',
    ),
  scopes: z
    .record(text, z.array(scope))
    .default({})
    .describe(
      `Scopes that a principal needs to see and call a tool, by globs of tool names, as in { "delete_*": ["write"] }. "${NOT_READ_ONLY}" stands for all tools that the server does not mark as read-only. All keys that fit a tool count, in any order. An empty list requires nothing.`,
    ),
  unscoped,
  ...choice,
  strictRevisions: z
    .boolean()
    .optional()
    .describe('compat.strictRevisions for this server. Default: that of "compat".'),
  timeouts: timeoutsOfServer,
}

export const stdioServer = z.looseObject({
  type: z
    .literal('stdio', 'has to be "stdio" or left out, because this server is a program')
    .optional()
    .describe('Transport. Not needed: "command" implies stdio.'),
  command: text.describe('Program to start. It is not run in a shell.'),
  args: z.array(z.string()).default([]).describe('Arguments of the program.'),
  env: z
    .record(z.string(), z.union([z.string(), z.number().transform(String), z.boolean().transform(String)]))
    .default({})
    .describe(
      'Environment variables of the program. From the environment of the bridge it inherits only PATH, HOME, the proxy variables and a few others.',
    ),
  passEnvironment: z
    .boolean()
    .default(false)
    .describe('Whether the program inherits the whole environment of the bridge.'),
  cwd: z.string().optional().describe('Working directory of the program. Default: that of the bridge.'),
  start: z
    .enum(['eager', 'lazy'])
    .optional()
    .describe(
      'When a program of a group is started: with the bridge and for each list (eager), or when a client uses something of it (lazy), if what it lists is known. Default: lazy in groups of more than five programs, if "listen" is stdio, a unix socket or a loopback address; else eager.',
    ),
  ...serverSettings,
})

const address = webAddress('http:// or https://', ': write it like http://127.0.0.1:8080/mcp')

export const httpServer = z.looseObject({
  type: z
    .enum(
      Object.keys(TRANSPORTS).filter((name) => name !== 'stdio') as [string, ...string[]],
      'has to be "http" (Streamable HTTP), "sse" (HTTP+SSE) or left out, because this server has an address',
    )
    .optional()
    .describe(
      'Transport: Streamable HTTP (http and its synonyms) or HTTP+SSE (sse). Default: Streamable HTTP, then HTTP+SSE if the server does not support it.',
    ),
  url: z
    .union([address, z.array(address).min(1)])
    .describe('Address of the server, or a list of the addresses of its replicas.'),
  resolve: z
    .enum(['one', 'all'])
    .default('one')
    .describe(
      'What the host name in "url" stands for: one server (one), or replicas of it at all IP addresses that it resolves to, which the bridge looks up every 5 s (all). Without effect through a proxy.',
    ),
  socket: text
    .max(103, 'is too long: the path of a socket has at most 103 bytes')
    .optional()
    .describe(
      'Unix socket of the server. The bridge connects to it instead of the host and port of "url", and never signs in.',
    ),
  headers: z.record(z.string(), z.string()).default({}).describe('Headers of every request to the server.'),
  forward,
  headersFile: text
    .optional()
    .describe(
      'File with further headers, one "Name: value" in each line. Lines that begin with # are comments. Headers of "headers" win.',
    ),
  ipv4: z
    .boolean()
    .default(false)
    .describe(
      'Whether to connect over IPv4 only, also for a sign-in: for networks that lose what is sent over IPv6. A proxy chooses by itself.',
    ),
  ping: z
    .number()
    .int()
    .min(1_000)
    .max(3_600_000)
    .optional()
    .describe(
      'Interval in milliseconds at which the bridge pings a legacy server in a session without calls, so that nobody on the way ends the session. Default: no pings.',
    ),
  ca: text
    .optional()
    .describe(
      'PEM file with the CA certificates to trust for this server, instead of the public ones. For its sign-in, the bridge trusts both.',
    ),
  cert: text
    .optional()
    .describe('PEM file with the certificate that the bridge shows this server (mutual TLS). Requires "key".'),
  key: text.optional().describe('PEM file with the private key of "cert", without a passphrase.'),
  oauth: z
    .union([z.literal(false), oauthOfServer])
    .optional()
    .describe('OAuth client of the bridge for this server; false turns sign-in off.'),
  account,
  paths: z
    .array(z.string().regex(/^\/[\w.~%/-]*(?:\/\*)?$/, 'has to be a path like /.well-known/x or /files/*'))
    .default([])
    .describe(
      'Further paths that the bridge forwards to the same paths of the server, such as /files/*. They need no token.',
    ),
  ...serverSettings,
})

/** One entry of `mcpServers`. */
export const server = z.union([stdioServer, httpServer])

export type ServerSettings = z.infer<typeof server>
export type StdioSettings = z.infer<typeof stdioServer>
export type HttpSettings = z.infer<typeof httpServer>
