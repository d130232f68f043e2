/** The packages for traces, and for an audit log at a collector. A file of its own in the build, read when one of its packages is needed. */
module.exports = {
  get '@opentelemetry/api'() {
    return require('@opentelemetry/api')
  },
  get '@opentelemetry/exporter-trace-otlp-http'() {
    return require('@opentelemetry/exporter-trace-otlp-http')
  },
  get '@opentelemetry/exporter-trace-otlp-proto'() {
    return require('@opentelemetry/exporter-trace-otlp-proto')
  },
  get '@opentelemetry/otlp-exporter-base/node-http'() {
    return require('@opentelemetry/otlp-exporter-base/node-http')
  },
  get '@opentelemetry/otlp-transformer'() {
    return require('@opentelemetry/otlp-transformer')
  },
  get '@opentelemetry/resources'() {
    return require('@opentelemetry/resources')
  },
  get '@opentelemetry/sdk-trace-base'() {
    return require('@opentelemetry/sdk-trace-base')
  },
}
