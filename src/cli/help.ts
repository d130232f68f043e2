/** What `mcp-bridge --help` prints. */

export const HELP = `mcp-bridge: clients and servers of both eras of the Model Context Protocol, in one piece.

  mcp-bridge --upstream <server> [options]      serve one server
  mcp-bridge [options] -- <command> [args]      the same, for a server that is a program
  mcp-bridge --config <file>                    serve what a file names, each at /<name>/mcp
  mcp-bridge probe <server> [--json]            say what a server speaks and offers
  mcp-bridge check --config <file> [--offline]  say what is wrong with a configuration; --offline: without
                                                the variables and files of the machine that it is for
  mcp-bridge discover <where>... [--json]       find servers, and say whether they can be trusted
  mcp-bridge --discover <where> [options]       serve what is found, each at /<name>/mcp
  mcp-bridge trust …                            say whom to trust: see below
  mcp-bridge login <server>                     sign in to a server: an address, or a name with --config
  mcp-bridge logout <server> | --all            forget its tokens
  mcp-bridge auth status [--json]               say where you are signed in

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
  -c, --config <file>           JSON with "mcpServers", or the file of Claude Desktop, VS Code, Cursor, Windsurf,
                                Gemini CLI, opencode, Zed or Codex; flags win over it; read again when it
                                changes, and on SIGHUP
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
      --client-id <id>          the client that a server's authorization server knows; for servers that want sign-in
      --client-secret <where>   its secret: '\${VAR}' or '\${file:path}', never the secret itself
      --scope '<scopes>'        scopes to ask for, with spaces between them
      --callback-port <port>    the port of this machine that the browser comes back to
      --account <name>          which of your accounts, where you have several with one server
      --browser <command>       opens the address where you sign in                   [the system's]
      --no-browser              show that address instead
      --token-store <folder>    where tokens are kept                [~/.config/mcp-bridge/tokens]
      --no-oauth                never sign in
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
