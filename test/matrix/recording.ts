/**
 * What went over both wires in every cell of the matrix, so that two versions of the bridge can be compared byte by byte:
 * `MATRIX_RECORDING=before.json npm run test:only -- matrix`. What differs from run to run has a name in its place.
 */
import { writeFileSync } from 'node:fs'
import type { Arrived } from './client.js'
import type { Reached } from './servers.js'

/** A pair of a client and a server. */
export interface Recorded {
  client: string
  server: string
  /** All messages that reached the server, sorted: notifications of one scenario may arrive in the next. */
  toServer: string[]
  /** What reached the clients of a scenario, in its order, by the stream that it came on. */
  toClients: Record<string, Record<string, string[]>[]>
}

/** Texts of the bridge or of this machine that are others in every run. */
const CHANGING: readonly [name: string, pattern: RegExp][] = [
  ['state', /(?<="requestState":")[^"]*(?=")/g],
  ['task', /(?<="taskId":")[^"]*(?=")/g],
  ['uuid', /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g],
  ['address', /(?:127\.0\.0\.1|localhost|\[::1\]):\d+/g],
  ['time', /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g],
  ['pid', /(?<="pid":)\d+/g],
]

function steady(text: string): string {
  return CHANGING.reduce((shown, [name, pattern]) => shown.replace(pattern, `<${name}>`), text)
}

export function received(reached: readonly Reached[]): string[] {
  return reached.map(({ text }) => steady(text)).sort()
}

export function byStream(arrived: readonly Arrived[]): Record<string, string[]> {
  const streams: Record<string, string[]> = {}
  for (const { text, on = 'session' } of arrived) {
    streams[on] ??= []
    streams[on].push(steady(text))
  }
  return streams
}

export function save(file: string, pairs: readonly Recorded[]): void {
  writeFileSync(file, `${JSON.stringify(pairs, null, 1)}\n`)
}
