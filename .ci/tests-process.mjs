/** The processes that run tests, for tests.mjs. A file gives `{ passed, output, assertions, seconds, cpu }`. */
import { spawn } from 'node:child_process'
import { execPath } from 'node:process'
import { setTimeout as pause } from 'node:timers/promises'

/** Seconds that a file may take. It only ends files that hang: the slowest takes four minutes on two quiet cores. */
const PATIENCE = 1_200
/** Seconds for which the output of a process is read after its end, and of a file after the message of its end. */
const LEFT_OPEN = 5
/** Seconds in which a process ends that has nothing more to run. Else one of its files has left something open. */
const LINGERING = 60
/** The last line of what tap writes of a file. */
const LAST = /^(?:not )?ok \d+ - .*\n/m

/** A process that runs one file of the bundle after the other (tests-worker.mjs). */
export class Worker {
  #process
  #ready
  #files = []

  constructor(path, env) {
    this.#process = start([path], env, ['ignore', 'pipe', 'pipe', 'ipc'])
    this.#ready = this.#message(null)
  }

  async run(name, path) {
    await this.#ready
    this.#files.push(name)
    this.#process.output = ''
    const { child, closed } = this.#process
    const message = this.#message(name)
    child.send({ name, path, patience: PATIENCE * 1_000 })
    const impatient = setTimeout(() => child.kill('SIGKILL'), (PATIENCE + LEFT_OPEN) * 1_000)
    const result = await message
    clearTimeout(impatient)
    if (result === undefined) await closed
    const late = AbortSignal.timeout(LEFT_OPEN * 1_000)
    while (result && !LAST.test(this.#process.output) && !late.aborted) await pause(5)
    return { passed: false, assertions: 0, ...result, output: this.#process.output }
  }

  /** Ends the process. Says what is wrong if it does not end by itself. */
  async end() {
    const { child, closed } = this.#process
    // Once the parent has closed this channel, Node.js does not say that the process has ended.
    if (child.connected) child.send({})
    let lingers = false
    const impatient = setTimeout(() => {
      lingers = true
      // tap answers with a list of what is open.
      child.kill('SIGALRM')
      setTimeout(() => child.kill('SIGKILL'), LEFT_OPEN * 1_000)
    }, LINGERING * 1_000)
    await closed
    clearTimeout(impatient)
    return lingers
      ? // Last, because reports show the end of what is long.
        `${this.#process.output}\nOne of these has left something open: ${this.#files.join(', ')}`
      : undefined
  }

  /** The message with a name, or nothing if the process ends. tap sends some of its own. */
  #message(name) {
    const { child, closed } = this.#process
    return new Promise((resolve) => {
      child.on('message', function hear(message) {
        if (message.name !== name) return
        child.off('message', hear)
        resolve(message)
      })
      closed.then(() => resolve(undefined))
    })
  }
}

/** Runs one file in a process of its own, without a worker. */
export async function run(args, env) {
  const process = start(args, env, ['ignore', 'pipe', 'pipe'])
  const impatient = setTimeout(() => process.child.kill('SIGKILL'), PATIENCE * 1_000)
  const code = await process.closed
  clearTimeout(impatient)
  const { output } = process
  // A file without a plan has not come to its end.
  const passed = code === 0 && /^1\.\.\d+/m.test(output)
  return { passed, output, assertions: Number(/^# \{ total: (\d+)/m.exec(output)?.[1] ?? 0) }
}

function start(args, env, stdio) {
  const child = spawn(execPath, args, { env: { ...env, TAP_TIMEOUT: String(PATIENCE) }, stdio })
  const streams = [child.stdout, child.stderr]
  const started = {
    child,
    output: '',
    closed: new Promise((resolve) => {
      child.once('close', (code, signal) => {
        if (signal) started.output += `\nended by ${signal}\n`
        resolve(code)
      })
    }),
  }
  // What is sent to a process that has just ended: `closed` says that it has.
  child.on('error', (error) => {
    started.output += `\n${error.message}\n`
  })
  for (const stream of streams)
    stream.setEncoding('utf8').on('data', (chunk) => {
      started.output += chunk
    })
  // A process that it has left behind may hold its output open.
  child.once('exit', () => {
    const destroy = () => {
      for (const stream of streams) stream.destroy()
    }
    setTimeout(destroy, LEFT_OPEN * 1_000).unref()
  })
  return started
}
