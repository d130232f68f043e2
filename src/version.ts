/** The version of the bridge, from package.json, which is one folder above this file and above the built files. */
import { readFileSync } from 'node:fs'

export function versionOfBridge(): string {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  return version
}
