/**
 * Keeps web pages away from a bridge that is not theirs (MCP 2026-07-28, streamable-http, security): a request has to
 * name a host that is ours, and if a browser says what page it comes from, a page that was let in.
 */
import cors from '@fastify/cors'
import type { FastifyRequest } from 'fastify'
import plugin from 'fastify-plugin'
import { Fault } from '../protocol/fault.js'

export interface OriginOptions {
  /** Host names under which the bridge is reached, beside those of the loopback. Without port. */
  allowedHosts: readonly string[]
  /** Origins of web pages that may call, to the letter: scheme, host and port. */
  allowedOrigins: readonly string[]
  /** Take any host that is an address: it takes a name to lead a page of somebody else's here. */
  addresses?: boolean
  /** Paths of routes that say nothing which a page may not know, and that are asked for by any name of this machine. */
  open: readonly string[]
}

const LOOPBACK: readonly string[] = ['localhost', '127.0.0.1', '[::1]']
const ADDRESS = /^(?:\[[0-9a-f:.]+\]|[0-9]{1,3}(?:\.[0-9]{1,3}){3})$/
const EXPOSED = ['Mcp-Session-Id', 'WWW-Authenticate']

export const origin = plugin<OriginOptions>(async function origin(app, options) {
  const { allowedHosts, allowedOrigins, addresses = false, open } = options
  const hosts = new Set([...LOOPBACK, ...allowedHosts].map((host) => host.toLowerCase()))
  const origins = new Set(allowedOrigins.map((one) => one.toLowerCase()))

  app.addHook('onRequest', (request, _reply, done) => {
    if (open.includes(request.routeOptions.url ?? '')) {
      done()
      return
    }
    const host = hostName(request.headers.host)
    if (host === undefined || !(hosts.has(host) || (addresses && ADDRESS.test(host)))) {
      throw new Fault(
        'foreignHost',
        `Host "${shown(request.headers.host)}" is not one of this bridge (allow it with --allowed-host)`,
      )
    }
    const from = request.headers.origin
    if (from !== undefined && !origins.has(from.toLowerCase()) && !isOwn(from, request)) {
      throw new Fault(
        'foreignOrigin',
        `Pages of ${shown(from)} may not call this bridge (allow them with --allowed-origin)`,
      )
    }
    done()
  })

  if (origins.size > 0) {
    await app.register(cors, {
      origin: [...allowedOrigins],
      methods: ['GET', 'POST', 'DELETE'],
      exposedHeaders: EXPOSED,
      maxAge: 600,
    })
  }
})

/** A page that the bridge's own address serves. Its host has been checked to be ours. */
function isOwn(from: string, request: FastifyRequest): boolean {
  return from.toLowerCase() === `${request.protocol}://${request.headers.host?.toLowerCase()}`
}

/** The name in a Host header, without its port. */
function hostName(host: string | undefined): string | undefined {
  return host === undefined ? undefined : /^(\[[0-9a-f:.]+\]|[^:/@\s]+)(?::[0-9]{1,5})?$/.exec(host.toLowerCase())?.[1]
}

function shown(text: string | undefined): string {
  return (text ?? '').replace(/[^\x20-\x7e]/g, '?').slice(0, 64)
}
