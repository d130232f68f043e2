/**
 * The machine of a newcomer: a clone of the repository, an empty home, and a shell that runs commands as they stand in documents.
 * What they name and this machine lacks comes from the environment of the shell: hosts through HTTPS_PROXY and an authority of
 * its own, the package `some-mcp-server` from a registry, free ports for those that are named, and stand-ins for docker, kubectl
 * and helm on the PATH.
 */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { appendFileSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, request as forward, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { delimiter, join } from 'node:path'
import { kill, env as machine } from 'node:process'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { type Program, watchProgram } from './cli.js'
import { temporaryFolder } from './folder.js'
import { ForwardProxy } from './proxy.js'
import { makeCa, serveTls } from './tls.js'
import { inTools } from './tools.js'

type Environment = Record<string, string>

const root = fileURLToPath(new URL('../../', import.meta.url))
const fixture = (path: string) => fileURLToPath(new URL(`../fixtures/newcomer/${path}`, import.meta.url))
/** Variables that say how this machine reaches others. */
const NETWORK = [
  'HTTPS_PROXY',
  'HTTP_PROXY',
  'NO_PROXY',
  'https_proxy',
  'http_proxy',
  'no_proxy',
  'NODE_EXTRA_CA_CERTS',
]
const PACKAGE = 'some-mcp-server'

export interface Started extends Program {
  /** All that it has printed. */
  output(): string
  /** Resolves to what matches first in its output. Rejects if the command ends without that. */
  says(pattern: RegExp): Promise<RegExpExecArray>
  /** Ctrl-C. Resolves to the exit code. */
  interrupt(): Promise<number | null>
}

export class Newcomer {
  readonly home: string
  /** The clone, where commands run. */
  readonly clone: string
  readonly #t: Test
  readonly #env: Environment
  /** How others are reached: on this machine, and in the world of the documents. */
  #online: Environment = {}
  #world: Environment = {}

  private constructor(t: Test, env: Environment) {
    this.#t = t
    const folder = temporaryFolder(t)
    this.home = join(folder, 'home')
    this.clone = join(folder, 'mcp-bridge')
    mkdirSync(this.home)
    // Nothing of the packages of this repository, which npm and tap put there.
    const path = (machine['PATH'] ?? '').split(delimiter).filter((one) => !one.includes('node_modules'))
    this.#env = {
      ...env,
      BROWSER: 'curl -sL -b none -o /dev/null',
      HOME: this.home,
      NODE_OPTIONS: `--import ${new URL('../fixtures/newcomer/free-ports.mjs', import.meta.url)}`,
      npm_config_prefix: this.home,
      npm_config_update_notifier: 'false',
      PATH: [fixture('bin'), join(this.home, 'bin'), ...path].join(delimiter),
      REAL_HELM: inTools('kubernetes', '.bin/helm'),
    }
  }

  /** Clones what git knows, as it is now. `env` is what the reader has set. */
  static async start(t: Test, env: Environment): Promise<Newcomer> {
    const newcomer = new Newcomer(t, env)
    const ofMachine = { ...(machine as Environment), npm_config_loglevel: 'silent' }
    const told = async (command: string) => (await ended(newcomer.#spawn(command, ofMachine, root))).trim()
    for (const file of (await told('git ls-files')).split('\n')) cpSync(join(root, file), join(newcomer.clone, file))
    newcomer.#online = {
      ...Object.fromEntries(NETWORK.flatMap((name) => (machine[name] ? [[name, machine[name]]] : []))),
      npm_config_registry: await told('npm config get registry'),
    }
    return newcomer
  }

  /** Starts a command in the world of the documents. */
  start(command: string, env: Environment = {}): Started {
    return this.#spawn(command, { ...this.#env, ...this.#world, ...env }, this.clone)
  }

  /** Starts a command that needs the registry of npm. */
  startOnline(command: string): Started {
    return this.#spawn(command, { ...this.#env, ...this.#online }, this.clone)
  }

  /** Runs a command to its end. */
  async run(command: string): Promise<{ code: number | null; stdout: string; stderr: string }> {
    const { child, ended, stdout, stderr } = this.start(command)
    child.stdin.end()
    const code = await ended
    return { code, stdout: stdout(), stderr: stderr() }
  }

  /** Lets curl find what listens at a port of the documents: it has been given another one. */
  finds(port: number, url: string): void {
    this.#curl(`connect-to = "127.0.0.1:${port}:${new URL(url).host}"`)
  }

  /**
   * Makes the world of the documents: a registry, hosts with TLS, by the addresses of servers on this machine, and documents at
   * these hosts.
   */
  async publish(hosts: Readonly<Record<string, string>>, documents: Readonly<Record<string, object>>): Promise<void> {
    const names = Object.keys(hosts)
    const ca = await makeCa()
    const authority = join(this.home, 'ca.pem')
    writeFileSync(authority, ca.cert)
    const { port } = await serveTls(this.#t, await ca.serverOptions(names), (request, response) => {
      const { url = '', headers } = request
      const document = documents[`https://${headers.host}${url}`]
      if (document === undefined) pass(hosts[headers.host ?? ''] ?? '', request, response)
      else response.setHeader('content-type', 'application/json').end(JSON.stringify(document))
    })
    const ports = Object.fromEntries(names.map((name) => [`${name}:443`, port]))
    const proxy = await ForwardProxy.start(this.#t, { ports })
    this.#world = {
      HTTPS_PROXY: proxy.url,
      NO_PROXY: '127.0.0.1,localhost',
      NODE_EXTRA_CA_CERTS: authority,
      npm_config_registry: await this.#serveRegistry(),
    }
    // The bridge gives programs the home, and not all variables.
    writeFileSync(join(this.home, '.npmrc'), `registry=${this.#world['npm_config_registry']}\n`)
    this.#curl(`cacert = "${authority}"`)
    for (const name of names) this.#curl(`connect-to = "${name}:443:127.0.0.1:${port}"`)
  }

  #curl(line: string): void {
    appendFileSync(join(this.home, '.curlrc'), `${line}\n`)
  }

  #spawn(command: string, env: Environment, cwd: string): Started {
    // In a group of its own, as on a terminal: Ctrl-C is for all of its processes.
    const child = spawn('sh', ['-c', command], { cwd, detached: true, env })
    const signal = (name: NodeJS.Signals) => {
      try {
        kill(-(child.pid ?? 0), name)
      } catch {
        // All of them have ended.
      }
    }
    const program = watchProgram(this.#t, child)
    this.#t.teardown(() => signal('SIGKILL'))
    const output = () => program.stdout() + program.stderr()
    return {
      ...program,
      output,
      says: (pattern) =>
        new Promise((resolve, reject) => {
          const look = () => {
            const found = pattern.exec(output())
            if (found) resolve(found)
          }
          for (const stream of [child.stdout, child.stderr]) stream.on('data', look)
          const onEnd = (code: number | null) => reject(new Error(`${command} ended with ${code}: ${output()}`))
          program.ended.then(onEnd, reject)
          look()
        }),
      interrupt() {
        signal('SIGINT')
        return program.ended
      },
    }
  }

  /** A registry with one package, a server on stdio. */
  async #serveRegistry(): Promise<string> {
    const folder = temporaryFolder(this.#t)
    await ended(this.#spawn(`npm pack --pack-destination ${folder}`, this.#env, fixture(PACKAGE)))
    const tarball = readFileSync(join(folder, `${PACKAGE}-1.0.0.tgz`))
    const integrity = `sha512-${createHash('sha512').update(tarball).digest('base64')}`
    const server = createServer(({ url, headers: { host } }, response) => {
      if (url === '/package.tgz') return void response.end(tarball)
      if (url !== `/${PACKAGE}`) return void response.writeHead(404).end('{}')
      const dist = { tarball: `http://${host}/package.tgz`, integrity }
      const version = { name: PACKAGE, version: '1.0.0', bin: { [PACKAGE]: 'main.js' }, dist }
      const versions = { 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': version } }
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ name: PACKAGE, ...versions }))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    this.#t.teardown(() => {
      server.closeAllConnections()
      server.close()
    })
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  }
}

/** What a command has printed. Rejects if it fails. */
async function ended({ ended, stdout, output }: Started): Promise<string> {
  if ((await ended) !== 0) throw new Error(output())
  return stdout()
}

/** Passes a request on to a server on this machine. */
function pass(target: string, request: IncomingMessage, response: ServerResponse): void {
  const { method, url = '', headers } = request
  const passed = forward(
    new URL(url, target),
    { method, headers: { ...headers, 'x-forwarded-proto': 'https' } },
    (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      response.flushHeaders()
      answer.pipe(response)
    },
  )
  passed.on('error', () => response.destroy())
  response.on('close', () => passed.destroy())
  request.pipe(passed)
}
