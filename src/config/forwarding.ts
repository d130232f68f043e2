/** Which headers of callers a server gets (`forward`), and what cannot be meant. */
import { isOfConnection } from '../base/texts/headers.js'
import type { Issue } from './error.js'
import { isStdio } from './kinds.js'
import type { Settings } from './schema/schema.js'
import type { ServerSettings } from './schema/server.js'

/** A header of callers that a server gets. Names are in lower case. */
interface ForwardedHeader {
  from: string
  /** Its name for the server. */
  to: string
  isRequired: boolean
  replaces: boolean
}

/** Headers that the protocol or the bridge writes, beside those of the connection. */
const WRITTEN: ReadonlySet<string> = new Set(
  'accept accept-encoding baggage cookie cookie2 dpop forwarded host last-event-id origin set-cookie traceparent tracestate'.split(
    ' ',
  ),
)
const WRITTEN_LIKE = /^(?:mcp|content|proxy|sec|x-forwarded|access-control)-/

/** The headers of callers that a server gets. */
export function forwardedTo(own: ServerSettings): readonly ForwardedHeader[] {
  if (isStdio(own)) return []
  return Object.entries(own.forward).map(([from, given]) => {
    const {
      as = from,
      require = false,
      replace = false,
    } = given === true ? {} : typeof given === 'string' ? { as: given } : given
    return { from, to: as, isRequired: require, replaces: replace }
  })
}

/** Headers that cannot be forwarded, or that would replace a credential. */
export function forwarding(name: string, own: ServerSettings, settings: Settings): Issue[] {
  const path = `mcpServers.${name}.forward`
  if (isStdio(own)) {
    const message = 'is for servers with an address: a program gets no headers. Give it values in "env"'
    return 'forward' in own ? [{ path, message }] : []
  }
  const all = forwardedTo(own)
  const issues: Issue[] = []
  const configured = Object.keys(own.headers).map((header) => header.toLowerCase())
  for (const [i, { from, to, replaces }] of all.entries()) {
    const issue = (message: string) => issues.push({ path: `${path}.${from}`, message })
    if (from === 'authorization')
      issue(
        'is for the bridge itself: to send it to the server, use "auth.passthrough", or let clients use another header',
      )
    else if (isWritten(from) || isWritten(to))
      issue(`cannot be forwarded: ${isWritten(from) ? from : to} belongs to the connection or to the protocol`)
    else if (headersOfProxies(settings).includes(from))
      issue('says to the bridge who calls ("auth"), so no server gets it')
    if (all.slice(0, i).some((other) => other.to === to))
      issue(`is sent as ${to}, like another header: keep one of them`)
    if (configured.includes(to) && !replaces)
      issue(
        `would replace ${to} in "headers", a credential of the bridge: remove it there, or allow that with { "replace": true }`,
      )
    if (to === 'authorization' && own.oauth) issue('cannot be combined with "oauth": both set the credential')
    if (to === 'authorization' && settings.auth?.passthrough)
      issue('cannot be combined with "auth.passthrough": both set the credential')
  }
  if (all.length > 0 && own.session === 'shared')
    issues.push({
      path,
      message: 'cannot be combined with "session": "shared": the session would have the headers of one caller',
    })
  return issues
}

/** Whether a header belongs to the connection or to the protocol. */
export function isWritten(header: string): boolean {
  return WRITTEN.has(header) || WRITTEN_LIKE.test(header) || isOfConnection(header)
}

/** Headers in which proxies say who calls. The bridge removes them. */
function headersOfProxies({ auth }: Settings): readonly (string | undefined)[] {
  const { user, secretHeader, scopes, groups } = auth?.forwarded ?? {}
  return [user, secretHeader, scopes, groups, ...(auth?.issuers ?? []).map(({ header }) => header)]
}
