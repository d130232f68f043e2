/** The table of commands: description, arguments, flags and examples of each. */
import { DOCUMENTS } from '../base/texts/documents.js'
import { BRIDGE, ENTRY, FINDING, LOG, SERVER, SIGN_IN, SOURCES, TLS, TOGETHER, TRUST } from './flag-groups.js'
import type { FlagName } from './flags.js'

export interface CommandRow {
  /** The arguments, without flags. */
  usage: string
  /** The description in one line. */
  about: string
  /** Most arguments. */
  words: number
  flags: readonly FlagName[]
  /** Further text for the help of this command. */
  details?: readonly string[]
  /** Examples: purpose and command line. */
  examples: readonly (readonly [what: string, line: string])[]
}

const PLACES = [
  'Places to search:',
  '  example.com             a host that publishes its servers',
  '  https://…, stdio:"…"    one server',
  '  path/to/mcp.json        the configuration file of a program; files: stands for the usual files of all programs',
  '  registry:<query>        a registry',
]

export const COMMANDS = {
  serve: {
    usage: '[<server> | -- <program>]',
    about: 'serve one server, or all servers of a configuration file; this is the default',
    words: 1,
    flags: [...TOGETHER, ...BRIDGE, 'record'],
    details: [
      'The server:',
      '  https://…, http://…          Streamable HTTP, or HTTP+SSE if the server supports nothing else',
      '  sse+https://…, sse+http://…  HTTP+SSE of 2024-11-05',
      '  unix:/path/to.sock:/mcp      a server on a unix socket, and the path of its endpoint',
      '  -- <program> [args]          a program on stdio; flags of mcp-bridge stand before the --',
      '  stdio:"program args"         the same in one word',
      '',
      'Clients of both eras connect to the same address, by default http://127.0.0.1:8080/mcp; HTTP+SSE clients to /sse.',
      'With several servers, this address serves all of them together, and /<name>/mcp serves one.',
    ],
    examples: [
      ['A program, for clients over HTTP', 'mcp-bridge -- npx -y @modelcontextprotocol/server-everything'],
      [
        'The same, with an environment variable for it',
        `mcp-bridge -e API_KEY='\${API_KEY}' -- npx -y some-mcp-server --verbose`,
      ],
      [
        'A remote server, for a client that starts programs',
        `mcp-bridge --listen stdio -H 'Authorization: Bearer \${TOKEN}' https://example.com/mcp`,
      ],
      ['All servers of a file, together and one by one', 'mcp-bridge --config mcp.json'],
      ['The same, together, for a client that starts programs', 'mcp-bridge --listen stdio --config mcp.json'],
      ['Servers that are found', 'mcp-bridge --discover example.com'],
    ],
  },
  probe: {
    usage: '[<server>]',
    about: 'show the era, capabilities and tools of a server or a group',
    words: 1,
    flags: [...TOGETHER, 'json', ...SERVER, ...SIGN_IN, ...LOG],
    examples: [
      ['A server with an address', 'mcp-bridge probe https://example.com/mcp'],
      ['A program', 'mcp-bridge probe stdio:"npx -y @modelcontextprotocol/server-everything"'],
      ['A server of a configuration file', 'mcp-bridge probe github --config mcp.json'],
      ['All of them, and the names under which clients see their tools', 'mcp-bridge probe --config mcp.json'],
    ],
  },
  check: {
    usage: '',
    about: 'check a configuration file',
    words: 0,
    flags: ['config', 'server', 'group', 'offline', 'json', ...BRIDGE],
    details: [
      'Other flags change the configuration as they do for serve; the result is checked.',
      'With --json, the result is an object: "valid", and "issues" or what is in the file.',
    ],
    examples: [
      ['A file', 'mcp-bridge check --config mcp.json'],
      ['A file for another machine, without its variables and secrets', 'mcp-bridge check --offline --config mcp.json'],
    ],
  },
  status: {
    usage: '[<bridge>]',
    about: 'show the bridges of this machine and their servers',
    words: 1,
    flags: ['config', 'listen', 'admin', 'token', 'token-file', 'json'],
    details: [
      'Without an address, all bridges are asked that run as this user, and the usual addresses of others: http://127.0.0.1:8080 and, for',
      'operators, http://127.0.0.1:9090. With --config, the bridge of that file is asked.',
      'The bridge is an address, with the part after # if it is that of an inspector, or a process id.',
      '',
      'Exit codes: 0 if everything can be used, 1 if a server is down or no bridge runs, 2 if a flag is wrong.',
    ],
    examples: [
      ['The bridges of this machine', 'mcp-bridge status'],
      ['That of a configuration file', 'mcp-bridge status --config mcp.json'],
      ['One at another address, for a program', 'mcp-bridge status http://127.0.0.1:9090 --json'],
    ],
  },
  tail: {
    usage: '[<bridge>] [<filter>...]',
    about: 'follow the calls of a bridge that runs with --inspect',
    words: Number.POSITIVE_INFINITY,
    flags: ['both', 'as', 'json'],
    details: [
      'The bridge is the address that it prints, with the part after #: http(s)://…, or unix:… for a socket. A bridge on',
      'stdio is found without one, or by its process id if several run.',
      '',
      'A filter is a list of words that must all match: tool:, name:, method:, server:, bridge:, era:, status:, blame:, fault:, client:,',
      'principal:, session:, id:, trace:, ms>500, or any text. A - before a word negates it, a comma separates alternatives.',
      '  era:     modern, legacy, a revision, or a pair as modern>legacy',
      '  status:  open, ok, tool_error, asks, error, cancelled, fault, or the code of an error',
      '  blame:   caller, upstream, bridge',
      '',
      'With --json, each line is an event. The page of an inspector opens a file of them.',
    ],
    examples: [
      ['The bridge that a client has started', 'mcp-bridge tail'],
      [
        'Failed calls of one server, with both sides',
        'mcp-bridge tail --both server:github status:error,fault,tool_error',
      ],
      ['A call as code for SDK v2', 'mcp-bridge tail --as sdk-v2 id:c81'],
      ['A bridge on HTTP', "mcp-bridge tail 'http://127.0.0.1:9091/inspect#<token>'"],
    ],
  },
  replay: {
    usage: '<file> [<server>]',
    about: 'repeat recorded calls and compare the answers',
    words: 2,
    flags: [...TOGETHER, 'json', ...SERVER, ...SIGN_IN, ...LOG],
    details: [
      'A file is written by "mcp-bridge --record <file>", or copied from the inspector, and described in',
      `${DOCUMENTS}replay.md. Each call is`,
      'made by a client of the revision that it was recorded with, and the questions of the server get the recorded answers.',
      '',
      'Exit codes: 0 if all answers are as recorded, 1 if some are not or the server is unavailable, 2 if the file or a flag is wrong.',
    ],
    examples: [
      ['Calls of a program', 'mcp-bridge replay calls.json -- node my-server.js'],
      ['Calls of a server with an address', 'mcp-bridge replay calls.json https://example.com/mcp'],
      ['Calls of the servers of a configuration file', 'mcp-bridge replay calls.json --config mcp.json'],
      ['Record some', 'mcp-bridge --record calls.json -- node my-server.js'],
    ],
  },
  inspect: {
    usage: '[<file>]',
    about: 'serve the inspector for all bridges on stdio, or for a file',
    words: 1,
    flags: ['no-browser'],
    details: [
      'Bridges on stdio with --inspect are found by their sockets, and appear and disappear while it runs: mcp-bridge wrap --inspect adds the flag.',
      'A file is an export of the page as JSONL, or what mcp-bridge tail --json has printed: at most 100 MiB.',
    ],
    examples: [
      ['The bridges that clients of this machine run', 'mcp-bridge inspect'],
      ['A past session', 'mcp-bridge inspect calls.jsonl'],
    ],
  },
  demo: {
    usage: '[server | modern-server]',
    about: 'run the bridge with two demo servers and a demo client; opens the inspector',
    words: 1,
    flags: ['listen', 'admin', 'no-browser', ...LOG],
    details: [
      'A modern client calls a tool of a legacy or a modern server every second, at one address. "mcp-bridge demo server" and "mcp-bridge demo modern-server" run one server alone, on stdio.',
    ],
    examples: [
      ['The bridge with two servers and a client', 'mcp-bridge demo'],
      ['At another address', 'mcp-bridge demo --listen http://127.0.0.1:8090/mcp'],
      ['What the legacy server speaks', 'mcp-bridge probe stdio:"mcp-bridge demo server"'],
    ],
  },
  discover: {
    usage: '<where>...',
    about: 'find servers, and show whether they are trusted',
    words: Number.POSITIVE_INFINITY,
    flags: ['json', 'config', ...FINDING, 'read-only-tool', 'account', 'token-store'],
    details: PLACES,
    examples: [
      ['What a host publishes', 'mcp-bridge discover example.com'],
      ['The files of other programs on this machine', 'mcp-bridge discover files:'],
      ['A registry', 'mcp-bridge discover registry:weather --json'],
    ],
  },
  'trust list': {
    usage: '',
    about: 'list keys, pins and approvals',
    words: 0,
    flags: ['json', ...TRUST],
    examples: [['Everything that is trusted', 'mcp-bridge trust list']],
  },
  'trust approve': {
    usage: '<server>',
    about: 'trust the tools of a server as they are now',
    words: 1,
    flags: ['tools', 'for', 'config', ...FINDING],
    details: [
      'The server is a name or an address. --discover says where it is found, if that is not the address itself.',
    ],
    examples: [
      ['All tools', 'mcp-bridge trust approve https://mcp.acme.example/mcp'],
      [
        'Some tools, for a time',
        "mcp-bridge trust approve weather --discover mcp.acme.example --tools 'read_*' --for 8w",
      ],
    ],
  },
  'trust revoke': {
    usage: '<server>',
    about: 'withdraw an approval',
    words: 1,
    flags: TRUST,
    examples: [['By its name', 'mcp-bridge trust revoke weather']],
  },
  'trust pin': {
    usage: '<server>',
    about: 'trust the key that a host has now',
    words: 1,
    flags: ['backup', 'config', ...FINDING],
    examples: [['A host', 'mcp-bridge trust pin mcp.acme.example']],
  },
  'trust unpin': {
    usage: '<server>',
    about: 'remove a pin',
    words: 1,
    flags: TRUST,
    examples: [['A host', 'mcp-bridge trust unpin mcp.acme.example']],
  },
  'trust key add': {
    usage: '<publisher> <file>',
    about: 'trust what a publisher signs',
    words: 2,
    flags: TRUST,
    examples: [['A public key, PEM or JWK', 'mcp-bridge trust key add acme.example acme.pem']],
  },
  'trust key remove': {
    usage: '<publisher> <id>',
    about: 'no longer trust a key',
    words: 2,
    flags: TRUST,
    examples: [['By the id that trust list shows', 'mcp-bridge trust key remove acme.example NzbLsXh8uDCc']],
  },
  add: {
    usage: '<name> [<server>]',
    about: 'put a server into a configuration file',
    words: 2,
    flags: ['config', 'upstream', ...ENTRY],
    details: [
      'Flags become options of the entry. Comments, order and indentation stay, and nothing is written if the configuration would be invalid.',
      'A bridge that runs with the file uses the server within a second. A server of that name is replaced.',
    ],
    examples: [
      ['A server with an address', 'mcp-bridge add docs https://example.com/mcp --config mcp.json'],
      ['A program', 'mcp-bridge add files --config mcp.json -- npx -y @modelcontextprotocol/server-filesystem .'],
    ],
  },
  remove: {
    usage: '<name>',
    about: 'take a server out of a configuration file',
    words: 1,
    flags: ['config'],
    examples: [['By its name', 'mcp-bridge remove docs --config mcp.json']],
  },
  login: {
    usage: '<server>',
    about: 'sign in to a server',
    words: 1,
    flags: [...SOURCES, 'era', 'header', ...TLS, ...SIGN_IN, ...LOG],
    details: ['The server is an address, or with --config a name of the file.'],
    examples: [
      ['A server with an address', 'mcp-bridge login https://mcp.example.com/mcp'],
      ['A server of a configuration file', 'mcp-bridge login github --config mcp.json'],
    ],
  },
  logout: {
    usage: '[<server>]',
    about: 'forget the tokens of a server, or all with --all',
    words: 1,
    flags: [...SOURCES, 'all', 'client-id', 'client-secret', 'issuer', 'account', 'token-store', ...LOG],
    examples: [
      ['One server', 'mcp-bridge logout https://mcp.example.com/mcp'],
      ['All servers', 'mcp-bridge logout --all'],
    ],
  },
  'auth status': {
    usage: '',
    about: 'show where you are signed in',
    words: 0,
    flags: ['json', 'config', 'server', 'token-store'],
    examples: [['All servers', 'mcp-bridge auth status']],
  },
  wrap: {
    usage: '[<client> [<server>]]',
    about: 'put the bridge in front of the servers of a client; without a client, list the clients',
    words: 2,
    flags: ['together', 'inspect', 'file', 'dry-run'],
    details: [
      'Clients: claude-desktop, claude-code, cursor, vscode, windsurf, gemini, zed, opencode, codex.',
      'The file of the client is changed, and a backup written beside it. Variables and headers stay in the file; with --together the servers move into a configuration of the bridge beside it.',
    ],
    examples: [
      ['The clients of this machine, and their files', 'mcp-bridge wrap'],
      ['All servers of a client', 'mcp-bridge wrap claude-desktop'],
      ['One entry for all servers of a client', 'mcp-bridge wrap claude-desktop --together'],
      ['One server, to see what would change', 'mcp-bridge wrap cursor github --dry-run'],
    ],
  },
  unwrap: {
    usage: '[<client> [<server>]]',
    about: 'undo wrap for all servers of a client, or for one',
    words: 2,
    flags: ['file', 'dry-run'],
    examples: [['All servers of a client', 'mcp-bridge unwrap claude-desktop']],
  },
  bundle: {
    usage: '[<server>]',
    about: 'write a server or group as an extension (.mcpb); Claude Desktop and other programs install it',
    words: 1,
    flags: ['output', 'offline', ...TOGETHER, ...SERVER, ...SIGN_IN, ...LOG],
    details: [
      'The extension has the bridge in it, and needs no installation. Name, icon and tools are those that the server tells. Its user is asked for',
      'addresses, headers, variables, and folders among the arguments of a program; what is secret is hidden, and is not in the file.',
    ],
    examples: [
      [
        'A server with an address and a token',
        `mcp-bridge bundle https://example.com/mcp -H 'Authorization: Bearer \${TOKEN}' -o example.mcpb`,
      ],
      ['A program', 'mcp-bridge bundle -o files.mcpb -- npx -y @modelcontextprotocol/server-filesystem .'],
      ['A server of a configuration file', 'mcp-bridge bundle github --config mcp.json -o github.mcpb'],
    ],
  },
  size: {
    usage: '',
    about: 'compute the replicas, CPU, memory and Redis that a load needs',
    words: 0,
    flags: ['calls', 'sessions', 'streams', 'parked', 'forwarded', 'json'],
    details: [`The figures behind it were measured on one machine: see ${DOCUMENTS}replicas.md#sizing.`],
    examples: [
      ['Sessions of legacy clients, each with an open stream', 'mcp-bridge size --sessions 10000 --calls 500'],
      [
        'The same behind a load balancer with session affinity',
        'mcp-bridge size --sessions 10000 --calls 500 --forwarded 0%',
      ],
      ['Modern clients alone, which have no sessions', 'mcp-bridge size --calls 2000'],
    ],
  },
  completion: {
    usage: '<shell>',
    about: 'print a script for completion in bash, zsh, fish or powershell',
    words: 1,
    flags: [],
    details: ['The first line of the script says where it belongs.'],
    examples: [['The script for bash', 'mcp-bridge completion bash']],
  },
  help: {
    usage: '[<command>]',
    about: 'show all commands, or all flags of a command',
    words: Number.POSITIVE_INFINITY,
    flags: [],
    examples: [['All flags for serving', 'mcp-bridge help serve']],
  },
} as const satisfies Readonly<Record<string, CommandRow>>
