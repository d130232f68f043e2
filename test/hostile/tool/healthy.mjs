/**
 * A healthy client beside hostile ones, as a process of its own so that nothing else holds it up: it calls at a fixed rate,
 * whether earlier calls have been answered or not, and prints what became of them when its input ends. The first argument is JSON:
 * `targets` (`url`, `headers`, `body`, and `expect`, a text in each good answer) and `every`, milliseconds between two calls.
 */
import { Agent, request } from 'node:http'

const { targets, every } = JSON.parse(process.argv[2] ?? '{}')
const agent = new Agent({ keepAlive: true, maxSockets: 64 })
/** Milliseconds after which an answer counts as missing. */
const PATIENCE = 10_000
const times = targets.map(() => [])
const errors = []
let failed = 0
let next = 0

function call() {
  const n = next++ % targets.length
  const { url, headers, body, expect } = targets[n]
  const began = performance.now()
  const fail = (why) => {
    failed++
    if (errors.length < 5) errors.push(`${new URL(url).pathname}: ${why}`)
  }
  const sent = request(url, { method: 'POST', headers, agent, timeout: PATIENCE }, (response) => {
    let text = ''
    response.setEncoding('utf8').on('data', (chunk) => {
      text += chunk
    })
    response.on('end', () => {
      times[n].push(performance.now() - began)
      if (!text.includes(expect)) fail(`${response.statusCode} ${text.slice(0, 200)}`)
    })
  })
  sent.on('timeout', () => sent.destroy(new Error('no answer in time')))
  sent.on('error', (error) => {
    times[n].push(performance.now() - began)
    fail(error.message)
  })
  sent.end(body)
}

const calling = setInterval(call, every)
process.stdin.resume().on('end', () => {
  clearInterval(calling)
  // What is still open has a moment to come.
  setTimeout(() => {
    process.stdout.write(JSON.stringify({ failed, errors, targets: times.map(figures) }))
    process.exit(0)
  }, 1_000)
})

function figures(unsorted) {
  const sorted = unsorted.sort((a, b) => a - b)
  const at = (part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0
  return { calls: sorted.length, p50: at(0.5), p99: at(0.99), max: sorted.at(-1) ?? 0 }
}
