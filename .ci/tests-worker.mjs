/**
 * Runs files of tests one after the other in one process, so that what they share is loaded and compiled once.
 *
 * Each file is a test of its own, a part of that of the process. The message `{ name: null }` says that the process is
 * ready. It gets `{ name, path, patience }`, and answers with `{ name, passed, assertions, seconds, cpu }` when all tests of the
 * file have ended. `{}` ends the process, unless a file has left something open. A file that leaves a long timer running
 * has failed: the process could not end before it.
 */
import { readFileSync } from 'node:fs'
import { cpuUsage } from 'node:process'
import { setTimeout as pause } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import tap from 'tap'
import { current } from './tests-current.mjs'

/** Ticks of the clock in /proc, in a second. */
const TICKS = 100

/** Milliseconds between two writes of what tap says. A write for each line would wake the parent 100,000 times. */
const WRITING = 50
const { stdout } = process
const write = stdout.write.bind(stdout)
/** The clock of the process: tests have others. */
const { setTimeout: later } = globalThis
let unwritten = ''
stdout.write = (text) => {
  if (unwritten === '') later(writeAll, WRITING).unref()
  unwritten += text
  return true
}
process.on('exit', () => {
  stdout.write = write
  writeAll()
})

/** Milliseconds of a timer that is long, and milliseconds in which those of a file end that are about to be cleared. */
const LONG = 10_000
const CLEARING = 15_000
/** Functions that are said of where a timer was set. Each costs: clients and servers set tens of thousands of long timers. */
const FRAMES = 5
/** Long timers: weak references, and where they were set. Those that have ended are removed now and then. */
let timers = []
let worthRemoving = 1_000

for (const name of ['setTimeout', 'setInterval']) globalThis[name] = watched(globalThis[name])

// In place of the hooks that tap has for this (tests-domain.mjs).
process.on('uncaughtException', (error, origin) => {
  const thrown = typeof error === 'object' && error !== null ? error : { error }
  thrown.tapCaught = origin
  innermost(tap).threw(thrown)
})

// Files have a limit of their own; all of them together have none.
tap.setTimeout(0)

process.on('message', ({ name, path, patience }) =>
  name === undefined ? process.disconnect() : run(name, path, patience),
)
process.send({ name: null })

async function run(name, path, patience) {
  const start = performance.now()
  const before = cpuSeconds()
  let results
  await tap.test(name, { timeout: patience }, async (t) => {
    t.on('complete', (all) => {
      results = { ...all, assertions: t.counts.total }
    })
    current.test = t
    await import(pathToFileURL(path).href)
  })
  const left = await timersLeft()
  if (left.length > 0) process.stderr.write(`Timers left running:\n${left.join('\n')}\n`)
  writeAll()
  // tap lets it go when it writes for the first time.
  process.channel.ref()
  process.send({
    name,
    passed: results?.ok === true && results.count > 0 && left.length === 0,
    assertions: results?.assertions ?? 0,
    seconds: (performance.now() - start) / 1_000,
    cpu: cpuSeconds() - before,
  })
}

function writeAll() {
  const text = unwritten
  unwritten = ''
  if (text !== '') write(text)
}

/** The test that is running, of those below another one. */
function innermost(test) {
  const below = [...test.activeSubtests].at(-1)
  return below === undefined ? test : innermost(below)
}

/** The function that sets timers. It notes the long ones. */
function watched(set) {
  const noting = (callback, milliseconds, ...rest) => {
    const timer = set(callback, milliseconds, ...rest)
    if (milliseconds < LONG) return timer
    timers.push({ timer: new WeakRef(timer), place: placeOf(`${milliseconds} ms`) })
    if (timers.length >= worthRemoving) {
      timers = timers.filter(isRunning)
      worthRemoving = 2 * timers.length + 1_000
    }
    return timer
  }
  return Object.defineProperties(noting, Object.getOwnPropertyDescriptors(set))
}

/** As text: an error that has not been read keeps what its functions were called on. */
function placeOf(what) {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = FRAMES
  const { stack } = new Error(what)
  Error.stackTraceLimit = stackTraceLimit
  return stack
}

function isRunning({ timer }) {
  const running = timer.deref()
  return running !== undefined && !running._destroyed && running.hasRef()
}

/** Where the long timers were set that keep the process alive, and that are not cleared soon. */
async function timersLeft() {
  const end = performance.now() + CLEARING
  do {
    timers = timers.filter(isRunning)
    if (timers.length === 0) return []
    await pause(50)
  } while (performance.now() < end)
  const left = timers.map(({ place }) => place)
  timers = []
  return left
}

/** CPU time of this process, and of all that it has started and that have ended (known on Linux only). */
function cpuSeconds() {
  const { user, system } = cpuUsage()
  return (user + system) / 1e6 + ofChildren()
}

function ofChildren() {
  try {
    const [user, system] = readFileSync('/proc/self/stat', 'latin1')
      .replace(/^.*\) /s, '')
      .split(' ')
      .slice(13, 15)
    return (Number(user) + Number(system)) / TICKS
  } catch {
    return 0
  }
}
