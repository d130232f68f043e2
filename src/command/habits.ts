/**
 * Flags and commands of programs that people may have used before, and their equivalents here. The flags are those of supergateway
 * 4.0, of both programs called mcp-proxy (punkpeye's 6.7 and sparfenyuk's 0.11) and of mcp-remote 0.15.
 */
import { DOCUMENTS } from '../base/texts/documents.js'

const PROGRAMS = { s: 'supergateway', p: 'mcp-proxy', r: 'mcp-remote' } as const

interface Habit {
  /** Programs with the flag; empty for a flag that people just guess. */
  of: string
  /** The equivalent here, for the given value. */
  here: string | ((value: string) => string)
}

const PATH =
  'clients connect to the path of --listen, as in --listen http://127.0.0.1:8080/mcp, and HTTP+SSE clients to /sse beside it'
const BY_ITSELF = 'leave it out, because mcp-bridge does that by itself'
const inFile = (option: string, example: string) => `write "${option}": ${example} into a configuration file`
const ofServer = (option: string, example: string) =>
  `write "${option}": ${example} into the entry of the server in a configuration file`

const VERIFIES = 'mcp-bridge always verifies certificates: name that of your authority with --ca ca.pem'
const PROGRAM = 'put the program of the server last: mcp-bridge -- npx -y some-server'
const milliseconds = (value: string, factor = 1) => (/^\d+$/.test(value) ? String(Number(value) * factor) : '60000')

/** By the flag, without dashes and in lower case. */
const FLAG_HABITS: Readonly<Record<string, Habit>> = {
  ...named('p s', ['port', 'sseport'], (port) => `write --listen http://127.0.0.1:${numberOr(port, '8080')}/mcp`),
  ...named('p', ['ssehost'], (host) => `write --listen http://${hostOr(host)}:8080/mcp`),
  ...named(
    'p r',
    ['host'],
    (host) =>
      `write --listen http://${hostOr(host)}:8080/mcp. The host of a sign-in is localhost, or part of --redirect-uri`,
  ),
  ...named('', ['bind', 'address', 'addr'], 'write --listen http://127.0.0.1:8080/mcp'),
  ...named('', ['p'], (port) => `write --listen http://127.0.0.1:${numberOr(port, '8080')}/mcp`),
  ...named('s', ['stdio'], `${PROGRAM}. If the client starts mcp-bridge as a program, add --listen stdio before it`),
  ...named('s', ['sse'], (url) => `give the address of the server alone: mcp-bridge --listen stdio sse+${urlOr(url)}`),
  ...named(
    's',
    ['streamablehttp', 'http'],
    (url) => `give the address of the server alone: mcp-bridge --listen stdio ${urlOr(url)}`,
  ),
  ...named('s', ['outputtransport'], (transport) =>
    transport === 'stdio'
      ? 'write --listen stdio'
      : 'clients over Streamable HTTP and over HTTP+SSE connect to one --listen: write --listen http://127.0.0.1:8080/mcp',
  ),
  ...named('s', ['baseurl'], (url) => `write --public-url ${urlOr(url, 'https://example.com/tools')}`),
  ...named('s', ['ssepath', 'messagepath', 'streamablehttppath'], PATH),
  ...named('p', ['endpoint', 'sseendpoint', 'streamendpoint', 'path'], PATH),
  ...named('s', ['loglevel'], (level) => `write --log-level ${level === 'none' ? 'silent' : level || 'debug'}`),
  ...named('p r', ['debug'], 'write --log-level debug'),
  ...named('', ['verbose', 'v'], 'write --log-level debug'),
  ...named('r', ['silent'], 'write --log-level silent'),
  ...named('', ['quiet', 'q'], 'write --log-level silent'),
  ...named('s', ['cors'], 'write --allowed-origin with each origin, as in --allowed-origin https://app.example.com'),
  ...named(
    'p',
    ['alloworigin', 'corsaddallowedheader', 'exposeheader'],
    'write --allowed-origin with each origin, as in --allowed-origin https://app.example.com; its headers are allowed',
  ),
  ...named('s', ['healthendpoint'], 'leave it out, because /healthz and /readyz are always there'),
  ...named(
    's',
    ['oauth2bearer'],
    `write --header 'Authorization: Bearer \${TOKEN}', with the token in the variable TOKEN`,
  ),
  ...named(
    'p',
    ['apikey'],
    `write --token '\${TOKEN}', with the token in the variable TOKEN: clients send it as Authorization: Bearer`,
  ),
  ...named('s', ['stateful'], 'leave it out, because legacy clients get sessions, and modern ones need none'),
  ...named(
    'p',
    ['stateless'],
    'write --session per-request, if each call has to have a session of its own with the server',
  ),
  ...named('s', ['sessiontimeout'], (ms) => inFile('timeouts', `{ "clientIdle": ${milliseconds(ms)} }`)),
  ...named('p', ['sessionidletimeout'], (ms) => inFile('timeouts', `{ "clientIdle": ${milliseconds(ms)} }`)),
  ...named('p', ['gracefulshutdowntimeout'], (ms) => inFile('timeouts', `{ "drainTimeout": ${milliseconds(ms)} }`)),
  ...named('p', ['connectiontimeout'], (ms) => `write --timeout initialize=${milliseconds(ms)}`),
  ...named('p', ['requesttimeout'], (ms) => `write --timeout call=${milliseconds(ms)}`),
  ...named('p', ['keepalivetimeout'], inFile('timeouts', '{ "keepAlive": 15000 }')),
  ...named('r', ['connecttimeout'], 'leave it out, because mcp-bridge waits 5 seconds for a connection'),
  ...named('r', ['headerstimeout'], (s) => `write --timeout call=${milliseconds(s, 1_000)}`),
  ...named('r', ['bodytimeout'], 'leave it out, because mcp-bridge opens idle streams again'),
  ...named('', ['calltimeout'], 'write --timeout call=60000 (milliseconds)'),
  ...named('r', ['authtimeout'], (s) => `write --sign-in-wait ${milliseconds(s, 1_000)}`),
  ...named(
    's',
    ['protocolversion'],
    'leave it out, because mcp-bridge negotiates it. --era legacy or --era modern sets the era of the server',
  ),
  ...named(
    'p r',
    ['upstreamprotocol', 'protocol'],
    'leave it out, because mcp-bridge detects it. --era legacy or --era modern sets it',
  ),
  ...named('p', ['modern', 'nomodern'], 'leave it out, because clients of both eras are served'),
  ...named(
    'p',
    ['namedserver'],
    'write the servers into a configuration file: { "mcpServers": { "<name>": { "command": "…" } } }, and name it with --config',
  ),
  ...named('p', ['namedserverconfig'], (file) => `write --config ${fileOr(file, 'mcp.json')}`),
  ...named(
    '',
    ['configfile', 'configpath', 'mcpconfig', 'conf'],
    (file) => `write --config ${fileOr(file, 'mcp.json')}`,
  ),
  ...named('p', ['headers'], "write --header 'Name: value', once for each header"),
  ...named('p', ['verifyssl'], (file) => `write --ca ${fileOr(file, 'ca.pem')}`),
  ...named('p', ['noverifyssl'], VERIFIES),
  ...named('', ['insecure', 'k'], VERIFIES),
  ...named('p', ['sslca'], (file) => `write --ca ${fileOr(file, 'ca.pem')}`),
  ...named('p', ['sslcert'], (file) => `write --tls-cert ${fileOr(file, 'bridge.pem')}`),
  ...named('p', ['sslkey'], (file) => `write --tls-key ${fileOr(file, 'bridge-key.pem')}`),
  ...named('p', ['shell'], 'start the program with the shell: mcp-bridge -- sh -c "…"'),
  ...named('p', ['eventstore', 'noeventstore', 'eventstoremaxevents'], BY_ITSELF),
  ...named('p', ['maxbodysize'], (bytes) => inFile('limits', `{ "bodyBytes": ${numberOr(bytes, '4194304')} }`)),
  ...named(
    'p',
    ['tunnel', 'tunnelsubdomain'],
    'use a tunnel of another program in front of mcp-bridge, and name its address with --public-url',
  ),
  ...named(
    'p',
    ['tokenurl'],
    'leave it out, because the authorization server names it. --client-id and --client-secret set the client',
  ),
  ...named('r', ['allowhttp'], 'leave it out, because http:// addresses are allowed'),
  ...named(
    'p r',
    ['transport'],
    'leave it out, because mcp-bridge detects the transport. For HTTP+SSE alone, write sse+ before the address, as in sse+https://example.com/sse',
  ),
  ...named('r', ['disableresourceparameter'], 'write --resource false'),
  ...named('r', ['authorizeparam'], 'write --oauth-param name=value'),
  ...named(
    'r',
    ['staticoauthclientinfo'],
    `write --client-id and --client-secret '\${SECRET}', with the secret in the variable SECRET`,
  ),
  ...named(
    'r',
    ['staticoauthclientmetadata'],
    `write --scope 'read write', or ${ofServer('oauth', '{ "clientName": "…" }')}`,
  ),
  ...named('r', ['callbackpath'], 'write --redirect-uri http://localhost:8765/callback'),
  ...named('r', ['authsuccessurl'], (url) => `write --success-url ${urlOr(url, 'https://example.com/signed-in')}`),
  ...named('r', ['disablecookies'], 'leave it out, because mcp-bridge sends the cookies of a session back'),
  ...named('r', ['keepalive'], 'write --ping 30000'),
  ...named('r', ['pinginterval'], (s) => `write --ping ${milliseconds(s, 1_000)}`),
  ...named('r', ['enableproxy'], 'leave it out, because HTTP_PROXY, HTTPS_PROXY and NO_PROXY are always used'),
  ...named('r', ['ignoretool'], "write --deny-tool 'delete_*' with each pattern"),
  ...named(
    '',
    ['url', 'remote', 'server-url', 'serverurl'],
    (url) => `give the address alone: mcp-bridge ${urlOr(url)}`,
  ),
  ...named('', ['command', 'cmd', 'exec'], PROGRAM),
  ...named('', ['args', 'arg'], PROGRAM),
  ...named(
    '',
    ['auth', 'bearer', 'authtoken', 'password'],
    `write --token '\${TOKEN}' for callers, or --header 'Authorization: Bearer \${TOKEN}' for the server`,
  ),
  ...named('', ['inspector', 'ui', 'dashboard'], 'write --inspect'),
}

function named(of: string, flags: readonly string[], here: Habit['here']): Record<string, Habit> {
  return Object.fromEntries(flags.map((flag) => [plain(flag), { of, here }]))
}

/** Normalizes the spelling of a flag. */
function plain(flag: string): string {
  return flag.toLowerCase().replace(/[-_]/g, '')
}

function numberOr(value: string, other: string): string {
  return /^\d+$/.test(value) ? value : other
}

function fileOr(value: string, other: string): string {
  return value === '' || /^[a-z]+:\/\//.test(value) ? other : value
}

function hostOr(value: string): string {
  return /^[\w.-]+$/.test(value) ? value : '127.0.0.1'
}

/** The given address, without possible secrets. */
function urlOr(value: string, other = 'https://example.com/mcp'): string {
  const [address] = /^https?:\/\/[^\s?#@]+$/.exec(value) ?? []
  return address ?? other
}

/** The equivalent of another program's flag; undefined for an unknown flag. */
export function insteadOf(flag: string, value: string | undefined): string | undefined {
  const habit = Object.hasOwn(FLAG_HABITS, plain(flag)) ? FLAG_HABITS[plain(flag)] : undefined
  if (habit === undefined) return undefined
  const { of, here } = habit
  const programs = of.split(' ').flatMap((key) => PROGRAMS[key as keyof typeof PROGRAMS] ?? [])
  const whose = programs.length === 0 ? '' : ` is a flag of ${programs.join(' and ')}`
  return `${whose}: ${typeof here === 'string' ? here : here(value ?? '')}`
}

const LISTS = 'mcp-bridge probe https://example.com/mcp lists what a server offers'
const WRAPS =
  'mcp-bridge wrap claude-desktop puts the bridge in front of the servers of a client; mcp-bridge wrap lists the clients'
const UNWRAPS = 'mcp-bridge unwrap claude-desktop takes the bridge out again; mcp-bridge wrap lists the clients'
const SERVES = 'leave it out: mcp-bridge https://example.com/mcp serves'

/** Equivalents of words that people try as commands. None of them is a server program. */
const WORD_HABITS: Readonly<Record<string, string>> = {
  call: `mcp-bridge serves servers and calls no tools: call it with an MCP client, or as the README does with curl. ${LISTS}`,
  exec: PROGRAM,
  run: PROGRAM,
  start: SERVES,
  up: SERVES,
  proxy: SERVES,
  bridge: SERVES,
  gateway: SERVES,
  connect: SERVES,
  stdio: 'for clients that start programs, write --listen stdio',
  http: 'write --listen http://127.0.0.1:8080/mcp',
  sse: 'HTTP+SSE clients connect to /sse beside --listen; before the address of a server write sse+',
  tools: LISTS,
  list: LISTS,
  ls: LISTS,
  ping: LISTS,
  info: LISTS,
  inspect: 'write --inspect before the server, or follow calls with mcp-bridge tail',
  inspector: 'write --inspect before the server',
  version: 'write --version',
  validate: 'write mcp-bridge check --config mcp.json',
  lint: 'write mcp-bridge check --config mcp.json',
  config: 'write --config mcp.json, or mcp-bridge check --config mcp.json',
  verify: 'write mcp-bridge check --config mcp.json',
  test: LISTS,
  doctor: LISTS,
  init: `mcp-bridge wrap puts the bridge in front of the servers of a client; a configuration file is described in ${DOCUMENTS}configuration.md`,
  install: WRAPS,
  add: WRAPS,
  setup: WRAPS,
  remove: UNWRAPS,
  uninstall: UNWRAPS,
  stop: 'end the process: mcp-bridge stops on SIGTERM and on Ctrl-C',
  restart: 'end the process and start it again; a changed configuration file is read without that',
  reload: 'a changed configuration file is read by itself, and on SIGHUP',
  logs: 'mcp-bridge tail follows the calls of a bridge that runs with --inspect',
  log: 'mcp-bridge tail follows the calls of a bridge that runs with --inspect',
  watch: 'mcp-bridge tail follows the calls of a bridge that runs with --inspect',
  find: 'mcp-bridge discover example.com finds the servers of a host',
  search: 'mcp-bridge discover example.com finds the servers of a host',
  signin: 'write mcp-bridge login https://mcp.example.com/mcp',
  approve: 'write mcp-bridge trust approve https://mcp.example.com/mcp',
  pin: 'write mcp-bridge trust pin mcp.example.com',
}

/** The equivalent of a word tried as a command; undefined for other words. */
export function insteadOfWord(word: string): string | undefined {
  return Object.hasOwn(WORD_HABITS, word) ? WORD_HABITS[word] : undefined
}
