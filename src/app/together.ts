/** What the workers of a bridge tell of themselves, as one answer. */
import type { BridgeStatus, Readiness } from '../mcp/ports/bridge-status.js'

/** The readiness of one worker. */
export type Ready = Readiness & { ready: boolean }

type State = Readonly<Record<string, unknown>>
type States = Readonly<Record<string, object>>

/** What is counted, of a server or group. */
const COUNTED = ['sessions', 'calls', 'parked', 'programs', 'memory']

/** One worker that is ready can answer. */
export function readinessTogether(all: readonly Ready[]): Ready {
  const [first] = all as [Ready]
  const best = all.find(({ ready }) => ready) ?? first
  const groups = statesTogether(all.map((one) => one.groups ?? {}))
  return {
    ...best,
    servers: statesTogether(all.map(({ servers }) => servers)),
    ...(first.groups && { groups }),
  }
}

/** The oldest worker is as old as the bridge. */
export function statusTogether(all: readonly BridgeStatus[]): BridgeStatus {
  const sum = (of: (one: BridgeStatus) => number) => all.reduce((total, one) => total + of(one), 0)
  const readiness = readinessTogether(all.map((one) => ({ ...one, ready: one.status === 'ready' })))
  const { ready: _, ...best } = readiness
  const [since = ''] = all.map((one) => one.since).sort()
  return {
    ...(best as BridgeStatus),
    since,
    memory: sum(({ memory }) => memory),
    programs: sum(({ programs }) => programs),
    workers: all.length,
  }
}

/** The states of the same servers in several workers. */
function statesTogether(all: readonly States[]): States {
  const names = new Set(all.flatMap((one) => Object.keys(one)))
  const statesOf = (name: string) => all.map((one) => one[name] as State).filter((one) => one !== undefined)
  return Object.fromEntries([...names].map((name) => [name, stateTogether(statesOf(name))]))
}

function stateTogether(all: readonly State[]): State {
  const best = all.find(({ state }) => state === 'ready') ?? (all[0] as State)
  const counts = COUNTED.filter((name) => all.some((one) => typeof one[name] === 'number')).map((name) => [
    name,
    all.reduce((total, one) => total + (Number(one[name]) || 0), 0),
  ])
  const failures = all.flatMap(({ lastError }) => (lastError as { at: string } | undefined) ?? [])
  const lastError = failures.sort((one, other) => (one.at < other.at ? 1 : -1))[0]
  return { ...best, ...Object.fromEntries(counts), ...(lastError && { lastError }) }
}
