/** Who may write a file that the configuration is read from: they decide which programs are started, and who gets credentials. */
import { statSync } from 'node:fs'
import { platform } from 'node:os'
import { ConfigError } from '../config/settings.js'

/** Bits of the mode of a file. */
const WRITABLE = { group: 0o020, others: 0o002 }

/** Throws a ConfigError where every user of the machine may write a file. What is no file is not looked at. */
export function checkWritable(path: string): void {
  if ((modeOf(path) & WRITABLE.others) === 0) return
  const message = `Every user of this machine may write ${path}, and so decide which programs are started. Run: chmod o-w ${path}`
  throw new ConfigError([{ path: '', message }])
}

/** Those of some files that users of their group may write, too. */
export function writableByGroup(paths: readonly string[]): string[] {
  return paths.filter((path) => (modeOf(path) & WRITABLE.group) !== 0)
}

function modeOf(path: string): number {
  // There, the mode says nothing.
  if (platform() === 'win32') return 0
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat?.isFile() ? stat.mode : 0
}
