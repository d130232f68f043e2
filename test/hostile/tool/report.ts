/** What is printed in the end. */
import type { Figures, Health } from './healthy.js'
import { FAILURES, type Failure, type Verdict } from './verdict.js'

/** Milliseconds that 99 of 100 calls of the healthy client stay below. */
const P99 = 250

export interface Report {
  verdict: Verdict
  health: Health
  /** The same calls without a bridge, which shows what the machine is good for. */
  machine: Health
  before: Record<string, number>
  after: Record<string, number>
  seconds: number
  seed: number
}

export function print({ verdict, health, machine, before, after, seconds, seed }: Report): void {
  const worst = Math.max(...health.targets.map(({ p99 }) => p99))
  if (worst >= P99) verdict.fail('healthy', `p99 of ${worst.toFixed(0)} ms, and ${P99} ms is the limit`)
  const mib = (series: Record<string, number>) => Math.round((series['process_resident_memory_bytes'] ?? 0) / 2 ** 20)
  console.log(`
inputs            ${verdict.inputs}
runs              ${verdict.runs}, in ${seconds.toFixed(0)} s`)
  for (const [failure, says] of Object.entries(FAILURES) as [Failure, string][])
    console.log(`${failure.padEnd(17)} ${String(verdict.count(failure)).padEnd(7)} ${says}`)
  for (const [name, figures] of [
    ['a program', health.targets[0]],
    ['unchanged', health.targets[1]],
    ['no bridge', machine.targets[0]],
  ] as const)
    console.log(`healthy client    ${name.padEnd(10)} ${shown(figures)}`)
  const lag = (part: string) => ((after[`nodejs_eventloop_lag_${part}_seconds`] ?? 0) * 1_000).toFixed(0)
  console.log(`event loop        held up ${lag('p99')} ms (p99), ${lag('max')} ms at most`)
  console.log(`memory            ${mib(before)} MiB before, ${mib(after)} MiB after`)
  if (verdict.failures > 0)
    console.log(`\nFailed: examples are above. The same again: npm run test:hostile -- --seed ${seed}`)
}

function shown(figures: Figures | undefined): string {
  if (!figures) return 'no calls'
  const { calls, p50, p99, max } = figures
  return `${calls} calls, p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, at most ${max.toFixed(0)} ms`
}
