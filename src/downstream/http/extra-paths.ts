/** Paths beside the MCP endpoint that are passed on to the server's origin, because the configuration says so. */
import proxy from '@fastify/http-proxy'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Relayed } from '../../protocol/call.js'
import { Fault } from '../../protocol/fault.js'
import { edit, type Payload, parseObject, write } from '../../rpc/splice.js'
import { refuse, sendJson } from './replies.js'

export interface ExtraPathsOptions {
  relayed: Relayed
  /** Paths here, by the paths at the server. One that ends with `/*` stands for all below it. */
  paths: ReadonlyMap<string, string>
  /** The client's own credentials are for the server. Otherwise they are for the bridge, and go no further. */
  passthrough: boolean
  /** The address of the endpoint as clients know it: the resource that the metadata are about. */
  resource(request: FastifyRequest): string
}

/** Where the metadata of a protected resource are found (RFC 9728, section 3.1). */
export const METADATA = '/.well-known/oauth-protected-resource'

/** Bytes of the metadata of a server. */
const MAX_METADATA = 256 * 1024
const NOT_SENT = ['origin', 'cookie', 'forwarded', 'expect', 'te', 'trailer', 'upgrade', 'keep-alive']
const NOT_SENT_BACK = ['connection', 'keep-alive', 'set-cookie', 'alt-svc', 'trailer', 'upgrade']

interface Response {
  statusCode: number
  stream: NodeJS.ReadableStream
}

export async function extraPaths(
  app: FastifyInstance,
  { relayed, paths, resource, passthrough }: ExtraPathsOptions,
): Promise<void> {
  for (const [here, there] of paths) {
    const below = here.endsWith('/*')
    const options = {
      upstream: relayed.url.origin,
      prefix: below ? here.slice(0, -2) : here,
      rewritePrefix: below ? there.slice(0, -2) : there,
      routes: below ? ['/', '/*'] : ['/'],
      undici: relayed.dispatcher,
      disableRequestLogging: true,
      retryMethods: [],
      replyOptions: {
        rewriteRequestHeaders: (_request: FastifyRequest, headers: Record<string, unknown>) =>
          without(headers, passthrough ? NOT_SENT : [...NOT_SENT, 'authorization']),
        rewriteHeaders: (headers: Record<string, unknown>) =>
          withoutOrigin(without(headers, NOT_SENT_BACK), relayed.url.origin),
        onResponse: (request: FastifyRequest, reply: FastifyReply, response: Response) => {
          if (here.startsWith(METADATA) && response.statusCode === 200) sendMetadata(reply, response, resource(request))
          else reply.send(response.stream)
        },
        onError: (reply: FastifyReply, { error }: { error: Error }) =>
          refuse(reply, relayed.failed(error.cause instanceof Error ? error.cause : error), { status: 502 }),
      },
    }
    await app.register(proxy, options as unknown as Parameters<typeof proxy>[1])
  }
}

/** The server's metadata are about its own address; what the client asked about is ours. */
function sendMetadata(reply: FastifyReply, { stream }: Response, resource: string): void {
  wholeOf(stream)
    .then((json) => {
      const metadata: Payload = parseObject(json)
      reply.removeHeader('content-length')
      sendJson(reply, write(edit(metadata, { resource: JSON.stringify(resource) })))
    })
    .catch((cause: unknown) =>
      refuse(
        reply,
        new Fault('upstreamProtocol', 'The metadata of the server are no JSON object', { cause, status: 502 }),
      ),
    )
}

/** All of a document. Rejects where it is too long for one. */
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

/** Where a redirect leads to on the server itself is there on the bridge as well: how the server is called within is nobody's business. */
function withoutOrigin(headers: Record<string, unknown>, origin: string): Record<string, unknown> {
  const { location } = headers
  if (typeof location !== 'string' || !URL.canParse(location) || new URL(location).origin !== origin) return headers
  const { pathname, search, hash } = new URL(location)
  return { ...headers, location: pathname + search + hash }
}

function without(headers: Record<string, unknown>, names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name)))
}
