/** What programs give to the bridge and get from it: the types that the package exports. */
import type { SdkTransport, Serve } from '../../mcp/ports/transport.js'
import type { AddressEntry, FileOptions, GroupEntry, ProgramEntry, ServerOptions } from './file-options.js'

export type { AddressEntry, FileOptions, GroupEntry, ProgramEntry, SdkTransport, Serve, ServerOptions }

/** A server in this process, in place of a program or an address. */
export interface InProcessEntry extends ServerOptions {
  /**
   * Connects a new server to a transport, as in `(transport) => createServer().connect(transport)` with an SDK. It is called for
   * each session, as a program is started for each.
   */
  serve: Serve
}

/** One server. */
export type ServerEntry = ProgramEntry | AddressEntry | InProcessEntry

/** A log, such as that of Fastify, or one of pino. */
export interface Logger {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
  /** Whether lines of a level are written; by default all are. */
  isLevelEnabled?(level: string): boolean
}

/** The options of a configuration file that have a meaning in a program, by their names in the file. */
export interface CommonOptions
  extends Pick<
    FileOptions,
    | 'groups'
    | 'auth'
    | 'publicUrl'
    | 'allowedHosts'
    | 'allowedOrigins'
    | 'trustedProxies'
    | 'oauth'
    | 'stateKeys'
    | 'compat'
    | 'limits'
    | 'timeouts'
  > {
  /** The only server, as on a command line: `https://example.com/mcp`, or `stdio:npx -y a-server`. */
  upstream?: string
  /** Servers by name. */
  mcpServers?: Readonly<Record<string, ServerEntry>>
  /** Which calls are logged when they end. */
  log?: { calls?: 'all' | 'failed' | 'none' }
  /** Where references to environment variables lead, and what programs inherit. Default: that of the process. */
  env?: Readonly<Record<string, string | undefined>>
}

/** Options of `createBridge`. */
export interface BridgeOptions extends CommonOptions {
  /** The path of the endpoint in requests for `fetch`. Default: /mcp. */
  path?: string
  /** The log. Default: nothing is logged. */
  logger?: Logger
  /**
   * Who sends a request: a name, by which callers are kept apart. Without a name the request is refused. By default everybody is
   * one anonymous principal, or `auth` decides.
   */
  principal?: (request: Request) => string | undefined | Promise<string | undefined>
}

/** Which server or group a transport is connected to, and who is at its other end. */
export interface ConnectOptions {
  /** The name of a server or group. Default: the only group, or else the only server. */
  to?: string
  /** The name of the client's user, by which callers are kept apart. Default: local. */
  principal?: string
}

/** A bridge in this process. */
export interface Bridge {
  /** Answers a request to one of its endpoints, as handlers of the Fetch API do. */
  readonly fetch: (request: Request) => Promise<Response>
  /** Serves a client at the other end of a transport. Resolves when it reads from it. */
  connect(transport: SdkTransport, options?: ConnectOptions): Promise<void>
  /** Lets calls in progress end, for `timeouts.drainTimeout` at most, and ends all sessions, programs and transports. */
  close(): Promise<void>
}
