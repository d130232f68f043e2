/** What traces and the audit log read of OpenTelemetry's variables: values, and the encoding of OTLP over HTTP. */

type Environment = Readonly<Record<string, string | undefined>>

const ENCODINGS = ['http/protobuf', 'http/json'] as const

/** The encoding of OTLP over HTTP. */
export type Encoding = (typeof ENCODINGS)[number]

/** A variable, without spaces around it; undefined if it is empty. */
export function variable(env: Environment, name: string): string | undefined {
  return env[name]?.trim() || undefined
}

/** A variable of the exporters: that of one signal, or else that of all. */
export function otlpVariable(env: Environment, signal: 'TRACES' | 'LOGS', name: string): string | undefined {
  return variable(env, `OTEL_EXPORTER_OTLP_${signal}_${name}`) ?? variable(env, `OTEL_EXPORTER_OTLP_${name}`)
}

/** The encoding that the variables ask for, which may be unsupported. */
export function protocolOf(env: Environment, signal: 'TRACES' | 'LOGS'): string {
  return otlpVariable(env, signal, 'PROTOCOL') ?? 'http/protobuf'
}

export function isEncoding(protocol: string): protocol is Encoding {
  return (ENCODINGS as readonly string[]).includes(protocol)
}
