/** What cannot be meant with keys that people enter (`account`). */
import type { Listen } from './addresses.js'
import { hasSignInPage } from './derived.js'
import type { Issue } from './error.js'
import { forwardedTo, isWritten } from './forwarding.js'
import { isStdio } from './kinds.js'
import type { Settings } from './schema/schema.js'
import type { ServerSettings } from './schema/server.js'

/** The header of people's own keys that cannot be sent, or keys that nobody could enter. */
export function ownKeys(name: string, own: ServerSettings, settings: Settings, listen: Listen): Issue[] {
  const path = `mcpServers.${name}.account`
  if (isStdio(own)) {
    const message = 'is for servers with an address: a program gets no headers. Give it values in "env"'
    return 'account' in own ? [{ path, message }] : []
  }
  if (!own.account) return []
  const { header } = own.account
  const issues: Issue[] = []
  const issue = (message: string) => issues.push({ path, message })
  if (isWritten(header)) issue(`cannot be in ${header}, which belongs to the connection or to the protocol`)
  if (Object.keys(own.headers).some((one) => one.toLowerCase() === header))
    issue(`would replace ${header} in "headers": remove it there`)
  if (forwardedTo(own).some(({ to }) => to === header)) issue(`cannot be combined with "forward" of ${header}`)
  if (own.oauth) issue('cannot be combined with "oauth": people sign in, or enter a key')
  if (own.socket !== undefined) issue('cannot be combined with "socket": keys belong to an address')
  if (own.session === 'shared')
    issue('cannot be combined with "session": "shared": the session would have the key of one person')
  if (!hasSignInPage(settings, listen))
    issue(
      'requires the page where people enter their keys: "publicUrl" with https://, and "auth" that says who is in a browser. For one key of everybody, use "headers"',
    )
  return issues
}
