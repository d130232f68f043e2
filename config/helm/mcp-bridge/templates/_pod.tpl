{{/* Settings of every pod and container with a bridge: minimal privileges, and probes at the address that requires no token. */}}

{{- define "mcp-bridge.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "mcp-bridge.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end -}}

{{/* The argument is the path of the startup probe. With /readyz, containers after the sidecar start when its server is reachable. */}}
{{- define "mcp-bridge.probes" -}}
startupProbe:
  httpGet: { path: {{ . }}, port: admin }
  periodSeconds: 1
  failureThreshold: 60
# Ready while at least one server is reachable. A restart does not repair an unreachable server, so liveness ignores servers.
readinessProbe:
  httpGet: { path: /readyz, port: admin }
  periodSeconds: 5
livenessProbe:
  httpGet: { path: /healthz, port: admin }
  timeoutSeconds: 5
{{- end -}}
