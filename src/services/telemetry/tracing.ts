/** Starts tracing with OpenTelemetry if the usual environment variables ask for it. Its code is loaded only then. */

import { parseUrl } from '../../base/texts/parse-url.js'
import type { OpenTelemetry, TracingOptions } from './opentelemetry.js'
import { isEncoding, otlpVariable, protocolOf, variable } from './otlp.js'

/** Starts tracing; undefined if it is not requested, or requested in an unsupported way. */
export async function startTracing(
  env: Readonly<Record<string, string | undefined>>,
  options: TracingOptions,
): Promise<OpenTelemetry | undefined> {
  const exporter = variable(env, 'OTEL_TRACES_EXPORTER')
  const endpoint = otlpVariable(env, 'TRACES', 'ENDPOINT')
  const wanted = exporter === undefined ? endpoint !== undefined : exporter !== 'none'
  if (!wanted || variable(env, 'OTEL_SDK_DISABLED')?.toLowerCase() === 'true') return undefined
  const protocol = protocolOf(env, 'TRACES')
  if ((exporter ?? 'otlp') !== 'otlp') {
    options.log.warn({ event: 'tracing_disabled', exporter }, 'no traces: OTEL_TRACES_EXPORTER must be otlp or none')
    return undefined
  }
  if (!isEncoding(protocol)) {
    const message = 'no traces: OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf or http/json'
    options.log.warn({ event: 'tracing_disabled', protocol }, message)
    return undefined
  }
  const opentelemetry = await import('./opentelemetry.js')
  const { proxiesOf } = await import('../../base/net/proxy.js')
  const url = endpoint === undefined ? undefined : parseUrl(endpoint)
  const proxy = url && proxiesOf(env)(url)
  return new opentelemetry.OpenTelemetry(protocol, { ...options, proxy })
}
