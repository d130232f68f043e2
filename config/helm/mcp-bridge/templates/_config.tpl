{{/* The configuration file of the bridge, and values derived from it. */}}

{{/* Rejects values that the bridge would reject later, and names the value to change. */}}
{{- define "mcp-bridge.check" -}}
{{- $config := .Values.config -}}
{{- if and .Values.existingConfig (or $config.mcpServers $config.auth $config.groups) -}}
{{- fail "existingConfig names a ConfigMap, and config has options, too: give one of them" -}}
{{- end -}}
{{- if not .Values.existingConfig -}}
{{- if not (or $config.mcpServers $config.discover) -}}
{{- fail "config.mcpServers is empty: add a server, as in --set config.mcpServers.orders.url=http://orders:3000/mcp" -}}
{{- end -}}
{{- range $group, $entry := default dict $config.groups -}}
{{- range default list $entry.servers -}}
{{- if not (or $config.discover (hasKey $config.mcpServers .)) -}}
{{- fail (printf "config.groups.%s.servers names %s, which is no server of config.mcpServers" $group .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if not (or $config.auth $config.allowUnauthenticated) -}}
{{- fail "Nobody may call: set config.auth.tokens, or config.allowUnauthenticated=true if a NetworkPolicy or gateway restricts access" -}}
{{- end -}}
{{- end -}}
{{- $plain := include "mcp-bridge.plainSecrets" . -}}
{{- if and $plain (not .Values.secret.allowLiteral) -}}
{{- fail (printf "These values are secrets in plain text:\n%s\nPut each into the Secret, and write ${file:/run/secrets/mcp-bridge/<key>} in its place (for a variable of a container: valueFrom). To allow all of them: secret.allowLiteral=true" (trim $plain | indent 2)) -}}
{{- end -}}
{{- if and (eq .Values.redis.mode "none") (or .Values.autoscaling.enabled (gt (int .Values.replicas) 1)) -}}
{{- fail "Replicas share a Redis: set redis.mode to internal or external, or replicas to 1 with autoscaling off" -}}
{{- end -}}
{{- end -}}

{{/* Whether the bridge requires no token, and is meant for the cluster only. */}}
{{- define "mcp-bridge.isOpen" -}}
{{- $isExposed := or .Values.ingress.enabled .Values.httpRoute.enabled (ne .Values.service.type "ClusterIP") -}}
{{- if and .Values.config.allowUnauthenticated (not .Values.config.auth) (not $isExposed) -}}true{{- end -}}
{{- end -}}

{{- define "mcp-bridge.publicUrl" -}}
{{- if .Values.config.publicUrl -}}
{{- .Values.config.publicUrl -}}
{{- else if and .Values.ingress.enabled .Values.ingress.host -}}
{{- printf "%s://%s" (ternary "https" "http" (not (not .Values.ingress.tlsSecret))) .Values.ingress.host -}}
{{- else if and .Values.httpRoute.enabled .Values.httpRoute.hostnames -}}
{{- printf "https://%s" (first .Values.httpRoute.hostnames) -}}
{{- end -}}
{{- end -}}

{{/* Where the bridge listens in its pod: at all addresses of both families, or of IPv4 where nodes have no IPv6. */}}
{{- define "mcp-bridge.anyAddress" -}}
{{- ternary "0.0.0.0" "[::]" (eq .Values.ipFamily "IPv4") -}}
{{- end -}}

{{- define "mcp-bridge.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $name := include "mcp-bridge.fullname" . -}}
{{- $namespace := .Release.Namespace -}}
{{- $_ := set $config "listen" (printf "http://%s:8080%s" (include "mcp-bridge.anyAddress" .) .Values.path) -}}
{{- $_ := set $config "admin" (printf "http://%s:9090" (include "mcp-bridge.anyAddress" .)) -}}
{{- $hosts := list $name (printf "%s.%s" $name $namespace) (printf "%s.%s.svc" $name $namespace) (printf "%s.%s.svc.cluster.local" $name $namespace) -}}
{{- $routed := ternary .Values.httpRoute.hostnames list .Values.httpRoute.enabled -}}
{{- $_ := set $config "allowedHosts" (concat (default list .Values.config.allowedHosts) $hosts $routed | uniq) -}}
{{- with include "mcp-bridge.publicUrl" . -}}
{{- $_ := set $config "publicUrl" . -}}
{{- end -}}
{{- $keys := list -}}
{{- range .Values.stateKeys -}}
{{- $keys = append $keys (printf "${file:/run/secrets/mcp-bridge/%s}" .) -}}
{{- end -}}
{{- $_ := set $config "stateKeys" $keys -}}
{{- if eq .Values.redis.mode "internal" -}}
{{- $url := printf "redis://:${file:/run/secrets/mcp-bridge/redis-password}@%s-redis:6379" $name -}}
{{- $_ := set $config "redis" (mergeOverwrite (default dict $config.redis) (dict "url" $url)) -}}
{{- else if eq .Values.redis.mode "external" -}}
{{- $redis := default dict $config.redis -}}
{{- if not $redis.cluster -}}
{{- $redis = mergeOverwrite $redis (dict "url" .Values.redis.url) -}}
{{- end -}}
{{- $_ := set $config "redis" $redis -}}
{{- else -}}
{{- $_ := unset $config "redis" -}}
{{- end -}}
{{- if ne .Values.redis.mode "none" -}}
{{- $_ := set $config "replicas" (mergeOverwrite (dict "address" "http://${POD_IP}:8090") (default dict $config.replicas)) -}}
{{- end -}}
{{- mustToPrettyJson $config -}}
{{- end -}}

{{/* Seconds: drainDelay, drainTimeout and 10 s to end. */}}
{{- define "mcp-bridge.gracePeriod" -}}
{{- $timeouts := .Values.config.timeouts -}}
{{- add (divf (addf $timeouts.drainDelay $timeouts.drainTimeout) 1000 | ceil | int) 10 -}}
{{- end -}}
