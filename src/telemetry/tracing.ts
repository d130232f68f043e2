/** Starts tracing with OpenTelemetry if the usual environment variables ask for it. Its code is loaded only then. */

import { parseUrl } from '../texts/parse-url.js'
import type { Encoding, Tracing, TracingOptions } from './types.js'

const ENCODINGS: readonly string[] = ['http/protobuf', 'http/json'] satisfies Encoding[]

/** Starts tracing; undefined if it is not requested, or requested in an unsupported way. */
export async function startTracing(
  env: Readonly<Record<string, string | undefined>>,
  options: TracingOptions,
): Promise<Tracing | undefined> {
  const said = (name: string) => env[name]?.trim() || undefined
  const exporter = said('OTEL_TRACES_EXPORTER')
  const endpoint = said('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT') ?? said('OTEL_EXPORTER_OTLP_ENDPOINT')
  const wanted = exporter === undefined ? endpoint !== undefined : exporter !== 'none'
  if (!wanted || said('OTEL_SDK_DISABLED')?.toLowerCase() === 'true') return undefined
  const protocol = said('OTEL_EXPORTER_OTLP_TRACES_PROTOCOL') ?? said('OTEL_EXPORTER_OTLP_PROTOCOL') ?? 'http/protobuf'
  if ((exporter ?? 'otlp') !== 'otlp') {
    options.log.warn({ event: 'tracing_disabled', exporter }, 'no traces: OTEL_TRACES_EXPORTER must be otlp or none')
    return undefined
  }
  if (!ENCODINGS.includes(protocol)) {
    const message = 'no traces: OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf or http/json'
    options.log.warn({ event: 'tracing_disabled', protocol }, message)
    return undefined
  }
  const { OpenTelemetry } = await import('./opentelemetry.js')
  const { proxiesOf } = await import('../net/proxy.js')
  const url = endpoint === undefined ? undefined : parseUrl(endpoint)
  const proxy = url && proxiesOf(env)(url)
  return new OpenTelemetry(protocol as Encoding, { ...options, proxy })
}
