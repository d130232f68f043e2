{{/* Settings of every pod and container with a bridge: its privileges, and probes at the address that requires no token. */}}

{{/* A security context of the values. The argument is this chart: in your own chart, (index .Subcharts "mcp-bridge"). */}}
{{- define "mcp-bridge.podSecurityContext" -}}
{{- include "mcp-bridge.context" (list . "podSecurityContext") -}}
{{- end -}}

{{- define "mcp-bridge.securityContext" -}}
{{- include "mcp-bridge.context" (list . "securityContext") -}}
{{- end -}}

{{/* Without what is null, which Helm keeps in values of subcharts. */}}
{{- define "mcp-bridge.context" -}}
{{- $name := last . -}}
{{- $context := get (first .).Values $name -}}
{{- if not (kindIs "map" $context) -}}
{{- fail (printf "mcp-bridge.%s: the argument has to be the chart of the bridge, as in include \"mcp-bridge.%s\" (index .Subcharts \"mcp-bridge\")" $name $name) -}}
{{- end -}}
{{- include "mcp-bridge.withoutNull" $context -}}
{{- end -}}

{{- define "mcp-bridge.withoutNull" -}}
{{- $given := dict -}}
{{- range $key, $value := . -}}
{{- if not (kindIs "invalid" $value) -}}
{{- $_ := set $given $key $value -}}
{{- end -}}
{{- end -}}
{{- toYaml $given -}}
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

{{/* On which nodes a pod runs, and which pods make way for it. The argument is values with these members. */}}
{{- define "mcp-bridge.placement" -}}
{{- $given := dict -}}
{{- range $name := list "priorityClassName" "nodeSelector" "affinity" "tolerations" -}}
{{- with get $ $name -}}
{{- $_ := set $given $name . -}}
{{- end -}}
{{- end -}}
{{- with $given -}}
{{- toYaml . -}}
{{- end -}}
{{- end -}}
