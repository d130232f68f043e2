/** The memory of programs with all that they have started, from the files of Linux. */
import { readdirSync, readFileSync } from 'node:fs'

/** Milliseconds for which what was read counts. Whoever asks for the state of a bridge often makes it read no more often. */
const FRESH = 1_000
/** Most processes of a machine that are looked at. */
const MAX_PROCESSES = 20_000

let read: { at: number; byGroup: ReadonlyMap<number, number> } | undefined

/** Bytes of memory of the process groups that these processes lead; undefined where the system does not tell it. */
export function memoryOf(leaders: readonly number[]): number | undefined {
  if (!read || performance.now() - read.at > FRESH) read = { at: performance.now(), byGroup: residentByGroup() }
  const { byGroup } = read
  const known = leaders.flatMap((leader) => byGroup.get(leader) ?? [])
  return known.length === 0 ? undefined : known.reduce((sum, bytes) => sum + bytes, 0)
}

function residentByGroup(): Map<number, number> {
  const byGroup = new Map<number, number>()
  for (const id of processes()) {
    try {
      // proc_pid_stat(5): the name may have spaces and parentheses; the group is the third field behind it.
      const stat = readFileSync(`/proc/${id}/stat`, 'latin1')
      const group = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ', 3)[2])
      const resident = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${id}/status`, 'latin1'))?.[1]
      if (resident !== undefined) byGroup.set(group, (byGroup.get(group) ?? 0) + Number(resident) * 1024)
    } catch {
      // It has ended, or it is somebody else's.
    }
  }
  return byGroup
}

function processes(): string[] {
  try {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .slice(0, MAX_PROCESSES)
  } catch {
    return []
  }
}
