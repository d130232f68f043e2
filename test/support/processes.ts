/** Processes that sign in, started as hosts start them, and killed as hosts kill them: with their group, at any moment. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { execPath } from 'node:process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { until } from './eventually.js'
import { listenUntilEnd } from './listen-until-end.js'
import { programArgs } from './program.js'
import { watchForSecrets } from './secrets.js'
import type { ProcessOptions } from './sign-in.program.js'

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))

export class SigningProcess {
  readonly said: unknown[][] = []
  readonly #child: ChildProcess
  ended = false

  constructor(t: Test, options: ProcessOptions) {
    this.#child = spawn(execPath, [...programArgs('support/sign-in'), JSON.stringify(options)], {
      detached: true,
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    this.#child.once('exit', () => {
      this.ended = true
    })
    const { stdout, stdin } = this.#child
    stdin?.on('error', () => {})
    if (stdout) createInterface(stdout).on('line', (line) => this.said.push(JSON.parse(line) as unknown[]))
    watchForSecrets(t, 'the output of a process', () => JSON.stringify(this.said))
    t.teardown(() => this.kill())
  }

  tell(command: string): void {
    this.#child.stdin?.write(`${command}\n`)
  }

  /** What came of a command, once it has. */
  async outcome(command: string, nth = 1): Promise<unknown> {
    const found = () => this.said.filter(([said]) => said === command)
    await until(() => found().length >= nth, `${command} of a process`)
    return found()[nth - 1]?.[1]
  }

  ready(): Promise<void> {
    return until(() => this.said.length > 0, 'a process was ready')
  }

  /** Stops it as a machine that has no time for it. */
  stop(): void {
    this.#signal('SIGSTOP')
  }

  goOn(): void {
    this.#signal('SIGCONT')
  }

  /** Ends it and all that it has started, without a word. */
  kill(): void {
    this.#signal('SIGKILL')
  }

  #signal(name: NodeJS.Signals): void {
    const { pid } = this.#child
    if (this.ended || pid === undefined) return
    try {
      process.kill(-pid, name)
    } catch {
      // It has just ended.
    }
  }
}

export interface Desktop {
  /** The command that opens a browser. */
  browser: readonly string[]
  /** Addresses that browsers were opened with. */
  opened: string[]
}

/** Where browsers tell where they were sent. */
export async function desktop(t: Test): Promise<Desktop> {
  const opened: string[] = []
  const server = createServer((request, response) => {
    let text = ''
    request.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
    })
    request.on('end', () => {
      opened.push(...(JSON.parse(text) as string[]))
      response.end()
    })
  })
  await listenUntilEnd(t, server)
  const { port } = server.address() as AddressInfo
  return { browser: [execPath, here('../fixtures/browser.mjs'), `http://127.0.0.1:${port}/`], opened }
}
