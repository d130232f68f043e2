/** What a collector is told about the bridge: its name and version, and what the environment variables of OpenTelemetry say. */
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
