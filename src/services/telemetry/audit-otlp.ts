/**
 * Sends lines of the audit log to a collector, as log records of OTLP over HTTP. The packages of OpenTelemetry read their
 * environment variables themselves.
 *
 * Their exporter of logs reports success for records that the collector has rejected. So this has the parts of that exporter,
 * and reads the answer itself.
 */
import { convertLegacyHttpOptions, createOtlpHttpExportDelegate } from '@opentelemetry/otlp-exporter-base/node-http'
import { JsonLogsSerializer, LogsExporterMetricsHelper, ProtobufLogsSerializer } from '@opentelemetry/otlp-transformer'
import { proxyAgent } from '../../base/net/agent.js'
import { proxiesOf } from '../../base/net/proxy.js'
import { parseUrl } from '../../base/texts/parse-url.js'
import { within } from '../../base/time/time.js'
import type { AuditSink, AuditText } from './audit-lines.js'
import { type Encoding, isEncoding, protocolOf } from './otlp.js'
import { resourceOf } from './resource.js'

type Environment = Readonly<Record<string, string | undefined>>
type Options = ReturnType<typeof convertLegacyHttpOptions>
type Serializer = typeof JsonLogsSerializer
type LogRecord = Parameters<Serializer['serializeRequest']>[0][number]

/** Most milliseconds until a collector has accepted lines, attempts after failures included. */
const WRITE_WITHIN = 3_000
/** Most characters of the reason of a failure. */
const MAX_REASON = 300
/** The name of the events. */
const EVENT = 'mcp_bridge.audit'
/** The number of the severity INFO in OTLP. */
const INFO = 9

const ENCODINGS: Readonly<Record<Encoding, { serializer: Serializer; type: string }>> = {
  'http/json': { serializer: JsonLogsSerializer, type: 'application/json' },
  'http/protobuf': { serializer: ProtobufLogsSerializer, type: 'application/x-protobuf' },
}

/** A connection to the collector. */
interface Exporter {
  /** Rejects unless all records are accepted. */
  send(records: LogRecord[]): Promise<void>
  /** Ends its requests. */
  close(): void
}

export class AuditOtlp implements AuditSink {
  readonly #about: Pick<LogRecord, 'resource' | 'instrumentationScope'>
  readonly #timeout: number
  readonly #open: () => Exporter
  #exporter: Exporter

  /** Throws if the variables ask for an unsupported encoding, or have no address. */
  constructor(env: Environment, version: string) {
    this.#about = { resource: resourceOf(version), instrumentationScope: { name: 'mcp-bridge', version } }
    const { serializer, type } = encodingOf(env)
    const options = convertLegacyHttpOptions({}, 'LOGS', 'v1/logs', { 'Content-Type': type })
    const url = parseUrl(options.url)
    if (!url) throw new Error('no audit log: OTEL_EXPORTER_OTLP_ENDPOINT is not an address')
    const proxy = proxiesOf(env)(url)
    this.#timeout = Math.min(options.timeoutMillis, WRITE_WITHIN)
    const agentFactory = proxy ? (protocol: string) => proxyAgent(proxy, protocol) : options.agentFactory
    this.#open = () => openExporter({ ...options, timeoutMillis: this.#timeout, agentFactory }, serializer)
    this.#exporter = this.#open()
  }

  async write(lines: readonly AuditText[]): Promise<void> {
    await within(this.#exporter.send(lines.map((line) => this.#record(line))), this.#timeout, () => {
      // Its late answer must not be taken for that to a later request.
      this.#exporter.close()
      this.#exporter = this.#open()
      throw new Error('The collector has not answered in time')
    })
  }

  close(): Promise<void> {
    this.#exporter.close()
    return Promise.resolve()
  }

  /** The body has the members of the line, except its time. */
  #record({ time, text }: AuditText): LogRecord {
    const { time: _, ...body } = JSON.parse(text) as Record<string, string>
    const hrTime: LogRecord['hrTime'] = [Math.floor(time / 1_000), (time % 1_000) * 1_000_000]
    return {
      ...this.#about,
      hrTime,
      hrTimeObserved: hrTime,
      severityNumber: INFO,
      severityText: 'INFO',
      eventName: EVENT,
      body,
      attributes: {},
      droppedAttributesCount: 0,
    }
  }
}

function encodingOf(env: Environment): { serializer: Serializer; type: string } {
  const protocol = protocolOf(env, 'LOGS')
  if (!isEncoding(protocol))
    throw new Error('no audit log: OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf or http/json')
  return ENCODINGS[protocol]
}

function openExporter(options: Options, serializer: Serializer): Exporter {
  let agent: ReturnType<Options['agentFactory']> | undefined
  let rejected = 0
  const agentFactory: Options['agentFactory'] = (protocol) => {
    agent ??= options.agentFactory(protocol)
    return agent
  }
  const reading: Serializer = {
    serializeRequest: (records) => serializer.serializeRequest(records),
    deserializeResponse: (bytes) => {
      const { partialSuccess } = serializer.deserializeResponse(bytes)
      rejected = Number(partialSuccess?.rejectedLogRecords ?? 0)
      return {}
    },
  }
  const delegate = createOtlpHttpExportDelegate(
    { ...options, agentFactory },
    reading,
    'otlp_http_log_exporter',
    LogsExporterMetricsHelper,
    undefined,
  )
  return {
    send: (records) =>
      new Promise((resolve, reject) => {
        rejected = 0
        delegate.export(records, ({ code, error }) => {
          if (code !== 0) reject(failureOf(error))
          else if (rejected > 0) reject(new Error(`The collector has rejected ${rejected} of ${records.length} lines`))
          else resolve()
        })
      }),
    close: () => void Promise.resolve(agent).then((opened) => opened?.destroy()),
  }
}

/** Without the text of an answer, and without the request. */
function failureOf(error: (Error & { code?: unknown }) | undefined): Error {
  if (typeof error?.code === 'number') return new Error(`The collector has answered with ${error.code}`)
  return new Error(`The collector has accepted nothing: ${(error?.message ?? 'unknown reason').slice(0, MAX_REASON)}`)
}
