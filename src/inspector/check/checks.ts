/** Checks values against schemas of servers, each in a thread of its own with bounds of time and memory. */
import { getAsset, isSea } from 'node:sea'
import { Worker } from 'node:worker_threads'
import { Fault } from '../../base/fault/fault.js'
import { CHECKER } from './file.js'

/** Most checks at once. */
const MAX_CHECKS = 2
/** Most checks that wait for others. */
const MAX_WAITING_CHECKS = 16
/** Milliseconds for one check, and for the program of its thread to load. */
const CHECK_WITHIN = 2_000
const LOAD_WITHIN = 30_000
/** Megabytes of a thread. */
const MEMORY = { maxOldGenerationSizeMb: 96, maxYoungGenerationSizeMb: 16, stackSizeMb: 2 }

const TOO_SLOW = { ok: null, why: `The check took longer than ${CHECK_WITHIN / 1_000} seconds.` }
const TOO_LARGE = { ok: null, why: 'The check needed too much memory.' }

let running = 0
const waiting: (() => void)[] = []

/** The answer to `{schema, value}`, as JSON. Rejects with a Fault if too many wait. */
export async function check(text: string): Promise<object> {
  if (running >= MAX_CHECKS) {
    if (waiting.length >= MAX_WAITING_CHECKS)
      throw new Fault('overloaded', `Too many checks at once (at most ${MAX_WAITING_CHECKS} wait)`, { retryAfter: 1 })
    await new Promise<void>((resolve) => waiting.push(resolve))
  } else running++
  try {
    return await inThread(text)
  } finally {
    const next = waiting.shift()
    if (next) next()
    else running--
  }
}

function inThread(text: string): Promise<object> {
  const options = { workerData: text, env: {}, execArgv: [], resourceLimits: MEMORY }
  // The executable has the file inside.
  const worker = isSea()
    ? new Worker(getAsset('checker.cjs', 'utf8'), { ...options, eval: true })
    : new Worker(CHECKER, options)
  // It must not keep a bridge running that ends.
  worker.unref()
  return new Promise<object>((resolve) => {
    const late = () => resolve(TOO_SLOW)
    let timer = setTimeout(late, LOAD_WITHIN)
    const end = (answer: object) => {
      clearTimeout(timer)
      resolve(answer)
    }
    worker.on('message', (message: unknown) => {
      if (typeof message === 'object' && message !== null) return end(message)
      clearTimeout(timer)
      timer = setTimeout(late, CHECK_WITHIN)
    })
    worker.on('error', (error: Error & { code?: string }) =>
      end(error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? TOO_LARGE : { ok: null, why: 'The check failed.' }),
    )
    worker.on('exit', () => end({ ok: null, why: 'The check failed.' }))
  }).finally(() => {
    worker.terminate().catch(() => {})
  })
}
