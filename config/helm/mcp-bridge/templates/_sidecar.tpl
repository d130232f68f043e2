{{/*
A bridge beside another container, for `initContainers` of your own chart. README.md shows how it is used. Its argument is a dict:

  chart        (index .Subcharts "mcp-bridge"), for the image
  upstream     address of a server that listens on the pod's loopback, or
  command      list: a program that the bridge starts as its server
  listen       where clients come in; http://0.0.0.0:8080/mcp. On 127.0.0.1 only the pod's own containers get there
  allowedHosts names under which clients reach it
  args         further arguments of the bridge
  config       path of a configuration file, in place of upstream and command; it has to say where the bridge listens
  env, volumeMounts, resources   as in a container
*/}}
{{- define "mcp-bridge.sidecar" -}}
{{- $listen := default "http://0.0.0.0:8080/mcp" .listen -}}
{{- $port := (urlParse $listen).host | splitList ":" | last -}}
{{- if not (or .upstream .command .config) -}}
{{- fail "mcp-bridge.sidecar: give it an upstream, a command or a config" -}}
{{- end -}}
- name: mcp-bridge
  # With restartPolicy: Always this is a sidecar: it starts before the containers and ends after them.
  restartPolicy: Always
  image: {{ include "mcp-bridge.image" .chart }}
  imagePullPolicy: {{ .chart.Values.image.pullPolicy }}
  args:
    {{- if .config }}
    - --config={{ .config }}
    {{- else }}
    - {{ printf "--listen=%s" $listen | quote }}
    - --admin=http://0.0.0.0:9090
    {{- end }}
    {{- range .allowedHosts }}
    - {{ printf "--allowed-host=%s" . | quote }}
    {{- end }}
    {{- range .args }}
    - {{ . | quote }}
    {{- end }}
    {{- if .upstream }}
    - {{ printf "--upstream=%s" .upstream | quote }}
    {{- end }}
    {{- with .command }}
    - --
    {{- range . }}
    - {{ . | quote }}
    {{- end }}
    {{- end }}
  {{- with .env }}
  env:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  ports:
    - { name: http, containerPort: {{ $port }} }
    - { name: admin, containerPort: 9090 }
  {{- /* A server beside the bridge starts after it, so that the bridge must not wait for it. */}}
  {{- include "mcp-bridge.probes" (ternary "/readyz" "/healthz" (not (not .command))) | nindent 2 }}
  resources:
    {{- toYaml (default (dict "requests" (dict "cpu" "50m" "memory" "96Mi") "limits" (dict "memory" "512Mi")) .resources) | nindent 4 }}
  securityContext:
    {{- include "mcp-bridge.securityContext" . | nindent 4 }}
  {{- with .volumeMounts }}
  volumeMounts:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
