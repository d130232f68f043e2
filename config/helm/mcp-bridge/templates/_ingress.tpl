{{/* Annotations that make ingress controllers forward event streams without buffering and without ending them. */}}
{{- define "mcp-bridge.streamAnnotations" -}}
{{- $seconds := .Values.ingress.readTimeout | toString -}}
{{- $bytes := dig "limits" "bodyBytes" 4194304 .Values.config | int64 | toString -}}
{{- $byController := dict
  "none" dict
  "traefik" dict
  "nginx" (dict
    "nginx.ingress.kubernetes.io/proxy-buffering" "off"
    "nginx.ingress.kubernetes.io/proxy-request-buffering" "off"
    "nginx.ingress.kubernetes.io/proxy-http-version" "1.1"
    "nginx.ingress.kubernetes.io/proxy-read-timeout" $seconds
    "nginx.ingress.kubernetes.io/proxy-send-timeout" $seconds
    "nginx.ingress.kubernetes.io/proxy-body-size" $bytes)
  "f5-nginx" (dict
    "nginx.org/proxy-buffering" "False"
    "nginx.org/proxy-read-timeout" (printf "%ss" $seconds)
    "nginx.org/proxy-send-timeout" (printf "%ss" $seconds)
    "nginx.org/client-max-body-size" $bytes)
  "haproxy" (dict
    "haproxy.org/timeout-server" (printf "%ss" $seconds)
    "haproxy-ingress.github.io/timeout-server" (printf "%ss" $seconds))
-}}
{{- toYaml (mergeOverwrite (get $byController .Values.ingress.controller) .Values.ingress.annotations) -}}
{{- end -}}
