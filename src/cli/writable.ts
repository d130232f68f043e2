/** Who may write to configuration files: they decide which programs are started and who gets credentials. */
import { statSync } from 'node:fs'
import { platform } from 'node:os'
import { ConfigError } from '../config/settings.js'

/** Bits of the mode of a file. */
const WRITABLE = { group: 0o020, others: 0o002 }

/** Throws a ConfigError if every user of the machine may write to a file. Pipes and devices are not checked. */
export function checkWritable(path: string): void {
  if ((modeOf(path) & WRITABLE.others) === 0) return
  const message = `every user of this machine may write to ${path}, and could so start any program. Run: chmod o-w ${path}`
  throw new ConfigError([{ path: '', message }])
}

/** The files that all users of their group may write to. */
export function writableByGroup(paths: readonly string[]): string[] {
  return paths.filter((path) => (modeOf(path) & WRITABLE.group) !== 0)
}

function modeOf(path: string): number {
  // The mode says nothing on Windows.
  if (platform() === 'win32') return 0
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat?.isFile() ? stat.mode : 0
}
