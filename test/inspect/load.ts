/**
 * `npm run test:page [-- --calls N] [-- --minutes N]`: the page of the inspector is open while many calls pass, by default 100,000
 * in five minutes. Prints, from the browser's tracing, how long the page's frames, tasks and answers to keys took, and whether
 * the page has missed an event without saying so. Exit code 1 says that it has, or that a call or the page failed.
 */
import { spawn } from 'node:child_process'
import { execPath } from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Chromium } from '../support/chromium.js'
import { main } from '../support/cli.js'
import { until } from '../support/eventually.js'
import { messages } from '../support/inspected.js'
import { ToolScope } from '../support/scope.js'
import { type Traced, trace } from './tracing.js'

const { values } = parseArgs({ options: { calls: { type: 'string' }, minutes: { type: 'string' } } })
const calls = Number(values.calls ?? 100_000)
const minutes = Number(values.minutes ?? 5)

/** Most calls at once, and milliseconds between two looks at the page. */
const MAX_OPEN = 32
const LOOK = 5_000
const SERVER = fileURLToPath(new URL('../bench/stdio-server.mjs', import.meta.url))

/** A longer task is felt, in milliseconds. */
const LONG = 50
/** After so many times the planned minutes no further call is made. */
const LATEST = 2

const scope = new ToolScope()
try {
  process.exitCode = (await run()) ? 0 : 1
} finally {
  await scope.end()
}

async function run(): Promise<boolean> {
  const args = ['--inspect', '--log-format', 'pretty', '--log-level', 'warn', '-l', 'http://127.0.0.1:0/mcp']
  const bridge = spawn(execPath, [main, ...args, '--', execPath, SERVER, 'legacy'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  scope.teardown(() => bridge.kill())
  let said = ''
  bridge.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  const found = (pattern: RegExp) => pattern.exec(said)?.[1] ?? ''
  await until(() => found(/listens on (\S+)/) !== '', `the bridge listens (${said})`)
  const url = found(/listens on (\S+)/)
  const address = new URL(found(/^Inspector: (\S+)/m))
  const browser = await Chromium.start(scope)
  await browser.emulate({})
  await browser.open(address.href)
  await until(async () => /live/.test(await browser.text()), 'the page is live')

  console.log(`${calls} calls in ${minutes} minutes, ${new Date().toISOString()}`)
  const answers = { right: 0, wrong: 0 }
  const began = performance.now()
  let took = 0
  const loading = load(url, answers).then(() => {
    took = performance.now() - began
  })
  const traced: Traced = { frames: [], dropped: 0, tasks: [], tasksCpu: [], keys: [], isComplete: true }
  while (took === 0) {
    const end = await trace(browser)
    await Promise.race([sleep(LOOK), loading])
    await browser.press('k')
    // The answer to the key is on the screen after the next frame.
    await browser.evaluate('new Promise((done) => requestAnimationFrame(() => setTimeout(done, 100)))')
    const { frames, dropped, tasks, tasksCpu, keys, isComplete } = await end()
    traced.frames.push(...frames)
    traced.tasks.push(...tasks)
    traced.tasksCpu.push(...tasksCpu)
    traced.keys.push(...keys)
    traced.dropped += dropped
    traced.isComplete &&= isComplete
    const { right, wrong } = answers
    console.log(`${right} right, ${wrong} wrong answers; ${await counted(browser)}; frames ${summary(frames)}`)
  }
  const { last } = await read<{ last: number }>(address, 'calls?limit=1')
  let seen = 0
  let lost = 0
  const counts = async () => {
    ;[seen = 0, lost = 0] =
      (await counted(browser)).match(/[\d,]+/g)?.map((text) => Number(text.replaceAll(',', ''))) ?? []
    return seen + lost === last
  }
  const complete = await until(counts, 'every event is shown or counted as lost').then(
    () => true,
    () => false,
  )
  const { frames, dropped, tasks, tasksCpu, keys, isComplete } = traced
  const long = (all: readonly number[]) => all.filter((ms) => ms > LONG).length
  console.log(
    `${answers.right} calls in ${(took / 1_000).toFixed(0)} s; times of the page in milliseconds, as traced by the browser:`,
  )
  console.log(`frames, from their beginning to the screen: ${summary(frames)}; ${dropped} dropped`)
  console.log(`tasks of at least 1 ms: ${summary(tasks)}; ${long(tasks)} longer than ${LONG}`)
  console.log(`the same tasks, CPU time: ${summary(tasksCpu)}; ${long(tasksCpu)} longer than ${LONG}`)
  console.log(`from a key to the screen: ${summary(keys)}`)
  if (!isComplete) console.log('the browser has lost a part of what it traced')
  console.log(`the bridge recorded ${last} events; the page has seen ${seen}, and says that ${lost} are lost`)
  // The call that is shown may leave the bridge's memory while its texts are asked for.
  const mistakes = browser.mistakes.filter((text) => !/404.*\/inspect\/calls\/c\d+$/.test(text))
  console.log(mistakes.length === 0 ? 'no error in the page' : `errors in the page: ${mistakes.join('; ')}`)
  return complete && answers.wrong === 0 && mistakes.length === 0
}

/** Makes the calls, evenly over the time, as far as answers come. */
async function load(url: string, answers: { right: number; wrong: number }): Promise<void> {
  const began = performance.now()
  const every = (minutes * 60_000) / calls
  let next = 0
  const caller = async () => {
    for (let i = next++; i < calls && performance.now() - began < minutes * 60_000 * LATEST; i = next++) {
      await sleep(began + i * every - performance.now())
      const status = await messages.post(url, messages.call('weather', { city: 'Oslo' }, { id: i })).then(
        async (response) => (await response.text()) && response.status,
        () => 0,
      )
      if (status === 200) answers.right++
      else answers.wrong++
    }
  }
  await Promise.all(Array.from({ length: MAX_OPEN }, caller))
}

async function read<T>({ origin, hash }: URL, path: string): Promise<T> {
  const headers = { authorization: `Bearer ${hash.slice(1)}` }
  return (await (await fetch(`${origin}/inspect/${path}`, { headers })).json()) as T
}

/** What the page says about its events. Its whole text would take long to read. */
function counted(browser: Chromium): Promise<string> {
  return browser.evaluate<string>(`document.querySelector('.count').textContent`)
}

/** Percentiles and the longest. */
function summary(all: readonly number[]): string {
  const sorted = all.toSorted((a, b) => a - b)
  const at = (share: number) => (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0).toFixed(0)
  return `${sorted.length}: p50 ${at(0.5)}, p95 ${at(0.95)}, p99 ${at(0.99)}, longest ${at(1)}`
}
