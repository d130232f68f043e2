{{/*
A sidecar for `initContainers` of your own chart. README.md has an example. The argument is a dict:

  chart        (index .Subcharts "mcp-bridge"), for the image and the security context
  upstream     address of a server that listens on the pod's loopback address, or
  command      list: the command of a stdio server that the bridge starts
  listen       address for clients; http://[::]:8080/mcp by default. 127.0.0.1 is reachable from containers of the pod only
  allowedHosts host names that clients use
  args         further arguments of the bridge
  config       path of a configuration file, in place of upstream and command; it must set the listen and admin addresses
  env, volumeMounts, resources   as in a container
  allowLiteral true allows secrets in plain text in args, command, upstream and env
*/}}
{{- define "mcp-bridge.sidecar" -}}
{{- $listen := default "http://[::]:8080/mcp" .listen -}}
{{- $port := (urlParse $listen).host | splitList ":" | last -}}
{{- if not (or .upstream .command .config) -}}
{{- fail "mcp-bridge.sidecar: set upstream, command or config" -}}
{{- end -}}
{{- $arguments := concat (default list .args) (list (default "" .upstream)) -}}
{{- $plain := include "mcp-bridge.plainSecretsOf" (dict "container" (dict "env" .env "command" .command "args" $arguments) "path" "mcp-bridge.sidecar") -}}
{{- if and $plain (not .allowLiteral) -}}
{{- fail (printf "These are secrets in plain text:\n%s\nPut each into a Secret, as a variable of the container (valueFrom), and write ${NAME} in its place. To allow all of them: \"allowLiteral\" true" (trim $plain | indent 2)) -}}
{{- end -}}
- name: mcp-bridge
  # A native sidecar (restartPolicy: Always): it starts before the containers and ends after them.
  restartPolicy: Always
  image: {{ include "mcp-bridge.image" .chart }}
  imagePullPolicy: {{ .chart.Values.image.pullPolicy }}
  args:
    {{- if .config }}
    - --config={{ .config }}
    {{- else }}
    - {{ printf "--listen=%s" $listen | quote }}
    - --admin=http://[::]:9090
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
  {{- /* A server in the same pod starts after the bridge, so the startup probe must not wait for it. */}}
  {{- include "mcp-bridge.probes" (ternary "/readyz" "/healthz" (not (not .command))) | nindent 2 }}
  resources:
    {{- toYaml (default (dict "requests" (dict "cpu" "50m" "memory" "96Mi") "limits" (dict "memory" "512Mi")) .resources) | nindent 4 }}
  securityContext:
    {{- include "mcp-bridge.securityContext" .chart | nindent 4 }}
  {{- with .volumeMounts }}
  volumeMounts:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
