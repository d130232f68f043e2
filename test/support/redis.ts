/** A Redis of a test's own, where the machine has one: `redis-server` on the PATH. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from './eventually.js'
import { temporaryFile, temporaryFolder } from './folder.js'
import { freePort } from './free-port.js'
import type { Scope } from './scope.js'
import { makeCa } from './tls.js'

/** Why tests that need it are skipped; false where they are not. */
export const noRedis: string | false =
  spawnSync('redis-server', ['--version']).error === undefined ? false : 'there is no redis-server on the PATH'

/** Milliseconds between two questions that `askRedis` asks: each starts a program, from a large process. */
export const ASKING = 100

export class RedisServer {
  readonly port: number
  readonly #args: readonly string[]
  #child: ChildProcess | undefined

  private constructor(port: number, args: readonly string[]) {
    this.port = port
    this.#args = args
  }

  /** Starts one that keeps nothing when it ends. It ends with the test. With a certificate it has a TLS port only. */
  static async start(t: Scope, ...args: string[]): Promise<RedisServer> {
    const port = await freePort()
    const ports = args.includes('--tls-cert-file') ? ['--port', '0', '--tls-port', `${port}`] : ['--port', `${port}`]
    // A replica writes what it gets from its primary into its folder.
    const fixed = ['--bind', '127.0.0.1', '--dir', temporaryFolder(t), '--save', '', '--appendonly', 'no']
    const server = new RedisServer(port, [...ports, ...fixed, ...args])
    t.teardown(() => server.stop())
    await server.start()
    return server
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`
  }

  /** Starts it, with what it has saved. Resolves when it takes connections and has read that. */
  async start(...more: string[]): Promise<void> {
    const child = spawn('redis-server', [...this.#args, ...more], { stdio: ['ignore', 'pipe', 'inherit'] })
    this.#child = child
    await new Promise<void>((resolve, reject) => {
      child.once('exit', (code) => reject(new Error(`redis-server exited with code ${code}`)))
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        if (text.includes('Ready to accept connections')) resolve()
      })
    })
  }

  /** Kills it. What was in it is gone. */
  async stop(): Promise<void> {
    const child = this.#child
    if (!child) return
    this.#child = undefined
    const gone = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGCONT')
    child.kill('SIGKILL')
    await gone
  }

  /** Makes it stand still, or go on. */
  freeze(frozen: boolean): void {
    this.#child?.kill(frozen ? 'SIGSTOP' : 'SIGCONT')
  }
}

/** Files of an authority, with options for Redis that requires its certificates of everybody. */
export async function redisTls(t: Scope): Promise<{ ca: string; cert: string; key: string; args: string[] }> {
  const folder = temporaryFolder(t)
  const authority = await makeCa()
  const file = (name: string, text: string) => {
    const path = join(folder, name)
    writeFileSync(path, text)
    return path
  }
  const ca = file('ca.pem', authority.cert)
  const [server, client] = await Promise.all(
    [false, true].map((client) => authority.serverOptions(['127.0.0.1'], { client })),
  )
  const cert = file('client.pem', client?.cert ?? '')
  const key = file('client-key.pem', client?.key ?? '')
  const args = [
    ['--tls-ca-cert-file', ca],
    ['--tls-cert-file', file('server.pem', server?.cert ?? '')],
    ['--tls-key-file', file('server-key.pem', server?.key ?? '')],
    ['--tls-client-cert-file', cert],
    ['--tls-client-key-file', key],
    ['--tls-replication', 'yes'],
  ]
  return { ca, cert, key, args: args.flat() }
}

/**
 * Starts three Sentinels that watch a primary with one replica by the name `bridge`. They end with the test. With options for
 * TLS they have a TLS port only.
 */
export async function startSentinels(
  t: Scope,
  primary: RedisServer,
  { password, own, tls = [] }: { password?: string; own?: string; tls?: readonly string[] } = {},
): Promise<string[]> {
  const lines = [
    `sentinel monitor bridge 127.0.0.1 ${primary.port} 2`,
    ...(password === undefined ? [] : [`sentinel auth-pass bridge ${password}`]),
    'sentinel down-after-milliseconds bridge 500',
    'sentinel failover-timeout bridge 2000',
    ...(own === undefined ? [] : [`requirepass ${own}`, `sentinel sentinel-pass ${own}`]),
  ]
  const sentinels = [1, 2, 3].map(async () => {
    const port = await freePort()
    const ports = tls.length > 0 ? ['port 0', `tls-port ${port}`] : [`port ${port}`]
    const file = temporaryFile(t, 'sentinel.conf', [...ports, 'bind 127.0.0.1', ...lines].join('\n'))
    const child = spawn('redis-server', [file, '--sentinel', ...tls], { stdio: 'ignore' })
    t.teardown(() => child.kill('SIGKILL'))
    // Sentinels that do not know the replica, or each other, elect nobody.
    const areComplete = () => {
      const found = askRedis(port, own ?? '', ...cliTls(tls), 'SENTINEL', 'MASTER', 'bridge').split('\n')
      const count = (name: string) => found[found.indexOf(name) + 1]
      return count('num-slaves') === '1' && count('num-other-sentinels') === '2'
    }
    await until(areComplete, 'a Sentinel that knows the replica and the other Sentinels', ASKING)
    const scheme = tls.length > 0 ? 'rediss' : 'redis'
    return `${scheme}://${own === undefined ? '' : `:${own}@`}127.0.0.1:${port}`
  })
  return Promise.all(sentinels)
}

/** Options for `redis-cli` with the files in options of `redis-server`. */
function cliTls(tls: readonly string[]): string[] {
  if (tls.length === 0) return []
  const file = (option: string) => tls[tls.indexOf(option) + 1] as string
  const ca = file('--tls-ca-cert-file')
  return ['--tls', '--cacert', ca, '--cert', file('--tls-client-cert-file'), '--key', file('--tls-client-key-file')]
}

/** Asks `redis-cli`, and gives what it prints. */
export function askRedis(port: number, password: string, ...command: string[]): string {
  const access = password === '' ? [] : ['--no-auth-warning', '-a', password]
  const args = ['-p', String(port), ...access, ...command]
  return spawnSync('redis-cli', args, { encoding: 'utf8' }).stdout.trim()
}

/** Starts a Redis Cluster of three primaries with a replica each, the primaries first. */
export async function startCluster(t: Scope, password: string): Promise<RedisServer[]> {
  const args = ['--cluster-enabled', 'yes', '--cluster-node-timeout', '2000']
  const auth = ['--requirepass', password, '--masterauth', password]
  const nodes = await Promise.all(
    Array.from({ length: 6 }, async () => {
      // The usual port of the bus is 10,000 above the other, which may be too high.
      const bus = String(await freePort())
      return { server: await RedisServer.start(t, ...args, ...auth, '--cluster-port', bus), bus }
    }),
  )
  const ask = (at: number, ...command: string[]) =>
    askRedis(nodes[at]?.server.port as number, password, 'CLUSTER', ...command)
  const everywhere = (line: string) => async () => nodes.every((_node, at) => ask(at, 'INFO').includes(line))
  const slots = [
    ['0', '5460'],
    ['5461', '10922'],
    ['10923', '16383'],
  ]
  for (const [at, range] of slots.entries()) ask(at, 'ADDSLOTSRANGE', ...range)
  for (const { server, bus } of nodes.slice(1)) ask(0, 'MEET', '127.0.0.1', String(server.port), bus)
  await until(everywhere('cluster_known_nodes:6'), 'nodes that know each other', ASKING)
  await until(everywhere('cluster_state:ok'), 'a cluster that has all slots', ASKING)
  for (const at of [0, 1, 2]) ask(at + 3, 'REPLICATE', ask(at, 'MYID'))
  // A replica that has never been in step is not elected.
  const inStep = ({ server: { port } }: { server: RedisServer }) =>
    askRedis(port, password, 'INFO', 'replication').includes('master_link_status:up')
  await until(() => nodes.slice(3).every(inStep), 'replicas in step with their primaries', ASKING)
  return nodes.map(({ server }) => server)
}
