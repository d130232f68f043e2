/** How tests show that something is not ended for being idle: by something else that became idle later, and has ended. */
import type { Test } from 'tap'
import { startBridge } from './bridge.js'
import { until } from './eventually.js'
import { type LegacyStdio, legacyStdio } from './legacy-stdio.js'
import { call } from './modern.js'

/** Processes whose input the bridge has ended, by their ids. */
export function ended({ seen }: Pick<LegacyStdio, 'seen'>): string[] {
  return seen().flatMap(({ pid, line }) => (line === 'input ended' ? [pid] : []))
}

/** Passes for longer than an idle limit of 100 ms: a program that is used once, now, has ended after its limit of 200 ms. */
export async function outlastIdleLimit(t: Test): Promise<void> {
  const other = legacyStdio(t)
  const { url } = await startBridge(t, other.server, { timeouts: { idle: 200 } })
  await call(url, 'tools/call', { name: 'echo', arguments: {} })
  await until(() => ended(other).length === 1, 'the end of another process')
}
