/** What attacks on the memory of the bridge are made of. */
import type { Test } from 'tap'
import { until } from './eventually.js'
import { type Answer, envelope, headersFor } from './modern.js'
import { startFixture } from './process.js'
import type { Attacked } from './small-heap.js'

type Json = Record<string, unknown>

export const MEGA = 1024 * 1024
/** Somewhat less than a request may have. */
export const LARGE = 3_900_000
/** V8 keeps a text of this length in its heap; those of over a megabyte it does not. */
export const MIDDLE = 900_000

/** Does something so often, some of it at a time. */
export async function inParallel<T>(times: number, atOnce: number, act: (at: number) => Promise<T>): Promise<T[]> {
  const results: T[] = []
  let next = 0
  const worker = async () => {
    while (next < times) {
      const at = next++
      results[at] = await act(at)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  return results
}

/** Modern requests as a text, for those who do not wait for an answer. */
export function modernRequest(method: string, params: Json, meta: Json = {}) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: envelope(meta) } })
  return { headers: headersFor(method, params), body }
}

export function bulk(args: Json, progressToken?: string) {
  return modernRequest('tools/call', { name: 'bulk', arguments: args }, progressToken ? { progressToken } : {})
}

/** A server of test/fixtures/bulky.mjs over HTTP, as an entry of the configuration. */
export const overHttp = async (t: Test, era: 'legacy' | 'modern') => ({
  url: (await startFixture(t, 'bulky.mjs', era, 'http')).url,
})

/** Waits until the bridge has no memory reserved any more. */
export async function ledgerEmpty(attacked: Attacked): Promise<void> {
  await until(async () => (await attacked.gauge()).used === 0, 'the ledger being empty')
}

/** How many answers had which HTTP status. */
export const statusesOf = (answers: readonly Answer[]) =>
  Object.fromEntries(
    [...new Set(answers.map(({ status }) => status))].map((s) => [
      s,
      answers.filter(({ status }) => status === s).length,
    ]),
  )
