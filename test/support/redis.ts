/** A Redis of a test's own, where the machine has one: `redis-server` on the PATH. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import type { Test } from 'tap'
import { temporaryFile } from './folder.js'

/** Why tests that need it are skipped; false where they are not. */
export const noRedis: string | false =
  spawnSync('redis-server', ['--version']).error === undefined ? false : 'there is no redis-server on the PATH'

export class RedisServer {
  readonly port: number
  readonly #args: readonly string[]
  #child: ChildProcess | undefined

  private constructor(port: number, args: readonly string[]) {
    this.port = port
    this.#args = args
  }

  /** Starts one that keeps nothing on a disk. It ends with the test. */
  static async start(t: Test, ...args: string[]): Promise<RedisServer> {
    const server = new RedisServer(await freePort(), args)
    t.teardown(() => server.stop())
    await server.start()
    return server
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`
  }

  /** Starts it, empty. Resolves when it takes connections. */
  async start(): Promise<void> {
    const args = ['--port', String(this.port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', ...this.#args]
    const child = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'inherit'] })
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

/** Starts three Sentinels that watch a primary by the name `bridge`. They end with the test. */
export async function startSentinels(t: Test, primary: RedisServer, password: string): Promise<string[]> {
  const lines = [
    `sentinel monitor bridge 127.0.0.1 ${primary.port} 2`,
    `sentinel auth-pass bridge ${password}`,
    'sentinel down-after-milliseconds bridge 500',
    'sentinel failover-timeout bridge 2000',
  ]
  const sentinels = [1, 2, 3].map(async () => {
    const port = await freePort()
    const file = temporaryFile(t, 'sentinel.conf', '')
    writeFileSync(file, [`port ${port}`, 'bind 127.0.0.1', ...lines].join('\n'))
    const child = spawn('redis-server', [file, '--sentinel'], { stdio: 'ignore' })
    t.teardown(() => child.kill('SIGKILL'))
    return `redis://127.0.0.1:${port}`
  })
  return Promise.all(sentinels)
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(address !== null && typeof address === 'object' ? address.port : 0))
    })
  })
}
