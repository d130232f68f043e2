/** The version of the bridge. Its place is as far from package.json as that of the built files is. */
import { readFileSync } from 'node:fs'

export function versionOfBridge(): string {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  return version
}
