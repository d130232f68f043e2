/** The program as it is published, started by hosts several times for one server, and killed with its process group. */
import { execFile, spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { Guarded } from '../support/guarded.js'
import { Oidc } from '../support/oidc.js'
import { visit } from '../support/person.js'
import { desktop } from '../support/processes.js'
import { startSdkV1 } from '../support/sdk-v1.js'
import { copyOfSource } from '../support/source.js'

t.setTimeout(1_800_000)

const ROUNDS = 30
const run = promisify(execFile)

/** Packs the program and installs it into an empty folder. Gives the path of its command. */
async function installed(t: Test): Promise<string> {
  const folder = temporaryFolder(t)
  await run('npm', ['pack', '--pack-destination', folder], { cwd: copyOfSource(t) })
  const [tarball = ''] = readdirSync(folder)
  const quiet = ['--no-audit', '--no-fund', '--offline', '--no-save']
  await run('npm', ['install', ...quiet, '--prefix', folder, `./${tarball}`], { cwd: folder })
  return join(folder, 'node_modules/.bin/mcp-bridge')
}

interface Message {
  id?: number
  result?: { serverInfo?: { name: string }; content?: { text: string }[]; isError?: boolean }
  error?: object
}

/** A process of the program on stdio, with a process group of its own. */
class Hosted {
  readonly #answers = new Map<number, Message>()
  readonly #child
  #last = 0

  constructor(t: Test, command: string, args: readonly string[]) {
    this.#child = spawn(execPath, [command, ...args], { detached: true, stdio: ['pipe', 'pipe', 'ignore'] })
    this.#child.stdin.on('error', () => {})
    createInterface(this.#child.stdout).on('line', (line) => {
      const message = JSON.parse(line) as Message
      if (message.id !== undefined) this.#answers.set(message.id, message)
    })
    t.teardown(() => this.kill())
  }

  /** Sends a request. Resolves to its answer when that has come. */
  async ask(method: string, params: object): Promise<Message> {
    const id = ++this.#last
    this.#child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
    await until(() => this.#answers.has(id), `an answer to ${method}`)
    return this.#answers.get(id) as Message
  }

  connect(): Promise<Message> {
    return this.ask('initialize', {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'host', version: '1' },
    })
  }

  kill(): void {
    const { pid, exitCode, signalCode } = this.#child
    if (pid !== undefined && exitCode === null && signalCode === null) process.kill(-pid, 'SIGKILL')
  }
}

t.test(
  `5 processes of the packed program, two of them killed: one window and one registration, ${ROUNDS} times`,
  async (t) => {
    const command = await installed(t)
    const oidc = await Oidc.start(t)
    const legacy = await startSdkV1(t, (server) => {
      server.registerTool('greet', { description: 'Greets.' }, () => ({ content: [{ type: 'text', text: 'Hello' }] }))
    })
    for (let round = 0; round < ROUNDS; round++) {
      await t.test(`round ${round}`, async (t) => {
        const server = await Guarded.start(t, oidc, legacy)
        const { browser, opened } = await desktop(t)
        const before = oidc.of('/reg').length
        const codes = oidc.grants('authorization_code').length
        const args = ['--listen', 'stdio', '--upstream', server.url, '--token-store', `${temporaryFolder(t)}/tokens`]
        const start = () => new Hosted(t, command, [...args, '--browser', browser.join(' ')])
        const processes = Array.from({ length: 5 }, start)
        const connecting = processes.map((one) => one.connect().catch(() => undefined))
        await until(() => opened.length > 0, 'a browser was opened')
        // Two of five, at a moment of their own: now and then the one that has the port is among them.
        await new Promise((resolve) => setTimeout(resolve, (round * 37) % 400))
        const killed = [round % 5, (round + 1 + (round % 3)) % 5]
        for (const nth of killed) processes[nth]?.kill()
        const late = start()
        const { status } = await visit(opened[0] ?? '', { patience: 1_000 })
        t.equal(status, 200)
        const living = [...processes.keys()].filter((nth) => !killed.includes(nth))
        for (const nth of living) {
          t.match(await connecting[nth], { result: { protocolVersion: '2025-11-25' } })
          t.match(await processes[nth]?.ask('tools/call', { name: 'greet' }), {
            result: { content: [{ text: 'Hello' }] },
          })
        }
        await late.connect()
        t.match(await late.ask('tools/call', { name: 'greet' }), { result: { content: [{ text: 'Hello' }] } })
        t.equal(opened.length, 1, 'one window')
        t.equal(oidc.of('/reg').length - before, 1, 'one registration')
        t.equal(oidc.grants('authorization_code').length - codes, 1, 'one code is redeemed')
        for (const one of [...processes, late]) one.kill()
      })
    }
  },
)
