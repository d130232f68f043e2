/** The resource attributes for collectors: name and version of the bridge, and those in OpenTelemetry's variables. */
import {
  defaultResource,
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
} from '@opentelemetry/resources'

export function resourceOf(version: string): Resource {
  const own = resourceFromAttributes({ 'service.name': 'mcp-bridge', 'service.version': version })
  return defaultResource()
    .merge(own)
    .merge(detectResources({ detectors: [envDetector] }))
}
