/** Other programs that do some of what the bridge does, from the set `peers` of .ci/tools, with their default settings. */
import { execFileSync } from 'node:child_process'
import { type Candidate, laneName, stdioServer } from './candidates.js'
import { beside } from './processes.js'
import type { Era } from './questions.js'

const MODULES = '../../.ci/tools/peers/node_modules'

/** Installs them where that has not been done. */
export function installPeers(): void {
  execFileSync(process.execPath, [beside('../../.ci/tool.mjs'), 'peers'], { stdio: ['ignore', 'ignore', 'inherit'] })
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
const supergateway: Candidate = {
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

export const peers: readonly Candidate[] = [
  mcpProxy('legacy', 'legacy'),
  mcpProxy('modern', 'legacy'),
  mcpProxy('legacy', 'modern'),
  mcpProxy('modern', 'modern'),
  supergateway,
]
