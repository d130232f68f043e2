/** How many workers `auto` means: as many as CPUs that this process may use, by its affinity and by the limits of its cgroup. */
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'

const ROOT = '/sys/fs/cgroup'

export function workersOf(workers: number | 'auto', read: (path: string) => string | undefined = textOf): number {
  if (workers !== 'auto') return workers
  return Math.max(1, Math.floor(Math.min(availableParallelism(), quotaOf(read))))
}

/** The CPUs that the cgroup of this process and those above it allow; Infinity without a limit. Systems without cgroups have none. */
function quotaOf(read: (path: string) => string | undefined): number {
  // In a container, its own cgroup is at the root.
  const [, own = '/'] = /^0::(\/.*)$/m.exec(read('/proc/self/cgroup') ?? '') ?? []
  const parts = own.split('/').filter(Boolean)
  const folders = [...parts.keys(), parts.length].map((length) => [ROOT, ...parts.slice(0, length)].join('/'))
  const ofVersion2 = folders.map((folder) => ratioOf(read(`${folder}/cpu.max`)?.split(' ')))
  const ofVersion1 = ratioOf([read(`${ROOT}/cpu/cpu.cfs_quota_us`), read(`${ROOT}/cpu/cpu.cfs_period_us`)])
  return Math.min(...ofVersion2, ofVersion1)
}

/** `max`, -1 or nothing: no limit. */
function ratioOf([quota, period]: readonly (string | undefined)[] = []): number {
  const cpus = Number(quota) / Number(period)
  return cpus > 0 ? cpus : Number.POSITIVE_INFINITY
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return undefined
  }
}
