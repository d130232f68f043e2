/**
 * A client of a group with prefixes, for somebody who knows bare names only: a proxy that puts the prefixes before the
 * names and URIs of requests, and takes them off in all that comes back.
 */
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'

interface Params {
  name?: unknown
  uri?: unknown
  ref?: { name?: unknown; uri?: unknown }
  notifications?: { resourceSubscriptions?: unknown[] }
}

/** The names in requests of these methods have a prefix. */
const NAMING = ['tools/call', 'prompts/get', 'completion/complete']
const HOST = '127.0.0.1'

/** Listens until the process ends. `prefixes` are those of the group at `url`. Resolves to the address to use instead of `url`. */
export async function startRenaming(url: string, prefixes: readonly string[]): Promise<string> {
  const known = new Map<string, string>()
  const any = prefixes.join('|')
  const named = new RegExp(`("name":\\s*")((?:${any})__)([^"]*)`, 'g')
  const theirs = `:${new URL(url).port}`
  let own = ''
  const addressed = new RegExp(`(?:${any})\\+(test:[^"]*)`, 'g')

  /** What the suite is shown; what it may use later is noted. */
  function shown(line: string): string {
    return line
      .replace(named, (_, key: string, prefix: string, name: string) => {
        known.set(name, prefix + name)
        return key + name
      })
      .replace(addressed, (given, uri: string) => {
        known.set(uri, given)
        return uri
      })
  }

  const meant = (value: unknown) => (typeof value === 'string' ? (known.get(value) ?? value) : value)

  function sent(body: string): string {
    if (body === '') return body
    const message = JSON.parse(body) as { method?: string; params?: Params }
    const { method = '', params } = message
    if (!params) return body
    if (NAMING.includes(method) && 'name' in params) params.name = meant(params.name)
    if ('uri' in params) params.uri = meant(params.uri)
    if (params.ref && 'name' in params.ref) params.ref.name = meant(params.ref.name)
    if (params.ref && 'uri' in params.ref) params.ref.uri = meant(params.ref.uri)
    const subscriptions = params.notifications?.resourceSubscriptions
    if (params.notifications && subscriptions) params.notifications.resourceSubscriptions = subscriptions.map(meant)
    return JSON.stringify(message)
  }

  function sentHeaders({ 'content-length': _, ...headers }: IncomingHttpHeaders): IncomingHttpHeaders {
    const { host, origin, 'mcp-name': name } = headers
    return {
      ...headers,
      ...(host !== undefined && { host: host.replace(own, theirs) }),
      ...(origin !== undefined && { origin: origin.replace(own, theirs) }),
      ...(name !== undefined && { 'mcp-name': String(meant(name)) }),
    }
  }

  async function pass(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = sent(await text(incoming))
    const { method = 'GET', headers } = incoming
    const onward = request(url, { method, headers: sentHeaders(headers) })
    response.once('close', () => onward.destroy())
    onward.end(body)
    const [answer] = (await once(onward, 'response')) as [IncomingMessage]
    const { 'content-length': _, ...answered } = answer.headers
    response.writeHead(answer.statusCode ?? 500, answered)
    response.flushHeaders()
    for await (const line of createInterface({ input: answer })) response.write(`${shown(line)}\n`)
    response.end()
  }

  const server = createServer((incoming, response) => {
    // Whoever has gone away is not to be answered.
    pass(incoming, response).catch(() => response.destroy())
  })
  server.unref()
  server.listen(0, HOST)
  await once(server, 'listening')
  own = `:${(server.address() as AddressInfo).port}`
  return `http://${HOST}${own}/mcp`
}
