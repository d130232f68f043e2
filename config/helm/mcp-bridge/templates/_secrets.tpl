{{/* Secrets in plain text among the values: everybody could read them who may read a ConfigMap, a pod or the release. */}}

{{/* Their paths, a line each. The argument is the root context. */}}
{{- define "mcp-bridge.plainSecrets" -}}
{{- $redis := ternary dict (dict "url" .Values.redis.url) (ne .Values.redis.mode "external") -}}
{{- include "mcp-bridge.plainSecretsIn" (dict "value" .Values.config "path" "config") -}}
{{- include "mcp-bridge.plainSecretsIn" (dict "value" $redis "path" "redis") -}}
{{- include "mcp-bridge.plainSecretsOf" (dict "container" (dict "env" .Values.extraEnv) "path" "extraEnv") -}}
{{- range $list := list "extraContainers" "extraInitContainers" -}}
{{- range get $.Values $list -}}
{{- include "mcp-bridge.plainSecretsOf" (dict "container" . "path" (printf "%s.%s" $list .name)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The same of a container: of its variables, command and arguments. The argument is a dict with `container` and `path`. */}}
{{- define "mcp-bridge.plainSecretsOf" -}}
{{- $path := .path -}}
{{- range .container.env -}}
{{- include "mcp-bridge.plainSecretsIn" (dict "value" (default "" .value) "path" (printf "%s.%s" $path .name) "name" .name "named" true) -}}
{{- end -}}
{{- range $member := list "command" "args" -}}
{{- include "mcp-bridge.plainSecretsIn" (dict "value" (get $.container $member) "path" (printf "%s.%s" $path $member) "named" true) -}}
{{- end -}}
{{- end -}}

{{/*
The same of any value. The argument is a dict:

  value  what is searched
  path   where it is
  name   of the header, variable, option or flag that has it
  named  whether names say what is secret: in headers, variables, arguments and credentials of the bridge
*/}}
{{- define "mcp-bridge.plainSecretsIn" -}}
{{- $path := .path -}}
{{- $named := .named -}}
{{- if kindIs "map" .value -}}
{{- range $key, $value := .value -}}
{{- $at := printf "%s.%s" $path $key -}}
{{- $name := $key -}}
{{- if eq $path "config.auth.tokens" -}}{{- $name = "token" -}}{{- end -}}
{{- if eq $at "config.publish.key" -}}{{- $name = "private_key" -}}{{- end -}}
{{- $isNamed := or $named (has $key (list "args" "auth" "env" "headers" "inspect" "oauth" "publish")) -}}
{{- /* Names of claims, such as token_use, are chosen by the identity provider. */ -}}
{{- if regexMatch "^config\\.auth\\.issuers\\.[0-9]+\\.claims$" $at -}}{{- $isNamed = false -}}{{- end -}}
{{- include "mcp-bridge.plainSecretsIn" (dict "value" $value "path" $at "name" $name "named" $isNamed) -}}
{{- end -}}
{{- else if kindIs "slice" .value -}}
{{- $flag := "" -}}
{{- range $index, $value := .value -}}
{{- include "mcp-bridge.plainSecretsIn" (dict "value" $value "path" (printf "%s.%d" $path $index) "name" $flag "named" $named) -}}
{{- $flag = ternary $value "" (regexMatch "^--?[A-Za-z][A-Za-z0-9_-]*$" (toString $value)) -}}
{{- end -}}
{{- else if kindIs "string" .value -}}
{{- if include "mcp-bridge.isPlainSecret" (dict "text" .value "name" (default "" .name) "named" .named) -}}
{{- println $path -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Whether a text is a secret, by its name or by its form. References are none, but their defaults may be. */}}
{{- define "mcp-bridge.isPlainSecret" -}}
{{- $text := regexReplaceAll "\\$\\$\\{" .text "{" -}}
{{- $text = regexReplaceAll "\\$\\{(?:env:)?[A-Za-z_][A-Za-z0-9_]*:-([^}]*)\\}" $text "${1}" -}}
{{- $reference := "\\$\\{[^}]*\\}|\\$\\([A-Za-z_][A-Za-z0-9_.-]*\\)" -}}
{{- $refers := regexMatch $reference $text -}}
{{- $text = regexReplaceAll $reference $text "" -}}
{{- if include "mcp-bridge.hasSecretForm" $text -}}true{{- end -}}
{{- if .named -}}
{{- $pair := "^-{0,2}([A-Za-z][A-Za-z0-9_.-]*)(?:=|: ?)(.*)$" -}}
{{- $name := .name -}}
{{- $value := $text -}}
{{- if and (not (include "mcp-bridge.isSecretName" $name)) (regexMatch $pair $text) -}}
{{- $name = regexReplaceAll $pair $text "${1}" -}}
{{- $value = regexReplaceAll $pair $text "${2}" -}}
{{- end -}}
{{- $credential := regexReplaceAll "(?i)^(?:bearer|basic|dpop|token)(?:\\s+|$)" (trim $value) "" -}}
{{- $isSetting := regexMatch "(?i)^(?:true|false|yes|no|on|off|none|[0-9]{1,6})?$" $credential -}}
{{- if and (not $refers) (not $isSetting) (include "mcp-bridge.isSecretName" $name) -}}true{{- end -}}
{{- if regexMatch "(?i)\\b(?:bearer|basic|dpop)\\s+[a-z0-9._~+/=-]{6,}" $text -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{/* Whether a text has a password or parameter in an address, a private key, or a token that is known by its form. */}}
{{- define "mcp-bridge.hasSecretForm" -}}
{{- if regexMatch "://[^/?#\\s@]*:[^/?#\\s]+@" . -}}true{{- end -}}
{{- range regexFindAll "[?&#][A-Za-z0-9_.-]+=[^&#\\s]+" . -1 -}}
{{- $name := regexReplaceAll "^.(.*?)=.*$" . "${1}" -}}
{{- if or (has (lower $name) (list "auth" "code" "key" "pass" "sig")) (include "mcp-bridge.isSecretName" $name) -}}true{{- end -}}
{{- end -}}
{{- range list
  "-----BEGIN [A-Z0-9 ]*PRIVATE KEY"
  "\\beyJ[A-Za-z0-9_-]{10,}\\.[A-Za-z0-9_-]{10,}"
  "\\b(?:gh[a-z]_|github_pat_|gl[a-z]{2,5}-|ATATT|hf_|gsk_|npm_|pypi-|dckr_[a-z]{3}_|ntn_|figd_|xapp-|xox[a-z]-|sk-|[sr]k_(?:live|test)_|lin_api_|hv[bs]\\.|gl(?:sa|c)_)[A-Za-z0-9_=-]{16,}"
  "\\b(?:A[KS]IA[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{30,}|ya29\\.[A-Za-z0-9_-]{10,}|SG\\.[A-Za-z0-9_-]{16,}\\.[A-Za-z0-9_-]{16,})"
-}}
{{- if regexMatch . $ -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{/* Whether a name says that its value is secret, as src/base/credentials/names.ts has it; not of names of what is about a secret. */}}
{{- define "mcp-bridge.isSecretName" -}}
{{- $words := regexReplaceAll "([a-z0-9])([A-Z])" . "${1}_${2}" -}}
{{- $words = regexReplaceAll "[^A-Za-z]+" $words "_" | lower | trimAll "_" -}}
{{- $secret := "(?:^|_)(?:tokens?|secrets?|passwords?|passwd|passcode|passphrase|pwd|authorization|credentials?|cookies?|session_?id|otp|totp|jwt|bearer|mnemonic)(?:_|$)" -}}
{{- $joined := "password|passphrase|passcode|(?:api|private|access|account|app|application|encryption|master|secret|service|shared|signing|ssh|storage|subscription)key|(?:access|auth|refresh|id|csrf|bearer|session)tokens?$|clientsecret|jsessionid|(?:seed|recovery|secret)phrase|(?:admin|db|ftp|mail|mysql|pg|proxy|redis|require|root|smtp|user)pass$|^(?:client)?assertion$" -}}
{{- $about := "_(?:alg|algorithm|arn|audience|dir|directory|domain|enabled|endpoint|expiry|file|folder|format|header|issuer|kind|length|lifetime|limit|method|name|path|policy|prefix|provider|timeout|ttl|type|uri|url|version)$" -}}
{{- if and (or (regexMatch $secret $words) (regexMatch $joined (replace "_" "" $words))) (not (regexMatch $about $words)) -}}true{{- end -}}
{{- end -}}
