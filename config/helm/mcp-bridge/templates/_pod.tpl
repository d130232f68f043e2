{{/* What every pod and container with a bridge has: no right that it does not need, and probes where nobody is asked for a token. */}}

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

{{/* The argument is the path of the startup probe. /readyz there makes what starts after a sidecar wait for its server. */}}
{{- define "mcp-bridge.probes" -}}
startupProbe:
  httpGet: { path: {{ . }}, port: admin }
  periodSeconds: 1
  failureThreshold: 60
# Ready as long as one of the servers can be reached; that none can is no reason to start the bridge again.
readinessProbe:
  httpGet: { path: /readyz, port: admin }
  periodSeconds: 5
livenessProbe:
  httpGet: { path: /healthz, port: admin }
  timeoutSeconds: 5
{{- end -}}
