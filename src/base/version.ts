/** The version of the bridge: of the sources, that of their package.json. The build writes it into the program. */
import { readFileSync } from 'node:fs'

export function versionOfBridge(): string {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  return version
}
