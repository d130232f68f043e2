/** The flags of the command line, one row each. The table of commands assigns them to commands. */
import { COPY_FORM_NAMES, isCopyForm } from '../config/copy-forms.js'
import { fromVariables, inFile, numberOf, pairs, reference, times } from './flag-values.js'
import { UsageError } from './usage-error.js'

/** A flag. Its description is that of the option it sets, or `about`. */
export interface Flag {
  /** One letter, after one dash. */
  short?: string
  /** The placeholder for its value; undefined for a switch, which has none. */
  value?: string
  /** It may be given several times. */
  many?: true
  /** It may only be given once, and this is the alternative. Of other flags the last one counts. */
  once?: string
  /** The option that it sets. The schema has its description, its values and its default. */
  option?: string
  /** It applies to servers with this key in their entry. */
  servers?: 'url' | 'command'
  /** The option's value for a switch; true by default. */
  to?: unknown
  /** Converts the given value; unchanged by default. Throws a UsageError. */
  read?: (given: never) => unknown
  /** The description of a flag that sets no option, or a fixed value. */
  about?: string
  example?: string
}

const SERVER = 'mcpServers.<name>'
/** The principal of callers with the command line's token. */
const CALLER = 'client'

export const FLAGS = {
  upstream: {
    short: 'u',
    value: '<server>',
    once: 'write several servers into a configuration file, and name it with --config',
    about:
      'The server: http(s)://…, sse+http(s)://… for HTTP+SSE, unix:/path/to.sock:/mcp, stdio:"command args", or env:NAME for an environment variable with one of these.',
    example: '--upstream https://example.com/mcp',
  },
  config: {
    short: 'c',
    value: '<file>',
    once: 'write all servers into one file',
    about:
      'JSON file with "mcpServers", or the file of a client. Known are those of Claude Desktop, VS Code, Cursor, Windsurf, Gemini CLI, opencode, Zed and Codex. Flags win over it.',
    example: '--config mcp.json',
  },
  server: {
    short: 's',
    value: '<name>',
    many: true,
    about: 'Use only this server of the configuration file. Default: all of them.',
    example: '--server github',
  },
  group: {
    short: 'g',
    value: '<name>',
    about: 'Serve only this group of the configuration file, and its servers.',
    example: '--group team',
  },
  listen: { short: 'l', value: '<where>', option: 'listen', example: '--listen stdio' },
  'tls-cert': { value: '<file>', option: 'tls.cert', example: '--tls-cert bridge.pem' },
  'tls-key': { value: '<file>', option: 'tls.key', example: '--tls-key bridge-key.pem' },
  admin: { value: '<url>', option: 'admin', example: '--admin http://127.0.0.1:9090' },
  'public-url': { value: '<url>', option: 'publicUrl', example: '--public-url https://example.com/tools' },
  'allowed-host': { value: '<name>', many: true, option: 'allowedHosts', example: '--allowed-host mcp.example.com' },
  'allowed-origin': {
    value: '<url>',
    many: true,
    option: 'allowedOrigins',
    example: '--allowed-origin https://app.example.com',
  },
  token: {
    value: '<reference>',
    option: 'auth.tokens',
    read: (given: string) => ({
      [CALLER]: reference(
        given,
        `--token needs a variable, as in --token '\${TOKEN}' with single quotes, or --token-file <file>`,
      ),
    }),
    about: 'The bearer token of all clients, in an environment variable.',
    example: `--token '\${TOKEN}'`,
  },
  'token-file': {
    value: '<file>',
    option: 'auth.tokens',
    read: (file: string) => ({ [CALLER]: inFile(file) }),
    about: 'Like --token, with the token in a file.',
    example: '--token-file /run/secrets/token',
  },
  'allow-unauthenticated': { option: 'allowUnauthenticated' },
  redis: { value: '<url>', option: 'redis.url', example: '--redis redis://redis:6379' },
  workers: {
    value: '<number>',
    option: 'workers',
    read: (given: string) => (given === 'auto' ? given : numberOf('workers', given)),
    example: '--workers auto',
  },
  publish: { option: 'publish', to: {} },
  era: { value: '<era>', option: `${SERVER}.era`, example: '--era modern' },
  session: { value: '<who>', option: `${SERVER}.session`, example: '--session shared' },
  process: { value: '<how>', option: `${SERVER}.process`, example: '--process single' },
  tasks: { value: '<which>', option: `${SERVER}.tasks`, example: '--tasks async' },
  header: {
    short: 'H',
    value: "'Name: value'",
    many: true,
    option: `${SERVER}.headers`,
    servers: 'url',
    read: (lines: string[]) => pairs(lines, ':', "--header needs 'Name: value'"),
    example: `--header 'Authorization: Bearer \${TOKEN}'`,
  },
  'header-file': { value: '<file>', option: `${SERVER}.headersFile`, servers: 'url', example: '--header-file headers' },
  ipv4: { option: `${SERVER}.ipv4`, servers: 'url' },
  ping: {
    value: '<milliseconds>',
    option: `${SERVER}.ping`,
    servers: 'url',
    read: (given: string) => numberOf('ping', given),
    example: '--ping 30000',
  },
  timeout: {
    value: 'name=milliseconds',
    many: true,
    option: `${SERVER}.timeouts`,
    read: (lines: string[]) => times(lines),
    example: '--timeout call=600000',
  },
  'deny-tool': { value: '<glob>', many: true, option: `${SERVER}.tools.deny`, example: "--deny-tool 'delete_*'" },
  ca: { value: '<file>', option: `${SERVER}.ca`, servers: 'url', example: '--ca ca.pem' },
  'client-cert': { value: '<file>', option: `${SERVER}.cert`, servers: 'url', example: '--client-cert client.pem' },
  'client-key': { value: '<file>', option: `${SERVER}.key`, servers: 'url', example: '--client-key client-key.pem' },
  env: {
    short: 'e',
    value: 'NAME=value',
    many: true,
    option: `${SERVER}.env`,
    servers: 'command',
    read: (lines: string[]) => pairs(lines, '=', '--env needs NAME=value'),
    example: `--env API_KEY='\${API_KEY}'`,
  },
  'header-env': {
    value: 'Name=VARIABLE',
    many: true,
    option: `${SERVER}.headers`,
    servers: 'url',
    read: (lines: string[]) => fromVariables(lines),
    about: 'Like --header, with the value of an environment variable.',
    example: '--header-env Authorization=MY_TOKEN',
  },
  'pass-environment': { option: `${SERVER}.passEnvironment`, servers: 'command' },
  cwd: { value: '<folder>', option: `${SERVER}.cwd`, servers: 'command', example: '--cwd /srv/files' },
  discover: { value: '<where>', many: true, option: 'discover', example: '--discover example.com' },
  'discover-allow': {
    value: '<host or network>',
    many: true,
    option: 'discoverAllow',
    example: '--discover-allow 10.0.0.0/8',
  },
  'discover-loopback': { option: 'discoverLoopback' },
  registry: { value: '<url>', option: 'registry', example: '--registry https://registry.example.com' },
  'read-only-tool': { value: '<glob>', many: true, option: 'readOnlyTools', example: "--read-only-tool 'list_*'" },
  'trust-store': { value: '<file>', option: 'trustStore', example: '--trust-store trust.json' },
  'client-id': { value: '<id>', option: `${SERVER}.oauth.clientId`, servers: 'url' },
  'client-secret': {
    value: '<reference>',
    option: `${SERVER}.oauth.clientSecret`,
    servers: 'url',
    read: (given: string) =>
      reference(given, `--client-secret needs a variable or a file, as in '\${SECRET}' or '\${file:/run/secrets/x}'`),
    example: `--client-secret '\${SECRET}'`,
  },
  scope: { value: "'<scopes>'", option: `${SERVER}.oauth.scopes`, servers: 'url', example: "--scope 'read write'" },
  issuer: {
    value: '<url>',
    option: `${SERVER}.oauth.issuer`,
    servers: 'url',
    example: '--issuer https://login.example.com/tenant',
  },
  'client-credentials': {
    option: `${SERVER}.oauth.grant`,
    servers: 'url',
    to: 'client_credentials',
    about: 'Get tokens with the credentials of the client, without a person.',
  },
  'device-code': {
    option: `${SERVER}.oauth.grant`,
    servers: 'url',
    to: 'device',
    about: 'Sign in with a browser of any device, where a code is entered.',
  },
  'client-metadata-url': {
    value: '<url>',
    option: `${SERVER}.oauth.clientMetadataUrl`,
    servers: 'url',
    example: '--client-metadata-url https://client.example.com/client.json',
  },
  'client-name': { value: '<name>', option: `${SERVER}.oauth.clientName`, servers: 'url' },
  'token-endpoint': {
    value: '<url>',
    option: `${SERVER}.oauth.endpoints.token`,
    servers: 'url',
    example: '--token-endpoint https://login.example.com/token',
  },
  'use-id-token': {
    option: `${SERVER}.oauth.bearer`,
    servers: 'url',
    to: 'id_token',
    about: 'Show the server the ID token in place of the access token.',
  },
  'success-url': {
    value: '<url>',
    option: `${SERVER}.oauth.successUrl`,
    servers: 'url',
    example: '--success-url https://app.example.com/signed-in',
  },
  'callback-port': {
    value: '<port>',
    option: `${SERVER}.oauth.callbackPort`,
    servers: 'url',
    read: (given: string) => numberOf('callback-port', given),
    example: '--callback-port 8765',
  },
  'redirect-uri': {
    value: '<url>',
    option: `${SERVER}.oauth.redirectUri`,
    servers: 'url',
    example: '--redirect-uri http://localhost:8765/callback',
  },
  resource: {
    value: '<uri>',
    option: `${SERVER}.oauth.resource`,
    servers: 'url',
    read: (given: string) => (given === 'false' ? false : given),
    example: '--resource false',
  },
  'oauth-param': {
    value: 'name=value',
    many: true,
    option: `${SERVER}.oauth.params`,
    servers: 'url',
    read: (lines: string[]) => pairs(lines, '=', '--oauth-param needs name=value'),
    example: '--oauth-param prompt=consent',
  },
  'sign-in-wait': {
    value: '<milliseconds>',
    option: `${SERVER}.oauth.wait`,
    servers: 'url',
    read: (given: string) => numberOf('sign-in-wait', given),
    example: '--sign-in-wait 60000',
  },
  account: { value: '<name>', option: 'oauth.account', example: '--account work' },
  browser: { value: '<command>', option: 'oauth.browser', example: '--browser firefox' },
  'no-browser': {
    option: 'oauth.browser',
    to: 'none',
    about: 'Print the address of the page instead of opening a browser.',
  },
  'token-store': { value: '<folder>', option: 'oauth.store', example: '--token-store /var/lib/mcp-bridge/tokens' },
  'no-oauth': { option: `${SERVER}.oauth`, servers: 'url', to: false, about: 'Never sign in to a server.' },
  inspect: { option: 'inspect', to: { try: 'loopback' } },
  'inspect-payloads': { value: '<which>', option: 'inspect.payloads', example: '--inspect-payloads errors' },
  record: {
    value: '<file>',
    about:
      'Write the calls of clients with their answers into a file, for "mcp-bridge replay". Secrets are hidden. If the file is a recording already, new calls are added to it.',
    example: '--record calls.json',
  },
  'log-level': { value: '<level>', option: 'log.level', example: '--log-level debug' },
  'log-format': { value: '<format>', option: 'log.format', example: '--log-format json' },
  json: { about: 'Print the result as JSON.' },
  offline: {
    about:
      'Do without the environment variables and files that the configuration refers to. "bundle" asks no server then.',
  },
  output: { short: 'o', value: '<file>', about: 'The file to write.', example: '-o weather.mcpb' },
  tools: {
    value: '<glob>...',
    many: true,
    about: 'Approve only these tools. Default: all tools that the server has now.',
    example: "--tools 'read_*' 'list_*'",
  },
  for: {
    value: '<time>',
    about: 'How long the approval lasts: hours, days or weeks, up to a year. Default: 30d.',
    example: '--for 8w',
  },
  backup: {
    value: '<pin>',
    many: true,
    about: 'Another key that the host may use later: the SHA-256 of a public key in base64.',
  },
  all: { about: 'Forget the tokens of all servers.' },
  file: {
    value: '<file>',
    about: 'The file of the client, if it is not in its usual place.',
    example: '--file .cursor/mcp.json',
  },
  together: { about: 'Replace all servers by one entry that offers the tools of all of them.' },
  'dry-run': { about: 'Show what would change, and change nothing.' },
  calls: { value: '<number>', about: 'Calls per second, at the busiest time.', example: '--calls 500' },
  sessions: { value: '<number>', about: 'Sessions of legacy clients at the same time.', example: '--sessions 10000' },
  streams: {
    value: '<number>',
    about: 'Open event streams at the same time. Default: one for each session.',
    example: '--streams 2000',
  },
  parked: {
    value: '<number>',
    about: 'Calls of modern clients that wait for an answer of a person. Default: 0.',
    example: '--parked 50',
  },
  forwarded: {
    value: '<percent>',
    about:
      'Share of the calls in sessions that arrive at another replica than that of their session: 0 with session affinity. Default: the share without affinity.',
    example: '--forwarded 0%',
  },
  as: {
    value: '<form>',
    about:
      'Print each call in a form that repeats it, if its texts are kept: curl, powershell, sdk-v1, sdk-v2 (code for an SDK) or recording (a file for "mcp-bridge replay").',
    read: (given: string) => {
      if (!isCopyForm(given))
        throw new UsageError(`--as needs one of ${COPY_FORM_NAMES.join(', ')}, not "${given}"`, 'tail')
      return given
    },
    example: '--as sdk-v2',
  },
  both: { about: 'Show the messages on both wires under each call.' },
  help: { short: 'h', about: 'Show help: of the program, or of the command.' },
  version: { short: 'V', about: 'Print the version.' },
} as const satisfies Readonly<Record<string, Flag>>

export type FlagName = keyof typeof FLAGS

export type Flags = {
  readonly [name in FlagName]?: (typeof FLAGS)[name] extends { value: string }
    ? (typeof FLAGS)[name] extends { many: true }
      ? readonly string[]
      : string
    : true
}

/** The row of a flag; undefined if there is no such flag. */
export function flagOf(name: string): Flag | undefined {
  return Object.hasOwn(FLAGS, name) ? FLAGS[name as FlagName] : undefined
}
