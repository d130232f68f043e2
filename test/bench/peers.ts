/** Other programs that do some of what the bridge does, from the set `peers` of .ci/tools, with their default settings. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { type At, type Candidate, entriesFor, laneName, stdioServer } from './candidates.js'
import { beside, temporary } from './processes.js'
import type { Era } from './questions.js'

const MODULES = '../../.ci/tools/peers/node_modules'

/** Installs them where that has not been done. */
export function installPeers(): void {
  execFileSync(process.execPath, [beside('../../.ci/tool.mjs'), 'peers'], { stdio: ['ignore', 'ignore', 'inherit'] })
  // What they keep goes when the run ends.
  for (const variable of ['MCPORTER_DAEMON_DIR', 'MCP_REMOTE_CONFIG_DIR'])
    process.env[variable] = dirname(temporary('peers', ''))
}

/** The version of one of them that is measured. */
export function versionOf(peer: string): string {
  return (JSON.parse(readFileSync(beside(`${MODULES}/${peer}/package.json`), 'utf8')) as { version: string }).version
}

/** mcp-proxy is in front of a program, and serves clients of both eras. */
function mcpProxy(client: Era, server: Era): Candidate {
  const program = beside(`${MODULES}/mcp-proxy/dist/bin/mcp-proxy.mjs`)
  return {
    name: `mcp-proxy ${laneName(client, server, 'stdio')}`,
    kind: 'peer',
    client,
    server,
    transport: 'stdio',
    writes: true,
    proxy: ({ port }) => {
      const listen = ['--host', '127.0.0.1', '--port', String(port), '--server', 'stream']
      return [program, ...listen, '--upstreamProtocol', server, '--', ...stdioServer(server)]
    },
  }
}

/** supergateway passes on to a program of the same era. For a modern client it would start a program for each call. */
export const supergateway: Candidate = {
  name: `supergateway ${laneName('legacy', 'legacy', 'stdio')}`,
  kind: 'peer',
  client: 'legacy',
  server: 'legacy',
  transport: 'stdio',
  writes: true,
  proxy: ({ port }) => {
    const command = stdioServer('legacy').join(' ')
    const listen = ['--outputTransport', 'streamableHttp', '--stateful', '--port', String(port)]
    return [beside(`${MODULES}/supergateway/dist/index.js`), '--stdio', command, ...listen, '--logLevel', 'none']
  },
}

/** A legacy client that starts a program in front of a legacy server over HTTP. */
const onPipe = {
  kind: 'peer',
  client: 'legacy',
  server: 'legacy',
  transport: 'http',
  pipe: true,
  writes: true,
} as const

export const supergatewayOnPipe: Candidate = {
  ...onPipe,
  name: 'supergateway on a pipe',
  proxy: ({ server }) => [
    beside(`${MODULES}/supergateway/dist/index.js`),
    '--streamableHttp',
    server,
    '--logLevel',
    'none',
  ],
}

export const mcpRemote: Candidate = {
  ...onPipe,
  name: 'mcp-remote on a pipe',
  proxy: ({ server }) => [beside(`${MODULES}/mcp-remote/dist/proxy.js`), server],
}

/** mcporter has a daemon that calls the servers; `serve` is in front of it. */
function mcporter(
  transport: Candidate['transport'],
  name: string,
  listen: (at: At) => string[],
  more: object,
): Candidate {
  const [command, ...args] = stdioServer('legacy')
  const many: NonNullable<Candidate['many']> = (at, servers) => {
    const target = transport === 'http' ? { baseUrl: at.server } : { command, args }
    const mcpServers = entriesFor(servers, { ...target, lifecycle: 'keep-alive' })
    const config = temporary(`mcporter ${at.port}.json`, JSON.stringify({ mcpServers, imports: [] }))
    return [beside(`${MODULES}/mcporter/dist/cli.js`), '--config', config, 'serve', ...listen(at)]
  }
  const common = { kind: 'peer', client: 'legacy', server: 'legacy', transport, writes: true } as const
  return { ...common, name, proxy: (at) => many(at, 1), many, ...more }
}

const overHttp = ({ port }: At) => ['--http', String(port)]
export const mcporters = {
  program: mcporter('stdio', 'mcporter legacy-legacy-stdio', overHttp, { sessionless: true }),
  server: mcporter('http', 'mcporter legacy-legacy-http', overHttp, { sessionless: true }),
  pipe: mcporter('http', 'mcporter on a pipe', () => ['--stdio'], { pipe: true }),
}

export const mcpProxyOfProgram = mcpProxy('legacy', 'legacy')

export const peers: readonly Candidate[] = [
  mcpProxyOfProgram,
  mcpProxy('modern', 'legacy'),
  mcpProxy('legacy', 'modern'),
  mcpProxy('modern', 'modern'),
  supergateway,
]
