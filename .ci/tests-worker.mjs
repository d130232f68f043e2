/**
 * Runs files of tests one after the other in one process, so that what they share is loaded and compiled once.
 *
 * Each file is a test of its own, a part of that of the process. The message `{ name: null }` says that the process is
 * ready. It gets `{ name, path, patience }`, and answers with `{ name, passed, assertions, seconds, cpu }` when all tests of the
 * file have ended. `{}` ends the process, unless a file has left something open.
 */
import { readFileSync } from 'node:fs'
import { cpuUsage } from 'node:process'
import { pathToFileURL } from 'node:url'
import tap from 'tap'
import { current } from './tests-current.mjs'

/** Ticks of the clock in /proc, in a second. */
const TICKS = 100

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
  // tap lets it go when it writes for the first time.
  process.channel.ref()
  process.send({
    name,
    passed: results?.ok === true && results.count > 0,
    assertions: results?.assertions ?? 0,
    seconds: (performance.now() - start) / 1_000,
    cpu: cpuSeconds() - before,
  })
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
