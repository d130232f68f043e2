/** A collector of traces inside the test: what has been exported to it over OTLP in JSON can be looked at. */
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { until } from './eventually.js'
import { listenUntilEnd } from './listen-until-end.js'

export interface Exported {
  traceId: string
  spanId: string
  parentSpanId: string | undefined
  traceState: string | undefined
  name: string
  kind: 'internal' | 'server' | 'client'
  /** Nanoseconds. */
  start: bigint
  end: bigint
  attributes: Record<string, unknown>
  failed: boolean
  message: string | undefined
  resource: Record<string, unknown>
}

interface Value {
  stringValue?: string
  intValue?: number | string
  boolValue?: boolean
}
type Attributes = { key: string; value: Value }[]
interface OtlpSpan {
  traceId: string
  spanId: string
  parentSpanId?: string
  traceState?: string
  name: string
  kind: number
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes: Attributes
  status: { code: number; message?: string }
}
interface Export {
  resourceSpans: { resource: { attributes: Attributes }; scopeSpans: { spans: OtlpSpan[] }[] }[]
}

/** Kinds by their numbers in OTLP. */
const KINDS = ['internal', 'internal', 'server', 'client'] as const

export class Collector {
  readonly spans: Exported[] = []
  readonly requests: { path: string; headers: IncomingHttpHeaders; bytes: number }[] = []
  readonly url: string

  private constructor(url: string) {
    this.url = url
  }

  static async start(t: Test): Promise<Collector> {
    let collector: Collector | undefined
    const server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        collector?.take(request.url ?? '', request.headers, Buffer.concat(chunks))
        response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
      })
    })
    await listenUntilEnd(t, server)
    collector = new Collector(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    return collector
  }

  /** The span that fits, when it has been exported. */
  async span(fits: Partial<Exported>): Promise<Exported> {
    const find = () =>
      this.spans.find((span) => Object.entries(fits).every(([key, wanted]) => span[key as keyof Exported] === wanted))
    await until(() => find() !== undefined, `the export of ${JSON.stringify(fits)}`)
    return find() as Exported
  }

  take(path: string, headers: IncomingHttpHeaders, body: Buffer): void {
    this.requests.push({ path, headers, bytes: body.length })
    if (!headers['content-type']?.includes('json')) return
    const { resourceSpans } = JSON.parse(body.toString()) as Export
    for (const { resource, scopeSpans } of resourceSpans)
      for (const { spans } of scopeSpans) this.spans.push(...spans.map((span) => read(span, resource.attributes)))
  }
}

function read(span: OtlpSpan, resource: Attributes): Exported {
  return {
    traceId: span.traceId,
    spanId: span.spanId,
    parentSpanId: span.parentSpanId || undefined,
    traceState: span.traceState || undefined,
    name: span.name,
    kind: KINDS[span.kind] ?? 'internal',
    start: BigInt(span.startTimeUnixNano),
    end: BigInt(span.endTimeUnixNano),
    attributes: valuesOf(span.attributes),
    failed: span.status.code === 2,
    message: span.status.message,
    resource: valuesOf(resource),
  }
}

function valuesOf(attributes: Attributes): Record<string, unknown> {
  return Object.fromEntries(
    attributes.map(({ key, value: { stringValue, intValue, boolValue } }) => [
      key,
      stringValue ?? (intValue === undefined ? boolValue : Number(intValue)),
    ]),
  )
}
