/**
 * Protects the bridge from foreign web pages (MCP 2026-07-28, streamable-http, security): a request must name an
 * allowed host, and an allowed origin if it names one, which then gets the headers of CORS.
 */
import cors from '@fastify/cors'
import plugin from 'fastify-plugin'
import { Fault } from '../../base/fault/fault.js'
import { allowedHosts as hostsAllowed, originOf } from '../../base/texts/host-name.js'
import { type Reached, reachedThrough } from './reached.js'

/** The allowed hosts and origins. */
export interface AllowedOriginOptions {
  /** Hosts of the bridge, as of `allowedHosts`, in addition to those of the loopback interface. */
  allowedHosts: readonly string[]
  /** Origins of web pages that may call: scheme, host and port. */
  allowedOrigins: readonly string[]
  /** Allow all hosts that are IP addresses: DNS rebinding needs a name. */
  addresses?: boolean
  /** Paths of routes with nothing secret, which may be requested under any host name. */
  open: readonly string[]
  /** How requests have reached the bridge, if a proxy may be in front of it. */
  reached?: Pick<Reached, 'host' | 'origin'>
}

const LOOPBACK: readonly string[] = ['localhost', '127.0.0.1', '[::1]']
const ADDRESS = /^(?:\[[0-9a-f:.]+\]|[0-9]{1,3}(?:\.[0-9]{1,3}){3})(?::[0-9]{1,5})?$/i
/** A host, and perhaps a port. */
const PLAIN = /^(.+?)(?::\d{1,5})?$/
const DIRECTLY = reachedThrough([], () => false)
const EXPOSED = ['Mcp-Session-Id', 'WWW-Authenticate']

/** A Fastify plugin that refuses requests with a foreign Host or Origin with 403. */
export const origin = plugin<AllowedOriginOptions>(async function origin(app, options) {
  const { allowedHosts, allowedOrigins, addresses = false, open, reached } = options
  const hosts = hostsAllowed([...LOOPBACK, ...allowedHosts])
  const origins = new Set(allowedOrigins.map((one) => originOf(one) ?? one))

  app.addHook('onRequest', (request, _reply, done) => {
    if (open.includes(request.routeOptions.url ?? '')) {
      done()
      return
    }
    const named = reached ? reached.host(request) : request.headers.host
    const isAllowed = named !== undefined && (hosts.plain.has(PLAIN.exec(named)?.[1] ?? '') || hosts.has(named))
    if (!(isAllowed || (addresses && ADDRESS.test(named ?? '')))) {
      throw new Fault('foreignHost', `Host "${shown(named)}" is not one of this bridge (allow it with --allowed-host)`)
    }
    const from = request.headers.origin
    if (
      from !== undefined &&
      !origins.has(from.toLowerCase()) &&
      from.toLowerCase() !== (reached ?? DIRECTLY).origin(request)
    ) {
      throw new Fault(
        'foreignOrigin',
        `Pages of ${shown(from)} may not call this bridge (allow them with --allowed-origin)`,
      )
    }
    done()
  })

  if (origins.size > 0) {
    await app.register(cors, {
      origin: [...origins],
      methods: ['GET', 'POST', 'DELETE'],
      exposedHeaders: EXPOSED,
      maxAge: 600,
    })
  }
})

function shown(text: string | undefined): string {
  return (text ?? '').replace(/[^\x20-\x7e]/g, '?').slice(0, 64)
}
