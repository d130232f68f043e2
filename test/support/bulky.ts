/** Servers of test/fixtures/bulky.mjs, one of each kind, as entries of the configuration. */
import type { Test } from 'tap'
import type { mcpBridge } from '../../src/app/embed/fastify.js'
import { startFixture } from './process.js'
import { bulkyStdio } from './small-heap.js'

export type BulkyServer = NonNullable<Parameters<typeof mcpBridge>[1]['mcpServers']>[string]

const over = async (t: Test, era: 'legacy' | 'modern', transport: 'http' | 'sse') => {
  const { url } = await startFixture(t, 'bulky.mjs', era, transport)
  return transport === 'sse' ? { url, type: 'sse' as const } : { url }
}

/** One of each kind. */
export const BULKY: readonly [name: string, start: (t: Test) => Promise<BulkyServer> | BulkyServer][] = [
  ['a legacy program', () => bulkyStdio('legacy')],
  ['a modern program', () => bulkyStdio('modern')],
  ['a legacy server over HTTP', (t) => over(t, 'legacy', 'http')],
  ['a modern server over HTTP', (t) => over(t, 'modern', 'http')],
  ['a server over HTTP+SSE', (t) => over(t, 'legacy', 'sse')],
]
