/** Passes requests to configured paths beside the MCP endpoint to the server's origin. */

import type { FastifyHttpProxyOptions } from '@fastify/http-proxy'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Fault } from '../../base/fault/fault.js'
import { edit, type Payload, parseObject, write } from '../../base/rpc/splice.js'
import { EVENT_HEADERS } from '../../base/rpc/sse.js'
import { FOR_PAGES, PREFLIGHT } from '../../base/texts/for-pages.js'
import { mediaType, ofConnection } from '../../base/texts/headers.js'
import { parseUrl } from '../../base/texts/parse-url.js'
import { PROTECTED_RESOURCE } from '../../base/texts/well-known.js'
import type { OverHttp } from '../../mcp/protocol/upstream.js'
import type { Logger } from '../logger.js'
import { ofServer } from './refusals.js'
import { JSON_TYPE, refuse } from './replies.js'

export interface ExtraPathsOptions {
  overHttp: OverHttp
  /**
   * Paths at the bridge, and the path of each at the server. A path that ends with `/*` includes all paths below it.
   */
  paths: ReadonlyMap<string, string>
  /** Whether the client's credential is for the server. Otherwise it is for the bridge, and is not passed on. */
  passthrough: boolean
  /** The log of the server. */
  log: Pick<Logger, 'telemetry'>
  /** The address of the endpoint as clients see it: the `resource` of the metadata. */
  resource(request: FastifyRequest): string
  /** The path that clients put before the paths of the bridge. */
  publicPrefix(request: FastifyRequest): string
}

/** Most bytes of a server's metadata. */
const MAX_METADATA = 256 * 1024

/** Headers that are not passed on, beside those of the connection. */
const NOT_SENT = ['origin', 'cookie', 'forwarded']
const NOT_SENT_BACK = ['set-cookie', 'alt-svc']

type Headers = Record<string, string | string[] | undefined>

interface Response {
  statusCode: number
  stream: NodeJS.ReadableStream
}

/** Serves the extra paths. A Fastify plugin. */
export async function extraPaths(
  app: FastifyInstance,
  { overHttp, paths, resource, publicPrefix, passthrough, log }: ExtraPathsOptions,
): Promise<void> {
  const { default: proxy } = await import('@fastify/http-proxy')
  const undici = await overHttp.dispatcher
  for (const [here, there] of paths) {
    const below = here.endsWith('/*')
    const isMetadata = here.startsWith(PROTECTED_RESOURCE)
    const config = { cors: false, ...ofServer(log) }
    if (isMetadata) app.options(here, { config }, async (_request, reply) => reply.code(204).headers(PREFLIGHT).send())
    const options = {
      upstream: overHttp.url.origin,
      prefix: below ? here.slice(0, -2) : here,
      rewritePrefix: below ? there.slice(0, -2) : there,
      routes: below ? ['/', '/*'] : ['/'],
      config: isMetadata ? config : ofServer(log),
      ...(isMetadata && { httpMethods: ['GET', 'HEAD'] }),
      undici,
      disableRequestLogging: true,
      retryMethods: [],
      replyOptions: {
        // The answer to HEAD is made of the document, too.
        ...(isMetadata && { method: 'GET' }),
        rewriteRequestHeaders: (_request: FastifyRequest, headers: Headers) =>
          without(headers, passthrough ? NOT_SENT : [...NOT_SENT, 'authorization']),
        rewriteHeaders: (headers: Headers, request: FastifyRequest) =>
          withoutOrigin(
            { ...answerHeaders(headers), ...(isMetadata && FOR_PAGES) },
            overHttp.url.origin,
            publicPrefix(request),
          ),
        onResponse: (request: FastifyRequest, reply: FastifyReply, response: Response) => {
          if (isMetadata && response.statusCode === 200) sendMetadata(reply, response, resource(request))
          else reply.send(response.stream)
        },
        onError: (reply: FastifyReply, { error }: { error: Error }) =>
          refuse(reply, overHttp.failed(error.cause instanceof Error ? error.cause : error), { status: 502 }),
      },
    }
    await app.register(proxy, options as unknown as FastifyHttpProxyOptions)
  }
}

/**
 * Sends the server's metadata with the bridge's address as their `resource`, because clients compare it with the
 * address they use.
 */
function sendMetadata(reply: FastifyReply, { stream }: Response, resource: string): void {
  wholeOf(stream)
    .then((json) => {
      const metadata: Payload = parseObject(json)
      reply.removeHeader('content-length')
      reply.type(JSON_TYPE).send(write(edit(metadata, { resource: JSON.stringify(resource) })))
    })
    .catch((cause: unknown) =>
      refuse(
        reply,
        new Fault('upstreamProtocol', 'The metadata of the server are not a JSON object', { cause, status: 502 }),
      ),
    )
}

/** The whole document as text. Rejects if it is too long. */
async function wholeOf(stream: NodeJS.ReadableStream): Promise<string> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of stream as AsyncIterable<Uint8Array>) {
    length += chunk.length
    if (length > MAX_METADATA) throw new RangeError(`Over ${MAX_METADATA} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** The headers of an answer that clients get. */
function answerHeaders(headers: Headers): Headers {
  const sent = without(headers, NOT_SENT_BACK)
  return mediaType(headers) === 'text/event-stream' ? { ...sent, ...EVENT_HEADERS } : sent
}

/**
 * Headers with a redirect to the server's own origin made relative: the path exists at the bridge too, and the server's
 * internal address stays hidden.
 */
function withoutOrigin(headers: Headers, origin: string, prefix: string): Headers {
  const { location } = headers
  const url = typeof location === 'string' ? parseUrl(location) : undefined
  if (url?.origin !== origin) return headers
  const { pathname, search, hash } = url
  return { ...headers, location: prefix + pathname + search + hash }
}

function without(headers: Headers, names: readonly string[]): Headers {
  const isOfConnection = ofConnection(headers['connection'])
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !isOfConnection(name) && !names.includes(name)))
}
