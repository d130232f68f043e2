/** docs/reference: pages of all options and flags, from the schema and the table of flags. `npm run schema` writes them. */

import { commandsWith, EVERYWHERE } from '../src/command/commands.js'
import { FLAGS, type FlagName, flagOf } from '../src/command/flags.js'
import { aboutFlag } from '../src/command/help.js'
import { options, type ReferenceOption } from '../src/config/reference.js'

interface Section {
  title: string
  text?: string
  /** Selects its options; each option is in one section. */
  has(option: ReferenceOption): boolean
}

const under =
  (...paths: readonly string[]) =>
  (option: ReferenceOption) =>
    paths.some((path) => option.path === path || option.path.startsWith(`${path}.`))

const ofServer = (kind: ReferenceOption['kind']) => (option: ReferenceOption) =>
  option.kind === kind && under('$schema', 'mcpServers')(option) && !signIn(option)
const signIn = under('mcpServers.<name>.oauth')

/** Subjects of the page about servers, in its order. */
const OF_SERVERS: readonly Section[] = [
  { title: 'Servers', has: ofServer(undefined) },
  {
    title: 'Servers that are programs',
    text: 'An entry with `command`. On the command line: `mcp-bridge <program> [args]`, or `--upstream stdio:"program args"`.',
    has: ofServer('stdio'),
  },
  {
    title: 'Servers with an address',
    text: 'An entry with `url`. On the command line: `mcp-bridge <url>`, or `--upstream <url>`. `sse+http://…` and `sse+https://…` set `type` to `sse`; `unix:/path/to.sock:/mcp` sets `socket`.',
    has: ofServer('http'),
  },
  {
    title: 'Sign-in to one server',
    text: 'For servers with an address. [auth.md](../auth.md) says how sign-in works.',
    has: signIn,
  },
]

/** Subjects of the page about the bridge, in its order. */
const OF_BRIDGE: readonly Section[] = [
  {
    title: 'Groups',
    text: '[groups.md](../groups.md) says what clients of a group see.',
    has: under('groups', 'lists'),
  },
  {
    title: 'Where clients connect',
    has: under(
      'listen',
      'tls',
      'socketMode',
      'admin',
      'adminToken',
      'publicUrl',
      'allowedHosts',
      'allowedOrigins',
      'trustedProxies',
    ),
  },
  {
    title: 'Who may call',
    text: '[access.md](../access.md) says how callers are known.',
    has: under('auth', 'allowUnauthenticated'),
  },
  { title: 'Who did what', text: '[audit.md](../audit.md) says what a line has.', has: under('audit') },
  { title: 'Sign-in to all servers', has: under('oauth') },
  {
    title: 'Discovery and trust',
    text: '[discovery.md](../discovery.md) says how servers are found, [trust.md](../trust.md) how they are trusted.',
    has: under('discover', 'registry', 'discoverAllow', 'discoverLoopback', 'readOnlyTools', 'trustStore', 'publish'),
  },
  {
    title: 'Replicas',
    text: '[replicas.md](../replicas.md) says how replicas work together.',
    has: under('redis', 'replicas', 'workers', 'stateKeys'),
  },
  { title: 'Log and metrics', has: under('log', 'metrics', 'metricsTools') },
  { title: 'Inspector', text: '[inspect.md](../inspect.md) says what it shows.', has: under('inspect') },
  { title: 'Compatibility', has: under('compat') },
  { title: 'Timeouts', has: under('timeouts') },
  { title: 'Limits', has: under('limits') },
]

/** Environment variables that the bridge itself reads. */
const VARIABLES: readonly (readonly [names: readonly string[], what: string])[] = [
  [
    ['OTEL_EXPORTER_OTLP_ENDPOINT'],
    'Address of a collector. Traces are sent to /v1/traces under it. Default: no traces.',
  ],
  [['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'], 'Address to which traces are sent, as it is. Default: no traces.'],
  [
    ['OTEL_TRACES_EXPORTER'],
    '"otlp" sends traces to http://localhost:4318 without an endpoint; "none" turns them off.',
  ],
  [
    ['OTEL_EXPORTER_OTLP_PROTOCOL', 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL'],
    'Format of traces: http/protobuf or http/json. Default: http/protobuf.',
  ],
  [['OTEL_SDK_DISABLED'], '"true" turns traces off.'],
  [
    ['OTEL_EXPORTER_OTLP_LOGS_PROTOCOL'],
    'Format of the audit log at a collector. Default: that of OTEL_EXPORTER_OTLP_PROTOCOL. The page on the audit log lists the other variables for it.',
  ],
  [
    ['XDG_CONFIG_HOME'],
    'Configuration folder of the user, with mcp-bridge/trust.json and mcp-bridge/tokens, and on Linux with the files of other programs. Default: ~/.config.',
  ],
  [
    ['XDG_STATE_HOME'],
    'Folder with mcp-bridge/lists, what servers listed last, and two sockets of a bridge: mcp-bridge/<process id>.status for "mcp-bridge status", and on stdio <process id>.sock for its inspector; on Windows files with the names of pipes. Default: ~/.local/state.',
  ],
  [
    ['HTTPS_PROXY', 'HTTP_PROXY', 'NO_PROXY'],
    'Proxies for everything that goes out over https:// and http://, and hosts that need none; also in lower case. See the page on networks.',
  ],
  [
    ['MCP_BRIDGE_HEALTH_FILE'],
    'File into which the bridge writes the time every two seconds while it serves, for the health check of the image. Default: none; in the image /dev/shm/mcp-bridge-health.',
  ],
  [
    ['LISTEN_PID', 'LISTEN_FDS', 'LISTEN_FDNAMES'],
    'Sockets that systemd has opened for the bridge, for "listen" and, with that name, for "admin". See the page on systemd.',
  ],
  [['NO_COLOR', 'TERM'], 'Whether "tail" and "replay" use colours: not with NO_COLOR, and not if TERM is "dumb".'],
  [
    ['APPDATA', 'LOCALAPPDATA'],
    'On Windows: folders in which "discover files:" and "wrap" look for the files of other programs.',
  ],
  [['CODEX_HOME'], 'Folder in which "discover files:" and "wrap" look for the file of Codex. Default: ~/.codex.'],
  [['CLAUDE_CONFIG_DIR'], 'Folder in which "wrap" looks for the file of Claude Code. Default: the home folder.'],
  [['BROWSER'], 'Command that opens the sign-in page, if "oauth.browser" is not set.'],
  [
    ['DISPLAY', 'WAYLAND_DISPLAY', 'SSH_CONNECTION', 'SSH_TTY', 'WSL_DISTRO_NAME'],
    'Whether this machine has a browser that can be opened for a sign-in.',
  ],
  [['PATH', 'PATHEXT'], 'Where programs are found that are named on the command line or in "command".'],
  [['NODE_EXTRA_CA_CERTS'], 'Of Node.js: file with further certificate authorities, as PEM.'],
  [['NODE_OPTIONS'], 'Of Node.js: for example --max-old-space-size=<MiB>, the size of the heap.'],
]

const GENERATED =
  '<!-- Generated by "npm run schema" from src/config/schema/schema.ts and src/command/flags.ts. Change those. -->'

const UNITS = [
  'Times are in milliseconds and sizes in bytes. `<name>` is a name that you choose. "—" means that there is no flag, or no default',
  'other than the one that the description names.',
]

/** The pages of the reference, by their names in docs/reference. */
export function configurationPages(): Readonly<Record<string, string>> {
  const all = options()
  const sections = [...OF_SERVERS, ...OF_BRIDGE]
  const lost = all.filter((option) => sections.filter((section) => section.has(option)).length !== 1)
  if (lost.length > 0) throw new Error(`Not in one section of a page: ${lost.map(({ path }) => path).join(', ')}`)
  const tables = (subjects: readonly Section[]) =>
    subjects.flatMap((section) => [
      `## ${section.title}`,
      '',
      ...(section.text ? [section.text, ''] : []),
      ...table(['Option', 'Flag', 'Type', 'Default', 'Description'], all.filter(section.has).map(row)),
      '',
    ])
  return {
    'server-options.md': [
      '# Options of servers',
      '',
      GENERATED,
      '',
      'Members of an entry of `mcpServers` in a [configuration file](../configuration.md). Options of the bridge are in [options.md](options.md).',
      ...UNITS,
      '',
      ...tables(OF_SERVERS),
    ].join('\n'),
    'options.md': [
      '# Options of the bridge',
      '',
      GENERATED,
      '',
      'Members beside `mcpServers` in a [configuration file](../configuration.md). Those of one server are in',
      '[server-options.md](server-options.md). [mcp-bridge.schema.json](../../config/mcp-bridge.schema.json) lets editors complete them.',
      ...UNITS,
      '',
      ...tables(OF_BRIDGE),
    ].join('\n'),
    'flags.md': [
      '# Flags and environment variables',
      '',
      GENERATED,
      '',
      'Flags win over the [configuration file](../configuration.md). Those that set an option are beside it, in [options.md](options.md) and',
      '[server-options.md](server-options.md). `mcp-bridge help <command>` shows all flags of a command.',
      '',
      '## Flags without an option',
      '',
      ...table(['Flag', 'Commands', 'Description'], flagRows()),
      '',
      '## Environment variables',
      '',
      'The bridge reads these. No option can be set by an environment variable, except through a',
      '[reference](../configuration.md#references-to-variables-and-files).',
      '',
      ...table(
        ['Variable', 'Meaning'],
        VARIABLES.map(([names, what]) => [names.map(code).join(', '), escaped(what)]),
      ),
      '',
    ].join('\n'),
  }
}

function row(option: ReferenceOption): string[] {
  const flags = (Object.keys(FLAGS) as FlagName[]).filter((name) => flagOf(name)?.option === option.path)
  return [
    code(option.path),
    flags.length === 0 ? '—' : flags.map(flagText).join(', '),
    escaped(option.isGroup ? 'object' : option.type),
    defaultText(option),
    escaped(option.about),
  ]
}

function flagRows(): string[][] {
  const own = (Object.keys(FLAGS) as FlagName[]).filter((name) => flagOf(name)?.option === undefined)
  return own.map((name) => {
    const commands = EVERYWHERE.includes(name) ? 'all' : commandsWith(name).map(code).join(', ')
    return [flagText(name), commands, escaped(aboutFlag(name))]
  })
}

function flagText(name: FlagName): string {
  const { short, value } = flagOf(name) ?? {}
  const long = code(value === undefined ? `--${name}` : `--${name} ${value}`)
  return short === undefined ? long : `${code(`-${short}`)}, ${long}`
}

function defaultText({ default: value, about }: ReferenceOption): string {
  if (value === undefined) return '—'
  if (Array.isArray(value) || typeof value === 'object') return 'none'
  if (typeof value !== 'number') return code(String(value))
  const unit = /\bmilliseconds\b/i.test(about) ? duration(value) : /\bbytes\b/i.test(about) ? size(value) : undefined
  return unit === undefined ? code(String(value)) : `${code(String(value))} (${unit})`
}

function duration(ms: number): string | undefined {
  const units: readonly [number, string][] = [
    [3_600_000, 'h'],
    [60_000, 'min'],
    [1_000, 's'],
  ]
  const [length, name] = units.find(([length]) => ms >= length && ms % length === 0) ?? []
  return length === undefined ? undefined : `${ms / length} ${name}`
}

function size(bytes: number): string | undefined {
  return bytes % 2 ** 20 === 0 ? `${bytes / 2 ** 20} MiB` : undefined
}

/** The lines of a table in Markdown. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)]
}

function code(text: string): string {
  return `\`${text.replaceAll('|', '\\|')}\``
}

/** Escapes a text for Markdown. */
function escaped(text: string): string {
  return text.replace(/[<>|*_`]/g, (one) => `\\${one}`)
}
