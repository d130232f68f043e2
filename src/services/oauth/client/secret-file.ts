/** Secrets in files that other programs may replace while the bridge runs. */
import { Fault } from '../../../base/fault/fault.js'
import { codeOf } from '../../../base/net/failure.js'
import { readNamed } from '../../../base/net/readable.js'

const MAX_SECRET = 64 * 1024

/** The one line of a file, read each time. `option` is the option that names the file. Throws a Fault. */
export function readSecretFile(path: string, option: string): string {
  let text: string
  try {
    text = readNamed(path).toString('utf8')
  } catch (cause) {
    throw new Fault('authFailed', `The file in "${option}" cannot be read (${codeOf(cause)})`, { cause })
  }
  const secret = text.trim()
  if (!/^[\x21-\x7e]+$/.test(secret) || secret.length > MAX_SECRET)
    throw new Fault('authFailed', `The file in "${option}" must have one line of visible ASCII without spaces`)
  return secret
}
