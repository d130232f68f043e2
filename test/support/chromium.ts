/** A headless Chromium, driven over a pipe with the Chrome DevTools Protocol. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { until } from './eventually.js'
import type { Scope } from './scope.js'

const PROGRAMS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const program = PROGRAMS.find((path) => existsSync(path))

/** The browser of this machine; empty if there is none. */
export const browserProgram = program ?? ''

/** Why tests with a browser are skipped, if they are. */
export const noBrowser = program === undefined && 'there is no Chromium on this machine: apt-get install chromium'

const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-dev-shm-usage',
  '--hide-scrollbars',
  '--remote-debugging-pipe',
]

type Params = Record<string, unknown>
interface Incoming {
  id?: number
  method?: string
  params?: Params
  result?: unknown
  error?: { message: string }
}

/** One browser with one page at a time. */
export class Chromium {
  /** What the page reported as wrong: exceptions, errors of the console, violations of its policy. */
  readonly mistakes: string[] = []
  /** Addresses that the page requested. */
  readonly requests: string[] = []
  readonly #child: ChildProcess
  readonly #waiting = new Map<number, (message: Incoming) => void>()
  readonly #listeners = new Map<string, (params: Params) => void>()
  #id = 0
  #session: string | undefined
  #context: string | undefined

  private constructor(child: ChildProcess) {
    this.#child = child
    let rest = ''
    const output = child.stdio[4] as Readable
    output.setEncoding('utf8')
    output.on('data', (chunk: string) => {
      const messages = (rest + chunk).split('\0')
      rest = messages.pop() ?? ''
      for (const message of messages) this.#heard(JSON.parse(message) as Incoming)
    })
  }

  /** Starts a browser, which ends with the test. */
  static async start(t: Scope): Promise<Chromium> {
    const profile = mkdtempSync(join(tmpdir(), 'mcp-bridge-chromium-'))
    const child = spawn(program as string, [...FLAGS, `--user-data-dir=${profile}`, 'about:blank'], {
      stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
    })
    const browser = new Chromium(child)
    t.teardown(async () => {
      const ended = new Promise((resolve) => child.once('exit', resolve))
      browser.#session = undefined
      // Its processes end in order, so that none writes to the profile any more.
      browser.send('Browser.close').catch(() => child.kill('SIGKILL'))
      await ended
      rmSync(profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
    })
    await browser.renew()
    return browser
  }

  /** Replaces the page by a new one that has nothing of the one before: no storage, no cache, no permissions, no listeners. */
  async renew(): Promise<void> {
    const before = this.#context
    this.#session = undefined
    const { browserContextId } = await this.send<{ browserContextId: string }>('Target.createBrowserContext')
    const { targetId } = await this.send<{ targetId: string }>('Target.createTarget', {
      url: 'about:blank',
      browserContextId,
    })
    const { sessionId } = await this.send<{ sessionId: string }>('Target.attachToTarget', { targetId, flatten: true })
    if (before !== undefined) await this.send('Target.disposeBrowserContext', { browserContextId: before })
    this.#context = browserContextId
    this.#session = sessionId
    this.mistakes.length = 0
    this.requests.length = 0
    this.#listeners.clear()
    for (const domain of ['Page', 'Runtime', 'Log', 'Network']) await this.send(`${domain}.enable`)
  }

  /** Gives the page permissions, which a person would be asked for. */
  async grant(permissions: readonly string[]): Promise<void> {
    await this.send('Browser.grantPermissions', { permissions, browserContextId: this.#context })
  }

  async open(url: string): Promise<void> {
    await this.send('Page.navigate', { url })
    await until(() => this.evaluate<boolean>("document.readyState === 'complete'"), 'the page is there')
  }

  /** The value of an expression in the page. A promise is waited for. */
  async evaluate<T>(expression: string): Promise<T> {
    const { result, exceptionDetails } = await this.send<{
      result: { value: T }
      exceptionDetails?: { text: string; exception?: { description?: string } }
    }>('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true })
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text)
    return result.value
  }

  /** The text of the page. */
  text(): Promise<string> {
    return this.evaluate<string>('document.body.innerText')
  }

  /** Presses a key. */
  async press(key: string): Promise<void> {
    const text = key.length === 1 ? { text: key } : {}
    await this.send('Input.dispatchKeyEvent', { type: 'keyDown', key, ...text })
    await this.send('Input.dispatchKeyEvent', { type: 'keyUp', key })
  }

  /** Types a text into what has the focus. */
  async type(text: string): Promise<void> {
    await this.send('Input.insertText', { text })
  }

  /** Sets what the page is told about the reader and the screen. */
  async emulate({ scheme = 'dark', width = 1400, height = 900 }): Promise<void> {
    const features = [{ name: 'prefers-color-scheme', value: scheme }]
    await this.send('Emulation.setEmulatedMedia', { features })
    await this.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: false })
  }

  /** Writes a picture of the page, as PNG or WebP by the name of the file. */
  async screenshot(file: string): Promise<void> {
    const format = file.endsWith('.webp') ? { format: 'webp', quality: 85 } : { format: 'png' }
    const { data } = await this.send<{ data: string }>('Page.captureScreenshot', format)
    writeFileSync(file, Buffer.from(data, 'base64'))
  }

  /** Calls back for each event of the DevTools Protocol with this name. */
  on(method: string, listener: (params: Params) => void): void {
    this.#listeners.set(method, listener)
  }

  /** Sends a command of the DevTools Protocol. */
  send<T>(method: string, params: Params = {}): Promise<T> {
    const id = ++this.#id
    const message = { id, method, params, ...(this.#session !== undefined && { sessionId: this.#session }) }
    ;(this.#child.stdio[3] as Writable).write(`${JSON.stringify(message)}\0`)
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, ({ result, error }) => {
        if (error) reject(new Error(`${method}: ${error.message}`))
        else resolve(result as T)
      })
    })
  }

  #heard(message: Incoming): void {
    const { id, method, params = {} } = message
    if (id !== undefined) {
      this.#waiting.get(id)?.(message)
      this.#waiting.delete(id)
    } else if (method !== undefined && this.#listeners.has(method)) this.#listeners.get(method)?.(params)
    else if (method === 'Network.requestWillBeSent') this.requests.push((params['request'] as { url: string }).url)
    else if (method === 'Runtime.exceptionThrown') this.mistakes.push(JSON.stringify(params['exceptionDetails']))
    else if (method === 'Runtime.consoleAPICalled' && params['type'] === 'error')
      this.mistakes.push(JSON.stringify(params))
    else if (method === 'Log.entryAdded') {
      const { level, text, url } = params['entry'] as { level: string; text: string; url?: string }
      if (level === 'error' || /polic|trusted/i.test(text)) this.mistakes.push(`${text} ${url ?? ''}`)
    }
  }
}
